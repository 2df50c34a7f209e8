"""Delta tables that no rewrite may touch: one rule for decider, actor and command line, by metadata and protocol alone.

A table feature that is not known to be safe is unsafe: the list names those whose meaning an exact rewrite was tested
to preserve, or which concern it not at all. Partitions that are refused for
their files are decided in `shared/layout/eligibility.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.formats.qbeast.names import LAST_REVISION
from shared.formats.qbeast.refusal import index_refusal
from shared.jobs.payload import CHECKPOINT, CLUSTER, VACUUM
from shared.layout.key_depth import KeyRange
from shared.layout.key_values import is_sortable, key_range
from shared.policy.properties import first_sort_column
from shared.refusals import Refusal, RefusalCode
from shared.table import PartitionColumn, TableMetadata, TableProtocol

FORMAT = "delta"
"""Name of the format: in metadata, in jobs, and in what actors announce."""

SAFE_FEATURES = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Table features that a rewrite by Delta's own transaction keeps intact."""

PHYSICAL_NAME = "delta.columnMapping.physicalName"
"""Name of a column in files and statistics, in the metadata of its field, where columns are mapped."""

_STATISTICS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
"""Property without which checkpoints hold the bounds of files in a form that the decider does not read."""


def sort_key(
    configuration: Mapping[str, str], fields: Iterable[Mapping[str, Any]], column: str | None = None
) -> PartitionColumn | None:
    """Return the first column of a table's sort order, None if it has none or files have no comparable bounds of it.

    `fields` are the table's schema. `column` takes the place of the order that the table names.
    """
    wanted = column or first_sort_column(configuration)
    if wanted is None or configuration.get(_STATISTICS_AS_JSON, "true").lower() == "false":
        return None
    for field in fields:
        name, kind = field.get("name"), field.get("type")
        if isinstance(name, str) and name.lower() == wanted.lower() and isinstance(kind, str) and is_sortable(kind):
            properties = field.get("metadata")
            physical = properties.get(PHYSICAL_NAME, name) if isinstance(properties, Mapping) else name
            return PartitionColumn(name, physical, kind) if isinstance(physical, str) else None
    return None


def sort_range(key: PartitionColumn, statistics: Mapping[str, Any]) -> KeyRange | None:
    """Return the range of the sort key by a file's statistics, None where they have no bounds of it."""
    low, high = (statistics.get(section) for section in ("minValues", "maxValues"))
    if not (isinstance(low, Mapping) and isinstance(high, Mapping)):
        return None
    return key_range(low.get(key.physical), high.get(key.physical), key.type)


_FEATURE_PROPERTY = "delta.feature."
_COORDINATOR_PROPERTY = "delta.coordinatedCommits."
_CATALOG_FEATURES = ("catalogManaged", "catalogOwned", "catalogOwned-preview", "coordinatedCommits-preview")
"""Features under which a catalog makes the commits."""


def catalog_feature(properties: Mapping[str, Any]) -> str:
    """Return the property by which a catalog says that it makes a table's commits, empty if there is none.

    A catalog shows it before the log is read, which may be elsewhere.
    """
    named = (f"{_FEATURE_PROPERTY}{feature}" for feature in _CATALOG_FEATURES)
    found = (name for name in properties if name.startswith(_COORDINATOR_PROPERTY))
    return next((name for name in (*named, *sorted(found)) if properties.get(name)), "")


XTABLE = "XTABLE_METADATA"
"""Property of a log that Apache XTable writes from the metadata of another format, and of what it writes for others."""

_CATALOG = "Use the maintenance of the catalog"
_ICEBERG = "Iceberg readers need metadata that a rewrite does not write"
CLUSTERING = "clustering"
"""Feature of a table with `CLUSTER BY` (liquid clustering), whose files Delta's own OPTIMIZE clusters."""

_CLUSTERING = (
    "Set lakewright.cluster=on, and Lakewright runs Delta's own OPTIMIZE, which keeps the clustering, or "
    "lakewright.cluster=cells, and it keeps the order by rewrites of its own; or remove the "
    "clustering with ALTER TABLE ... CLUSTER BY NONE and ALTER TABLE ... DROP FEATURE clustering"
)
_ALLOWED_IF_CLUSTERED = (CLUSTER, VACUUM, CHECKPOINT)
"""Kinds of jobs on a clustered table: none of them merges its files as if they had no order."""

_KNOWN_REASONS: Mapping[str, tuple[str, str]] = {
    "catalogManaged": ("a catalog coordinates its commits, which is not supported", _CATALOG),
    "coordinatedCommits-preview": ("a commit coordinator coordinates its commits, which is not supported", _CATALOG),
    CLUSTERING: ("merging its files would undo the clustering", _CLUSTERING),
    **{f"icebergCompatV{number}": (_ICEBERG, "Run OPTIMIZE in the table's own engine") for number in (1, 2, 3)},
}
_UNKNOWN_REASON = "rewrites of tables with this feature are not known to be safe"
_UNKNOWN_ACTION = "Run OPTIMIZE in the table's own engine, or drop the feature if it is unused"

_LAST_LEGACY_READER = 2
_LAST_LEGACY_WRITER = 6
_FEATURES_READER = 3
_FEATURES_WRITER = 7
ALLOWED_VERSIONS = "reader 1-3 with writer 7, or reader 1-2 with writer 1-6"
"""The protocol versions of Delta whose meaning is known here."""


def refusal(metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
    """Return why a table must not be rewritten, None if it may be; of several reasons the first one."""
    if not _is_known_version(protocol):
        versions = f"reader {protocol.min_reader}, writer {protocol.min_writer}"
        return Refusal(
            RefusalCode.PROTOCOL,
            "protocol",
            f"the table has protocol {versions}, which is unknown (known: {ALLOWED_VERSIONS})",
            "Update Lakewright",
        )
    if XTABLE in metadata.configuration:
        return Refusal(
            RefusalCode.FEATURE,
            "generated-metadata",
            f"the log is generated from the metadata of another format by Apache XTable ({XTABLE} is set), which would "
            "bring replaced files back and remove ours",
            "Optimize the table in the format that it is written in",
        )
    features = protocol.reader_features | protocol.writer_features
    unsafe = sorted(features - SAFE_FEATURES - {CLUSTERING})
    if unsafe:
        return _feature_refusal(unsafe[0])
    if CLUSTERING in features:
        # Clustering would move the rows of a Qbeast index.
        allowed = () if LAST_REVISION in metadata.configuration else _ALLOWED_IF_CLUSTERED
        return _feature_refusal(CLUSTERING, allowed)
    if LAST_REVISION in metadata.configuration:
        return index_refusal(metadata)
    return None


def _feature_refusal(feature: str, allows: tuple[str, ...] = ()) -> Refusal:
    reason, action = _KNOWN_REASONS.get(feature, (_UNKNOWN_REASON, _UNKNOWN_ACTION))
    return Refusal(RefusalCode.FEATURE, feature, f"the table has the feature {feature!r}: {reason}", action, allows)


def _is_known_version(protocol: TableProtocol) -> bool:
    reader, writer = protocol.min_reader, protocol.min_writer
    is_legacy = 1 <= reader <= _LAST_LEGACY_READER and 1 <= writer <= _LAST_LEGACY_WRITER
    return is_legacy or (1 <= reader <= _FEATURES_READER and writer == _FEATURES_WRITER)
