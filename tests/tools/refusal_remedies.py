"""What a user does about each reason for which Lakewright does nothing, and the module that decides it."""

from collections.abc import Mapping

from decider.api.sns_confirmation import ConfirmationResult
from decider.decide.checkpoint import CheckpointReason
from decider.decide.deduplicate import DeduplicateReason
from decider.decide.expire import ExpiryReason
from decider.decide.index import IndexReason
from decider.decide.set_properties import PropertiesReason
from decider.decide.vacuum import VacuumReason
from decider.events.table_hint import IgnoredReason
from decider.optimize.on_demand import RequestIgnored
from decider.optimize.property_trigger import TriggerOutcome
from decider.tracking.refresh import REMEDIES, UNREADABLE
from shared.errors import Corrupt, NoTable
from shared.layout.clustered_files import ClusterReason
from shared.layout.delete_files import DeleteFilesReason
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.manifest_files import ManifestReason
from shared.layout.sort_planner import SortReason
from shared.layout.statistics_age import StatisticsReason

RULE = "shared/formats/delta.py"
LOG = "decider/formats/delta/metadata.py"
REFRESH = "decider/tracking/refresh.py"
BOUNDARY = "shared/paths/boundary.py"
PREFLIGHT = "actor/formats/delta/preflight.py"
LOG_READER = "decider/formats/delta/log.py"
CONDITIONAL_PUT = "actor/formats/delta/conditional_put.py"
OUTPUT_FORMAT = "actor/formats/delta/output_format.py"
WRITE = "actor/formats/delta/write.py"
EXPIRE = "actor/row_expiry.py"
EXPIRY_COLUMN = "shared/policy/expiry_column.py"
ICEBERG = "shared/formats/iceberg/refusal.py"
INDEX = "shared/formats/qbeast/status.py"
ICEBERG_METADATA = "shared/formats/iceberg/metadata.py"
CATALOGS = "decider/formats/iceberg/catalogs.py"
UNITY = "shared/unity/table_info.py"
UNITY_NAME = "decider/formats/delta/named_table.py"
ICEBERG_FOLDERS = "actor/formats/iceberg/catalogs.py"
ENGINE = "Run OPTIMIZE in the table's own engine"

READS: tuple[tuple[str, str, str, str], ...] = (
    ("the log has a gap that no checkpoint covers, or is damaged", "none", LOG_READER, REMEDIES[Corrupt]),
    ("data files in another format than Parquet", "none", LOG, "Nothing; only Parquet is read"),
    ("a column mapping mode other than none, name and id", "none", LOG, "Update Lakewright"),
    (
        "there is no table at the location",
        "none; `missing` is true",
        REFRESH,
        REMEDIES[NoTable],
    ),
    (
        "the location, its log or a data file lies outside the allowed roots",
        "none",
        BOUNDARY,
        "Extend `LAKEWRIGHT_ROOTS`, deep-clone the table, or set `LAKEWRIGHT_ALLOW_EXTERNAL_FILES=true`",
    ),
    (
        "the table is on S3 and the actors do not allow it",
        "none",
        PREFLIGHT,
        "Give every writer a log store with conditional puts ([how](object-stores.md)), then set `LAKEWRIGHT_ALLOW_S3`",
    ),
    (
        "the table was dropped and created again after the decision",
        "none",
        PREFLIGHT,
        "Nothing; the decider decides on the new table",
    ),
    (
        "the S3 server replaces an object despite the condition `If-None-Match: *`",
        "none",
        CONDITIONAL_PUT,
        "Use a server with conditional puts ([how](object-stores.md)): without them a commit can be lost",
    ),
    ("a view of an Iceberg catalog", f"`{UNREADABLE}`", CATALOGS, "Register the tables that it reads"),
    (
        "a view, or a table in another format than Delta, by its name in a Unity catalog",
        f"`{UNREADABLE}`",
        UNITY,
        "Register only Delta tables by name ([Unity](unity.md))",
    ),
    (
        "a table for which a Unity catalog has a property of catalog-managed commits",
        f"`{UNREADABLE}`",
        UNITY,
        "Let the catalog optimize the table",
    ),
    (
        "a table of a Unity catalog outside of the catalog's `locations`",
        f"`{UNREADABLE}`",
        UNITY,
        "Extend `locations` ([when](unity.md#which-locations-are-allowed))",
    ),
    (
        "a table of a Unity catalog below a root of paths",
        f"`{UNREADABLE}`",
        UNITY_NAME,
        "Register the table by its location, or remove that root",
    ),
    ("the metadata of an Iceberg table are damaged", "none", ICEBERG_METADATA, REMEDIES[Corrupt]),
    (
        "an Iceberg table without a catalog, if these are not allowed",
        "none",
        ICEBERG_FOLDERS,
        "Use a catalog, or set `LAKEWRIGHT_ICEBERG_FOLDERS=true` ([when](iceberg.md))",
    ),
    ("values finer than microseconds, which Spark would truncate", "none", OUTPUT_FORMAT, ENGINE),
    (
        "a rewrite would change how values are stored: a physical type, a null, a field id",
        "none",
        OUTPUT_FORMAT,
        ENGINE,
    ),
    (
        "rows that a deletion by age would take are newer than their files' statistics say, or have no time",
        "none",
        EXPIRE,
        "Write these files again; all others are deleted",
    ),
    (
        "`lakewright.delete-rows-after` names a column that holds no time, or a partition column with other values",
        "none",
        EXPIRY_COLUMN,
        "Name another column; no row is deleted",
    ),
    (
        "files that a removal by key reads spell their partition in ways that readers take for different values",
        "none",
        WRITE,
        "Rewrite the files with one spelling; merges need nothing, because each is of one spelling",
    ),
)
"""Refusals of single reads: reason, code, where it is decided, and the remedy."""

