"""The types of a table: its log, decoded once into values that the rest of the code can trust.

Sizes are bytes, times are milliseconds since 1970-01-01 UTC (`*_ms`), versions count from 0.
A path is kept exactly as the log spells it: it is an identity, never a location to open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple, NewType

from shared.refusals import Refusal

TableId = NewType("TableId", str)
"""Stable name of a table inside Lakewright: a readable slug and a hash of the location."""

TABLE_NAME = r"[A-Za-z0-9_-]{1,128}(\.[A-Za-z0-9_-]{1,128}){0,3}"
"""Up to four parts, as in catalogs and events; names are parts of URLs."""

PartitionKey = NewType("PartitionKey", str)
"""Canonical text of the values of a partition (see `partitions.partition_key`); `{}` if unpartitioned."""


@dataclass(frozen=True, slots=True)
class TableRef:
    """A registered table: `location` is a canonical URI (`file:///…`, `s3://bucket/key`) without a final slash.

    `properties` were set at its registration and take precedence over the table's own. `is_discovered`: it was not
    registered by a call, so name and tenant are derived from its location. `changed_ms`: when its
    registration changed last, 0 if that is not known. `is_declared`: the tables file has it, and only that changes it;
    `was_registered`: a call had registered it before. `declared_paused`: whether the file pauses it; None: it does not
    say.
    """

    id: TableId
    name: str
    location: str
    tenant: str = "default"
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    is_discovered: bool = False
    changed_ms: int = field(default=0, compare=False)
    is_declared: bool = False
    was_registered: bool = False
    declared_paused: bool | None = None


@dataclass(frozen=True, slots=True)
class FileKey:
    """The logical identity of a live file: a path together with the deletion vector that applies to it."""

    path: str
    dv_id: str | None = None


@dataclass(frozen=True, slots=True)
class DataFile:
    """One live data file.

    `rows` counts the physical rows (None where the log has no statistics), `deleted_rows` those that the deletion
    vector hides. `tags` are the AddFile's tags. `key_range`: least and greatest value of the key that the table is
    sorted by (see `shared.layout.key_values`), None where it has none or the log does not know. `spelling`: how its
    partition values differ for some readers from others of the same partition; only files of one are merged.
    """

    path: str
    size_bytes: int
    partition: PartitionKey
    dv_id: str | None = None
    rows: int | None = None
    deleted_rows: int = 0
    modified_ms: int = 0
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    key_range: tuple[int, int] | None = None
    spelling: str = ""

    @property
    def key(self) -> FileKey:
        """Identity under which the log adds and removes this file."""
        return FileKey(self.path, self.dv_id)


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A removal in the log; size, partition and tags are None where the writer omitted them.

    `key_range` as in the file that it removes; `has_bounds`: the writer repeated the file's minima and maxima.
    """

    path: str
    dv_id: str | None = None
    size_bytes: int | None = None
    partition: PartitionKey | None = None
    deleted_rows: int = 0
    tags: Mapping[str, str] | None = field(default=None, hash=False)
    key_range: tuple[int, int] | None = None
    has_bounds: bool = False

    @property
    def key(self) -> FileKey:
        """Identity of the removed file."""
        return FileKey(self.path, self.dv_id)


