"""The actor checks again, right before it reads and before it commits, whether a table may be rewritten.

The decider refuses by the same rule (`shared.formats.delta`) and queues nothing; but between its decision and the
rewrite the table may have become another one.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from shared.errors import Unsupported
from shared.formats.delta import ALLOWED_VERSIONS, refusal
from shared.layout.partition_stats import CUBE_TAG
from shared.refusals import RefusalCode
from shared.table import DataFile, TableMetadata, TableProtocol

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


def check_table(location: str, metadata: TableMetadata, protocol: TableProtocol, kind: str = "") -> None:
    """Raise Unsupported for a table that a rewrite could damage, by the decider's own rule.

    kind: of a job on the table as a whole, which a refusal may allow.
    """
    found = refusal(metadata, protocol)
    if found is not None and kind not in found.allows:
        allowed = ALLOWED_VERSIONS if found.code is RefusalCode.PROTOCOL else ""
        raise Unsupported(f"{location}: {found.message}", field=found.subject, allowed=allowed)


def check_files(location: str, files: Sequence[DataFile]) -> None:
    """Raise Unsupported if a file belongs to a clustering that merging would undo."""
    marked = next((file for file in files if CUBE_TAG in file.tags), None)
    if marked is not None:
        raise Unsupported(
            f"{location} holds files of a Z-cube ({marked.path}): merging them would undo their clustering",
            field=CUBE_TAG,
        )
