"""Properties of the actions beside compaction, from clustering and indexes to manifests and statistics."""

from shared.policy import parsers as spelled
from shared.policy.policy import ClusterMode, KeyScope
from shared.policy.property import Property

ACTION_PROPERTIES: tuple[Property, ...] = (
    Property(
        "cluster",
        spelled.choice(ClusterMode, true=ClusterMode.ON, false=ClusterMode.OFF),
        "off",
        "cluster tables that have CLUSTER BY: on (by their format's own OPTIMIZE), cells (by exact rewrites whose cost "
        "does not grow with the table; with cluster-by, Iceberg tables, too) or off",
    ),
    Property(
        "cluster-by",
        spelled.undirected_columns,
        "none",
        "columns by which an Iceberg table is kept in cells, such as a, b, or none",
    ),
    # Below a hundredth of the table, each run would rewrite the rest of it for next to nothing.
    Property(
        "cluster-threshold",
        spelled.share("0.01", "1"),
        "0.25",
        "bytes that are not clustered as a share of those that OPTIMIZE rewrites again, from which on it runs",
        "share",
    ),
    Property(
        "index",
        spelled.switch,
        "off",
        "optimize the index of Qbeast tables: on or off",
    ),
    Property(
        "index-every",
        spelled.duration_or_zero,
        "1 minute",
        "time from a commit to an indexed table until its index is evaluated",
        "s",
    ),
    Property(
        "index-sample",
        spelled.sample_or_off,
        "off",
        "fraction of the rows that sampling queries read: files of which they read too much are rewritten, too; or off",
        "share",
    ),
    Property(
        "index-zone",
        spelled.zone_or_none,
        "none",
        "time zone of the processes that write a Qbeast table whose index has days, such as UTC or Europe/Berlin; or "
        "none",
    ),
    Property(
        "primary-key",
        spelled.undirected_columns,
        "none",
        "columns that identify a row: older rows of the same key are removed; only as a property of the table itself",
    ),
    Property(
        "sequence-by",
        spelled.undirected_columns,
        "none",
        "columns of which the newest row of a key has the greatest values, or none",
    ),
    Property(
        "delete-marker",
        spelled.key_column,
        "none",
        "boolean column that is true in rows that delete their key, or none",
    ),
    Property(
        "key-scope",
        spelled.choice(KeyScope),
        "table",
        "where a primary key is unique: table (it contains all partition columns) or partition (keys of different "
        "partitions are different rows)",
    ),
    Property(
        "deduplicate-every",
        spelled.duration,
        "1 day",
        "minimum time between two automatic removals of older rows",
        "seconds",
    ),
    Property(
        "delete-rows-after",
        spelled.row_expiry,
        "none",
        "age from which on rows are deleted with their whole files, and the column of their time, such as 90 days of "
        "ts, also out of files (90 days of ts, rows), or none; only as a property of the table itself",
    ),
    Property(
        "delete-rows-every",
        spelled.duration,
        "1 day",
        "minimum time between two automatic deletions of rows that are over",
        "seconds",
    ),
    Property(
        "vacuum",
        spelled.switch,
        "off",
        "delete files that no version inside the retention needs: on or off; not as a default of a service or tenant",
    ),
    Property(
        "retain",
        spelled.parse_duration,
        "off",
        "how long removed files are kept, if that is longer than min-retain, or off",
        "seconds",
        {
            "snapshot.base.keep.minutes": spelled.minutes,
            "snapshot.keep.duration": spelled.duration,
        },
    ),
    Property(
        "min-retain",
        spelled.duration_or_zero,
        "7 days",
        "minimum time for which removed files are kept; the format's own (Delta 7 days, Iceberg 5) counts if longer",
        "seconds",
        {"delta.deletedFileRetentionDuration": spelled.interval},
    ),
    Property(
        "reclaim-after",
        spelled.parse_duration,
        "off",
        "time after which removed files and log entries are deleted, at least 24 h, which switches on all that this "
        "needs, or off; not as a default of a service or tenant",
        "seconds",
        {"acid.data.retain.hours": spelled.hours},
    ),
    Property(
        "vacuum-every",
        spelled.duration,
        "1 day",
        "minimum time between two automatic vacuums",
        "seconds",
    ),
    Property(
        "orphans-every",
        spelled.parse_duration,
        "7 days",
        "time between vacuums that also list the store, for files that no commit names, or off",
        "seconds",
    ),
    Property(
        "checkpoint-every",
        spelled.count_or_off,
        "off",
        "commits without a checkpoint after which Lakewright writes one, or off",
        "commits",
    ),
    Property(
        "rewrite-manifests-at",
        spelled.count_or_off,
        "off",
        "manifests beyond those that `commit.manifest.target-size-bytes` needs at which an Iceberg table's manifests "
        "are rewritten, or off",
        "manifests",
    ),
    Property(
        "compute-statistics-at",
        spelled.share_or_off("0.001", "100"),
        "off",
        "share of changed rows at which an Iceberg table's statistics of columns are computed again, or off",
        "share",
    ),
    Property(
        "merge-deletes-at",
        spelled.count_or_off,
        "off",
        "delete files by position to be merged at which an Iceberg table's are, or off",
        "delete files",
    ),
    Property(
        "convert-deletes-at",
        spelled.count_or_off,
        "off",
        "delete files by value at which an Iceberg table's become positions, before delete files are merged, or off",
        "delete files",
    ),
    Property(
        "yield-to-writers",
        spelled.switch,
        "off",
        "let catalogs that can undo rewrites of an Iceberg table for writers that began before them: on or off; only "
        "as a property of the table itself",
    ),
)
"""A part of `shared.policy.property_table.PROPERTIES`, which is the whole table."""
