"""The literal table of all table properties: name, aliases, default, unit and meaning of each.

Properties of compaction and of the queue are here, the other actions' in `shared.policy.action_properties`.

The documentation and the status page are made from it; `shared.policy.properties` reads a table's configuration by it.
"""

from shared.policy import parsers as spelled
from shared.policy.action_properties import ACTION_PROPERTIES
from shared.policy.names import AMORO, PREFIX, QBEAST_SWITCH
from shared.policy.policy import (
    BudgetWork,
    ClusteringOrder,
    DmlPolicy,
    JobOrder,
    MaxMode,
    PortablePaths,
    Priority,
    Proofread,
    RowGroupCopy,
    WindowWork,
)
from shared.policy.property import Property

PROPERTIES: tuple[Property, ...] = (
    Property(
        "enabled",
        spelled.boolean,
        "true",
        "optimize this table automatically",
        aliases={QBEAST_SWITCH: spelled.boolean, AMORO + "enabled": spelled.boolean},
    ),
    Property(
        "target-file-size",
        spelled.size_or_auto,
        "128 MiB",
        "target size of data files, or auto: chosen by the size, additions and reads of the table",
        "bytes",
        {
            "delta.targetFileSize": spelled.size,
            "self-optimizing.target-size": spelled.size,
            "write.target-file-size-bytes": spelled.size,
        },
        policy_field="target_bytes",
    ),
    # A fan-in of 1 would be no size levels; above 64 six levels span more than any file.
    Property(
        "fan-in",
        spelled.integer(2, 64),
        "8",
        "ratio between neighboring levels; set to any value, it keeps the levels from being fitted",
        "ratio",
        {"self-optimizing.fragment-ratio": spelled.integer(2, 64)},
    ),
    Property(
        "full-file-threshold",
        spelled.share("0.25", "1"),
        "0.75",
        "share of the target at which a file counts as full and is no longer merged",
        "ratio",
        {"self-optimizing.min-target-size-ratio": spelled.share("0.25", "1")},
    ),
    Property(
        "tolerance",
        spelled.share("0", "1"),
        "0.15",
        "tolerated shortfall as a share of the target",
        "ratio",
    ),
    Property(
        "min-input-files",
        spelled.integer(2, 10_000),
        "8",
        "minimum number of input files of a merge whose output stays below the target",
        "files",
        {"self-optimizing.minor.trigger.file-count": spelled.integer(2, 10_000)},
    ),
    Property(
        "max-small-files",
        spelled.integer(2, 1_000_000),
        "1000",
        "maximum number of small files per partition; beyond it the tolerance is ignored",
        "files",
    ),
    Property(
        "max-job-wait",
        spelled.parse_duration,
        "5 min",
        "time for which a merge that a commit leads to waits at most for others of its table, to share one commit with "
        "them, or off",
        "seconds",
    ),
    Property(
        "idle-compaction-after",
        spelled.parse_duration,
        "6 h",
        "idle time before idle compaction, or off",
        "seconds",
    ),
    Property(
        "full-rewrite-interval",
        spelled.parse_duration,
        "off",
        "interval between full rewrites, or off",
        "seconds",
        {"self-optimizing.full.trigger.interval": spelled.milliseconds},
    ),
    Property(
        "compact-interval",
        spelled.parse_duration,
        "off",
        "longest wait of a partition's small files, without time windows, until they are merged as if it were idle, or "
        "off",
        "seconds",
        {
            "self-optimizing.minor.trigger.interval": spelled.milliseconds,
            "self-optimizing.major.trigger.interval": spelled.milliseconds,
        },
    ),
    Property(
        "compact-every-commits",
        spelled.count_or_off,
        "off",
        "commits to a partition after which its small files are merged as if it were idle, or off",
        "commits",
    ),
    Property(
        "full-every-commits",
        spelled.count_or_off,
        "off",
        "commits to a partition after which it is fully rewritten, or off",
        "commits",
    ),
    Property(
        "full-every-delete-files",
        spelled.count_or_off,
        "off",
        "files with deletes in a partition, such as Iceberg's delete files, at each multiple of which it is fully "
        "rewritten, or off",
        "files",
    ),
    Property(
        "delete-ratio-threshold",
        spelled.share_or_off("0.001", "1"),
        "0.1",
        "share of deleted rows at which a file is rewritten even alone, or off",
        "share",
        {"self-optimizing.major.trigger.duplicate-ratio": spelled.share("0.001", "1")},
    ),
    Property(
        "time-window",
        spelled.parse_duration,
        "off",
        "length of the time windows within which files are merged, or off",
        "seconds",
    ),
    Property(
        "filter",
        spelled.partition_filter,
        "all",
        "partitions to optimize, such as dt >= '2026-01-01' or dt >= current_date - 7 days, or all",
        aliases={"self-optimizing.filter": spelled.partition_filter},
    ),
    Property(
        "max-mode",
        spelled.choice(MaxMode),
        "major",
        "small files that automatic rewrites merge: minor (not those of the top level) or major (all)",
    ),
    Property(
        "max-bytes-per-job",
        spelled.job_size,
        "16 GiB",
        "bytes that one job rewrites before it returns to the queue",
        "bytes",
        {
            "use.optimization.bytes-per-iter": spelled.iteration_size,
            "self-optimizing.max-task-size-bytes": spelled.job_size,
        },
    ),
    Property(
        "priority",
        spelled.choice(Priority),
        "normal",
        "priority band of automatic rewrites: high, normal or low",
    ),
    # The bounds of a weight are the queue's own.
    Property(
        "weight",
        spelled.share("0.01", "100"),
        "1",
        "weight among the tables of a tenant",
        "ratio",
    ),
    Property(
        "read-weight",
        spelled.share_or_auto("0.001", "1000"),
        "auto",
        "reads relative to other tables; auto: reads per hour as reported, 1 where none are",
        "ratio",
    ),
    Property(
        "job-order",
        spelled.choice(JobOrder),
        "benefit",
        "which of a tenant's jobs goes first: benefit (most per cost) or balanced (of the table rewritten longest ago)",
    ),
    Property(
        "window",
        spelled.work_windows,
        "none",
        "when jobs may start, such as Mon-Fri 20:00-06:00 Europe/Berlin; several are separated by semicolons; or none",
        policy_field="work_window",
    ),
    Property(
        "window-applies-to",
        spelled.choice(WindowWork),
        "all",
        "which jobs wait for the window: all, or heavy (all but merges of small files and of metadata)",
        policy_field="window_work",
    ),
    Property(
        "budget",
        spelled.budgets,
        "none",
        "what the table's jobs may use, such as 2 core-hours/day or 20 USD/month; several are separated by semicolons; "
        "or none",
    ),
    Property(
        "max-write-amplification",
        spelled.share_or_off("0.01", "100"),
        "off",
        "bytes that jobs may rewrite in 30 days for each byte added in them, or off",
        "ratio",
    ),
    Property(
        "budget-applies-to",
        spelled.choice(BudgetWork),
        "all",
        "which jobs wait for the table's budget and max-write-amplification: all, or uncrowded (all but a partition's "
        "that has more than max-small-files small files)",
        policy_field="budget_work",
    ),
    Property(
        "max-concurrent-jobs",
        spelled.slots_or_off,
        "off",
        "maximum number of concurrent jobs, or off; jobs of different partitions do not conflict",
        "jobs",
    ),
    Property(
        "quota",
        spelled.quota,
        "none",
        "maximum number of slots, as a share of all (0.1) or a number (2), or none; cannot be combined with "
        "max-concurrent-jobs",
        "slots",
        {"self-optimizing.quota": spelled.quota},
    ),
    Property(
        "queue",
        spelled.group,
        "default",
        "queue whose deciders and actors optimize the table; those of other queues leave it alone",
        aliases={"self-optimizing.group": spelled.group},
    ),
    Property(
        "dml-policy",
        spelled.choice(DmlPolicy),
        "defer",
        "when to rewrite partitions with MERGE, UPDATE or DELETE, which a rewrite could abort: never, defer or always",
    ),
    Property(
        "max-write-contention",
        spelled.share("0", "1"),
        "0.3",
        "share of the last hour with DML in a partition, above which jobs are deferred",
        "share",
    ),
    Property(
        "portable-paths",
        spelled.choice(PortablePaths),
        "auto",
        "when to rewrite files with paths that engines spell differently: auto (on request), always or never",
    ),
    Property(
        "row-group-copy",
        spelled.choice(RowGroupCopy),
        "auto",
        "whether rewrites may copy row groups instead of decoding rows: auto (if no value changes) or never",
    ),
    Property(
        "proofread",
        spelled.choice(Proofread),
        "new",
        "what is compared with its inputs before a commit: new (rows of what was encoded, bytes of copies), always "
        "(rows of copies, too), strict (as always; what no reader can compare is not committed) or never",
    ),
    Property(
        "clustering-order",
        spelled.choice(ClusteringOrder),
        "none",
        "order of files and rows that rewrites keep: none (files are packed by size) or time (only neighbors merge)",
    ),
    Property(
        "sort-by",
        spelled.sort_columns,
        "none",
        "columns by which full files are sorted, such as a, b desc, or none",
    ),
    Property(
        "zorder-by",
        spelled.undirected_columns,
        "none",
        "columns by which full files are Z-ordered, such as a, b, or none",
    ),
    # Below 2 two files that touch would be sorted again and again; beyond 64 no reader gains.
    Property(
        "max-depth",
        spelled.integer(2, 64),
        "4",
        "files of one sort level that may overlap at a point of the key before they are sorted again",
        "files",
    ),
    *ACTION_PROPERTIES,
)

NAMES = tuple(sorted({name for prop in PROPERTIES for name in (PREFIX + prop.name, *prop.aliases)}))
"""Every property name that can be set, aliases included."""