REASONS: Mapping[DecisionReason, str] = {
    Reason.NO_NEIGHBORS: "Nothing; the files between them are full, or of another time window",
    SortReason.WITHIN_DEPTH: "Nothing; lower `lakewright.max-depth` to sort earlier",
    SortReason.NO_SORT_ORDER: "Set `lakewright.sort-by` or `lakewright.zorder-by` in the table's own properties",
    SortReason.CURVE_OF_OTHERS: "Run `OPTIMIZE ... ZORDER BY` in the table's own engine",
    Reason.DISABLED: "Set `lakewright.enabled=true`",
    Reason.SWITCHED_OFF: "Set the action's own property, such as `lakewright.vacuum=on`, or request a run",
    Reason.NOT_FOR_FORMAT: "Use the engine's own procedures ([Iceberg](iceberg.md#not-implemented))",
    Reason.CLUSTERED_TABLE: "Nothing; [clustering](clustering.md) does what compaction does elsewhere",
    Reason.INDEXED_TABLE: "Nothing; the [index](qbeast.md) is optimized by its own rules",
    Reason.OWN_COMMIT: "Nothing",
    Reason.NO_DATA_CHANGE: "Nothing",
    Reason.NO_SMALL_FILES: "Nothing",
    Reason.WITHIN_TOLERANCE: "Lower `lakewright.tolerance` or `lakewright.max-small-files`, or use `--force`",
    Reason.NO_PROMOTION: "Nothing; lower `lakewright.min-input-files` to merge earlier",
    Reason.ALREADY_COMPACTED: "Nothing",
    Reason.FILTERED: "Change `lakewright.filter`",
    Reason.DEFERRED_TO_WRITERS: "Set `lakewright.dml-policy` to `defer` or `always`",
    Reason.REFUSED_FILES: "See the refused files, under Files; `--force` tries them again",
    Reason.REFUSED: "See the table's refusal, under Tables",
    Reason.CLUSTERED: "Run `OPTIMIZE ... ZORDER BY` in the table's own engine",
    VacuumReason.NOTHING_EXPIRED: "Nothing; to delete earlier, lower every [retention](storage.md#retention)",
    VacuumReason.VACUUMED_RECENTLY: "Nothing; lower `lakewright.vacuum-every` to delete more often",
    VacuumReason.SEVERAL_NAMES: "Drop the name that is not used from its catalog, and unregister it; the decision has "
    "the other names",
    DeduplicateReason.NO_ROWS_ADDED: "Nothing",
    DeduplicateReason.COMPARED_RECENTLY: "Nothing; lower `lakewright.deduplicate-every` to remove rows more often",
    ExpiryReason.NO_TIME_WENT_ON: "Nothing",
    ExpiryReason.EXPIRED_RECENTLY: "Nothing; lower `lakewright.delete-rows-every` to delete rows more often",
    ClusterReason.NOTHING: "Nothing",
    ClusterReason.FEW_FILES: "Nothing; lower `lakewright.min-input-files` to cluster earlier",
    ClusterReason.BELOW_THRESHOLD: "Nothing; lower `lakewright.cluster-threshold` to cluster earlier",
    ClusterReason.BELOW_RUN: "Nothing; `lakewright cluster NAME` makes a run at once",
    ClusterReason.NOT_CLUSTERED: "Set `CLUSTER BY`, or unset `lakewright.cluster`",
    IndexReason.NOTHING_ELIGIBLE: "Nothing",
    IndexReason.DOUBLED: "Stop the writers, check the rows, and `RESTORE` the version that the decision names "
    "([Qbeast](qbeast.md#what-is-guaranteed)); afterwards let only one optimizer rewrite the table",
    IndexReason.REFUSED: "Follow the remedy that `lakewright tables index` shows",
    IndexReason.NOT_INDEXED: "Unset `lakewright.index`",
    CheckpointReason.FEW_COMMITS: "Nothing; lower `lakewright.checkpoint-every` for more checkpoints",
    CheckpointReason.NOT_KNOWN: "Nothing; the next timer reads it again",
    DeleteFilesReason.FEW: "Nothing; lower `lakewright.merge-deletes-at` or `lakewright.convert-deletes-at`",
    DeleteFilesReason.NOT_KNOWN: "Nothing; unset `lakewright.merge-deletes-at` on Delta tables",
    ManifestReason.FEW: "Nothing; lower `lakewright.rewrite-manifests-at` to rewrite earlier",
    PropertiesReason.ONLY_ON_REQUEST: "Nothing; apply the advice with `lakewright advice apply`",
    ManifestReason.MANIFESTS_NOT_KNOWN: "Nothing; unset `lakewright.rewrite-manifests-at` on Delta tables",
    StatisticsReason.NEW: "Nothing; lower `lakewright.compute-statistics-at` to compute them earlier",
    StatisticsReason.NOT_KNOWN: "Nothing; unset `lakewright.compute-statistics-at` on Delta tables",
}
"""What to do about each reason that leaves a partition, or a table as a whole, as it is."""