class DeleteKind(StrEnum):
    """Content of a delete file: positions of deleted rows, one file's deletion vector, or values of deleted rows."""

    POSITION = "position"
    VECTOR = "vector"
    EQUALITY = "equality"


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A delete file that is a file of its own, as in Iceberg; `rows` counts its entries.

    Whether it hides a row depends on data files that it need not name, so it counts for its partition as a whole.
    """

    path: str
    partition: PartitionKey
    kind: DeleteKind
    rows: int = 0

    @property
    def deleted_rows(self) -> int:
        """The rows that it hides; 0 for values, of which one may hide any number."""
        return 0 if self.kind is DeleteKind.EQUALITY else self.rows


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One partition column: `name` as users write it, `physical` as the log's partitionValues spell it, Delta type."""

    name: str
    physical: str
    type: str


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The part of a table's metadata that decisions depend on; `format` names the format that decoded it.

    `sort_key`: the first column of the sort order that the table's own properties name, where files have bounds of it.
    `schema_digest`: changes with the schema; empty where it is not known. `bounds_change`: properties with which files
    get bounds of a column whose ranges were asked for, where the table's own leave it out.
    """

    table_uuid: str
    partition_columns: tuple[PartitionColumn, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict, hash=False)
    format: str = ""
    sort_key: PartitionColumn | None = None
    schema_digest: str = ""
    bounds_change: Mapping[str, str] = field(default_factory=dict, hash=False)


def schema_digest(schema: str) -> str:
    """Return the digest of a schema's text, as the format writes it."""
    return blake2b(schema.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class TableProtocol:
    """Reader and writer versions with the named features (empty below reader 3 / writer 7)."""

    min_reader: int
    min_writer: int
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CommitOrigin:
    """Who of ours wrote a commit: the job and the fencing token carried in its userMetadata."""

    job: str
    token: int


@dataclass(frozen=True, slots=True)
class Position:
    """Place in the history of one table: right after one commit of it.

    Positions of one table are totally ordered by `version`, which grows with every commit; how much it grows is the
    format's business, so only the format computes with it. `digest` names the commit by its content (empty: not
    known): a table made again at the same place has the same versions and other digests.
    Delta: version and digest of the commit. Iceberg: sequence number and snapshot id.
    """

    version: int
    digest: str = ""

    def __lt__(self, other: "Position") -> bool:
        """Return whether this position comes before another one of the same table."""
        return self.version < other.version


@dataclass(frozen=True, slots=True)
class ExaminedTable:
    """State of a table that a job examined to its end, leaving work there; `digest`: of its position.

    waits_for_data: what was left may succeed once others removed data files; otherwise it never does.
    """

    digest: str
    waits_for_data: bool = True


NOTHING_EXAMINED: Mapping[str, ExaminedTable] = MappingProxyType({})
"""States by the kind of job where none is known."""


MAX_VERSION = 2**63 - 1
"""The greatest version: formats count in 64 bits."""

BEFORE_FIRST = Position(-1)
"""The position before a table's first commit."""


@dataclass(frozen=True, slots=True)
class VacuumMark:
    """The end of a vacuum in the history: what was removed before `until_ms` is gone from the store.

    `with_orphans`: files that no commit names are gone, too.
    """

    until_ms: int
    with_orphans: bool = False


class CellReport(NamedTuple):
    """Bytes that are due after a run on a table in cells, and files of others that it left where they are."""

    left_bytes: int
    settled_files: int
    settled_bytes: int


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table, decoded.

    `data_change` is true if any file action carries dataChange=true; `origin` is set on our own commits. `digest` names
    the commit by its content: a table that was dropped and made again has the same versions and other commits.
    `metadata` and `protocol` are set only where this commit changes them. `execution_ms` is how long its command ran,
    0 where the log does not record it. `external` is the path of a file added outside of the table that may not be read
    there, empty if there is none. `added_deletes` and `removed_deletes` are delete files. `vacuum` is set on the commit
    that ends a vacuum, `deduplicated_version` on one that ends a removal of older rows: up to which all were compared.
    `superseded_files`: files beside data files that only versions before this one need. `cells`: what a run on a table
    in cells reports, None for any other commit.
    """

    version: int
    timestamp_ms: int
    operation: str
    added: tuple[DataFile, ...] = ()
    removed: tuple[RemovedFile, ...] = ()
    metadata: TableMetadata | None = None
    protocol: TableProtocol | None = None
    data_change: bool = True
    origin: CommitOrigin | None = None
    digest: str = ""
    execution_ms: int = 0
    external: str = ""
    added_deletes: tuple[DeleteFile, ...] = ()
    removed_deletes: tuple[DeleteFile, ...] = ()
    vacuum: VacuumMark | None = None
    deduplicated_version: int | None = None
    superseded_files: int = 0
    cells: CellReport | None = None

    @property
    def position(self) -> Position:
        """The position that this commit leads to."""
        return Position(self.version, self.digest)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All live files of one version, each key once; `digest` is its commit's, empty if it was cleaned up.

    `deletes` are its delete files, where these are files of their own.
    `refusal` is why the table must not be rewritten at this version, by the rule of its format.
    """

    version: int
    timestamp_ms: int
    metadata: TableMetadata
    protocol: TableProtocol
    files: tuple[DataFile, ...]
    digest: str = ""
    refusal: Refusal | None = None
    deletes: tuple[DeleteFile, ...] = ()

    @property
    def position(self) -> Position:
        """The position of this version."""
        return Position(self.version, self.digest)
