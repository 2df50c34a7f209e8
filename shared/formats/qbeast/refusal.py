"""Jobs that a table with a Qbeast index permits, by metadata and protocol alone.

No exact rewrite: it would write files without index data. Whether the library may rewrite it depends on what the table
uses: the newest release reads data files as they are, and knows nothing of features that change what a file means.
"""

from shared.formats.qbeast.names import LAST_REVISION
from shared.jobs.payload import CHECKPOINT, INDEX, VACUUM
from shared.refusals import Refusal, RefusalCode
from shared.table import TableMetadata, TableProtocol

DELETION_VECTORS = "deletionVectors"
"""The table feature under which rows may be deleted outside of data files."""

COLUMN_MAPPING = "delta.columnMapping.mode"
"""The property under which columns have other names in files than in the table."""

LIBRARY_FEATURES = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "domainMetadata",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
    }
)
"""Table features under which a data file holds all its rows, under the names and types of the table's columns."""

_ALLOWED = (INDEX, VACUUM, CHECKPOINT)


def index_refusal(metadata: TableMetadata, protocol: TableProtocol) -> Refusal:
    """Return why no exact rewrite may touch a table with an index, and which jobs may."""
    found = library_refusal(metadata, protocol)
    if found is not None:
        return found
    return Refusal(
        RefusalCode.QBEAST,
        LAST_REVISION,
        f"this is a Qbeast table ({LAST_REVISION} is set): merging its files would destroy its index",
        "Set lakewright.index=on, and Lakewright has Qbeast's library optimize the index; or unset "
        f"{LAST_REVISION} if the index is no longer used",
        _ALLOWED,
    )


def library_refusal(metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
    """Return why not even the library may rewrite the table, None if it may."""
    features = protocol.reader_features | protocol.writer_features
    # The newest release does not read deletion vectors: a rewrite would bring deleted rows back.
    if DELETION_VECTORS in features:
        return _refusal(
            DELETION_VECTORS,
            "the table may have deletion vectors, which the library does not read: deleted rows would return",
            "Purge the deleted rows and drop the feature deletionVectors",
        )
    unknown = sorted(features - LIBRARY_FEATURES)
    if unknown:
        return _refusal(
            unknown[0],
            f"the table has the feature {unknown[0]!r}, which the library does not know",
            "Drop the feature if it is unused",
        )
    if metadata.configuration.get(COLUMN_MAPPING, "none") != "none":
        return _refusal(
            COLUMN_MAPPING,
            "the table maps its columns to other names in files, which the library does not read",
            "Write it again without column mapping",
        )
    if metadata.partition_columns:
        return _refusal("partitions", "the table is partitioned, which the library rejects", "Write it unpartitioned")
    return None


def _refusal(subject: str, reason: str, action: str) -> Refusal:
    return Refusal(RefusalCode.QBEAST, subject, reason, action)