ON_DEMAND = "decider/optimize/on_demand.py"
REQUESTS: Mapping[RequestIgnored, str] = {
    RequestIgnored.NOTHING_TO_DO: "See `reasons` of the response",
    RequestIgnored.NO_PARTITION: "Name a partition as `lakewright tables partitions TABLE` lists it",
    RequestIgnored.ALREADY_RUNNING: "Wait for the running jobs",
    RequestIgnored.DISABLED: "Repeat the request with `force`",
    RequestIgnored.REFUSED: "See the table's refusal, under Tables",
}

TRIGGER = "decider/optimize/property_trigger.py"
STARTED = frozenset({TriggerOutcome.PENDING, TriggerOutcome.STARTED})
TRIGGERS: Mapping[TriggerOutcome, str] = {
    TriggerOutcome.AUTO_IS_ON: "Set `lakewright.enabled=false` for manual runs only",
    TriggerOutcome.ALREADY_RUNNING: "Wait for the running jobs",
    TriggerOutcome.UNKNOWN: "Set one of the [types](properties.md#one-run-on-demand)",
    TriggerOutcome.NOTHING_TO_DO: "Nothing",
    TriggerOutcome.FIRST_SIGHT: "Unset the property and set it again",
    TriggerOutcome.REFUSED: "See the table's refusal, under Tables",
    TriggerOutcome.PROPERTY_REMOVED: "Set the property to start a run",
}

FORMATS = "decider/events/formats"
RESOLVER = "decider/events/resolver.py"
EVENTS: Mapping[IgnoredReason, tuple[str, str, str]] = {
    IgnoredReason.NOT_A_COMMIT: ("not a commit event", FORMATS, "Filter such events at their source"),
    IgnoredReason.UNKNOWN_EVENT: ("unknown event type", FORMATS, "Filter such events at their source"),
    IgnoredReason.TEST_EVENT: ("test event of the source", FORMATS, "Nothing"),
    IgnoredReason.BAD_KEY: ("object key that cannot be a table location", FORMATS, "Rename the table's folder"),
    IgnoredReason.BAD_NAME: ("catalog name that cannot be a table name", FORMATS, "Register the table by location"),
    IgnoredReason.NOT_A_LOCATION: ("text that is neither a table name nor a URI", FORMATS, "Correct the sender"),
    IgnoredReason.ICEBERG: (
        "metadata file of an Iceberg table that this decider has not read",
        RESOLVER,
        "Connect its catalog; the sweep finds the commit",
    ),
    IgnoredReason.UNKNOWN_TABLE: ("unknown table name", RESOLVER, "Register the table under that name"),
    IgnoredReason.OUTSIDE_ROOTS: ("location outside the allowed roots", RESOLVER, "Extend `LAKEWRIGHT_ROOTS`"),
    IgnoredReason.UNKNOWN_LIMIT: (
        "too many unknown locations in one delivery, or too many being probed",
        RESOLVER,
        "Nothing; the next event or discovery finds the table",
    ),
    IgnoredReason.NO_TABLE: ("no table at the location", RESOLVER, "Create the table, or correct the sender"),
    IgnoredReason.REMOVED: ("table that a person removed", RESOLVER, "Register it again: `lakewright tables add`"),
    IgnoredReason.UNREADABLE: ("unreadable location", RESOLVER, "Check `LAKEWRIGHT_STORE_OPTIONS` and the credentials"),
}

SNS = "decider/api/sns_confirmation.py"
CONFIRMATIONS: Mapping[ConfirmationResult, tuple[str, str]] = {
    ConfirmationResult.NOT_LISTED: ("topic not allowed", "Add its ARN to `LAKEWRIGHT_SNS_TOPICS`"),
    ConfirmationResult.BAD_URL: ("confirmation URL of another host", "Nothing; the request is forged"),
}
