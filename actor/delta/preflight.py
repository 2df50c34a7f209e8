"""Tables that we refuse, each with the reason: a feature that is not known to be safe is unsafe.

The list names the table features whose meaning an exact rewrite was tested to preserve, or which concern it not at all.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from shared.errors import Unsupported
from shared.table import DataFile, TableMetadata, TableProtocol

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

_REASONS = {
    "catalogManaged": "its commits belong to a catalog, which we do not speak to",
    "coordinatedCommits-preview": "its commits belong to a coordinator, which we do not speak to",
    "clustering": "merging its files would undo the clustering; OPTIMIZE of the table's own engine keeps it",
    "icebergCompatV1": "Iceberg readers depend on metadata that we do not write",
    "icebergCompatV2": "Iceberg readers depend on metadata that we do not write",
    "icebergCompatV3": "Iceberg readers depend on metadata that we do not write",
}
_LAST_LEGACY_READER = 2
_LAST_LEGACY_WRITER = 6
_FEATURES_READER = 3
_FEATURES_WRITER = 7
_QBEAST = "qbeast.lastRevisionID"
_ZCUBE = "ZCUBE_ID"
S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})


def check_location(location: str, *, allow_s3: bool) -> None:
    """Raise Unsupported for a location whose log store cannot keep two writers apart."""
    scheme = urlsplit(location).scheme
    if scheme in S3_SCHEMES and not allow_s3:
        raise Unsupported(
            f"{location} is on S3, where Delta's default log store is safe for a single driver only: it could replace "
            "a commit of ours, and data would be lost; give every writer a log store that puts conditionally (delta-rs "
            "does; see docs/object-stores.md), then set LAKEWRIGHT_ALLOW_S3=true for the actors",
            field="location",
            allowed="LAKEWRIGHT_ALLOW_S3=true",
        )


def check_table(location: str, metadata: TableMetadata, protocol: TableProtocol) -> None:
    """Raise Unsupported for a table that a rewrite could damage."""
    _check_versions(location, protocol)
    for feature in sorted((protocol.reader_features | protocol.writer_features) - SAFE_FEATURES):
        reason = _REASONS.get(feature, "rewriting tables with this feature has not been shown to be safe")
        raise Unsupported(f"{location} has the table feature {feature!r}: {reason}", field=feature)
    if _QBEAST in metadata.configuration:
        raise Unsupported(
            f"{location} is a Qbeast table ({_QBEAST} is set): merging its files would destroy its index", field=_QBEAST
        )


def _check_versions(location: str, protocol: TableProtocol) -> None:
    reader, writer = protocol.min_reader, protocol.min_writer
    legacy = 1 <= reader <= _LAST_LEGACY_READER and 1 <= writer <= _LAST_LEGACY_WRITER
    featured = 1 <= reader <= _FEATURES_READER and writer == _FEATURES_WRITER
    if not (legacy or featured):
        raise Unsupported(
            f"{location} has protocol reader {reader}, writer {writer}, which is not a version known here",
            field="protocol",
            allowed="reader 1-3 with writer 7, or reader 1-2 with writer 1-6",
        )


def check_files(location: str, files: Sequence[DataFile]) -> None:
    """Raise Unsupported if a file belongs to a clustering that merging would undo."""
    marked = next((file for file in files if _ZCUBE in file.tags), None)
    if marked is not None:
        raise Unsupported(
            f"{location} holds files of a Z-cube ({marked.path}): merging them would undo their clustering",
            field=_ZCUBE,
        )
