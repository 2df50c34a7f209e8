"""The port of a table format: all that the decider asks of one, and what each answer promises.

A format is a folder beside this file plus one line in `registry`; nothing else in the decider knows its name. The suite
`tests/contract/formats` states this contract as tests, and every format passes it.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from decider.formats.metadata_folders import MetadataFolders
from decider.formats.rewrites import RewritePage
from decider.state.file_columns import LiveFiles
from decider.storage.object_reads import ObjectReader, ReadMeter
from decider.storage.stores import ObjectStores
from shared.jobs.options import VacuumOptions
from shared.layout.upkeep import UpkeepFound
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy
from shared.refusals import Refusal
from shared.table import NOTHING_EXAMINED, Commit, ExaminedTable, Position, Snapshot, TableMetadata, TableProtocol

MAX_SCANNED = 1_000
"""Commits that one page of rewrites examines; at the read-ahead and 20 ms a request that is a good second."""


@dataclass(frozen=True, slots=True)
class TableTotals:
    """Live files of one position and their total size in bytes, as the writer of that position counted them."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class HistoryEnd:
    """The end of a history: why `changes` yielded nothing after a position.

    is_end: nothing, the position is the newest. lost: sentence naming the commits that can no longer be read, empty if
    none. Neither: a commit has appeared meanwhile, so request the changes again.
    """

    is_end: bool = False
    lost: str = ""


@dataclass(frozen=True, slots=True)
class RetainedHistory:
    """The positions whose commits can still be read one after the other, ascending; digests may be left empty.

    is_whole: the first of them is the table's first commit. missing: first and last version of the newest gap before
    them, None if there is none.
    """

    positions: tuple[Position, ...]
    is_whole: bool = False
    missing: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Deletion:
    """A file that a vacuum would delete; `is_orphan`: no commit names it."""

    name: str
    size_bytes: int
    is_orphan: bool = False


@dataclass(frozen=True, slots=True)
class VacuumPreview:
    """Files that a vacuum would delete: removed before `cutoff_ms`; nothing of a table with a refusal.

    snapshots: how many would expire, where a format keeps them. delete_files: how many apply to no data file, and would
    be removed from the table. left_out: what is not searched for, as a sentence.
    """

    version: int
    cutoff_ms: int
    deletions: tuple[Deletion, ...]
    refusal: Refusal | None = None
    snapshots: int = 0
    delete_files: int = 0
    left_out: str = ""


class TableReader(Protocol):
    """Reads one table; holds none of the table's state, so that any number of readers give the same answers.

    Every method raises NoTable (there is no table of this format here), Corrupt (the metadata contradicts itself),
    Unsupported (it cannot be understood, or lies outside the boundary) and RetryableError (the store does not answer).
    """

    location: str

    @property
    def checks_history(self) -> bool:
        """True if `changes` yields nothing where history does not lead through a position, and ends at its end."""

    def changes(
        self, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        """Yield the commits after a position in order, each exactly once, up to version `until` (None: the newest).

        If no commit has that version, the next one after it is the last. `metadata` is in force at `after`. Every
        commit has a position after the one before it, and lists every file that it adds and removes. Ends where the
        next commit is not there, rather than skip one.
        Raises OtherTable where another table has come to be at the location since this reader read it.
        Operations carry Delta's names where they mean the same (MERGE, UPDATE, DELETE, and RESTORE, which replaces the
        whole table): write contention and rebuilds depend on them.
        """

    async def contains(self, position: Position) -> bool:
        """Return whether the table's history still contains this position; after it was created again, it does not."""

    async def end_of_history(self, after: Position) -> HistoryEnd:
        """Return what follows a position after which no change was found."""

    async def snapshot(self, at: Position | None = None) -> Snapshot:
        """Return all live files at a position (None: the newest), each once, with the refusal in force there.

        Raises InvalidInput for a position that can no longer be rebuilt.
        """

    async def snapshot_with_ranges(self, column: str) -> Snapshot:
        """Return the newest snapshot, of which `key_range`, `sort_key` and `bounds_change` are those of a column.

        Raises InvalidInput if files have no comparable bounds of such a column.
        """

    async def live_files(self, at: Position | None = None) -> LiveFiles:
        """Return the same files for counting, in columns as far as the format can; raises what `snapshot` raises."""

    async def totals(self, at: Position) -> TableTotals | None:
        """Return what the writer counted at a position, None where the format or the writer keeps no such count."""

    async def checkpoint(self) -> int | None:
        """Return the version of the newest checkpoint, -1 if there is none, None where the format has none.

        It costs one request, so an old answer is possible where a writer does not announce its checkpoints.
        """

    async def upkeep(
        self, kinds: Collection[str], examined: Mapping[str, ExaminedTable] = NOTHING_EXAMINED
    ) -> Mapping[str, UpkeepFound]:
        """Return what the newest metadata need, by the kinds of jobs that are asked for and are kinds of upkeep.

        A kind is absent where there is no snapshot, where it is not known, or where the format has no such thing.
        Manifests cost a request beside that for the metadata, and delete files one more for each manifest of them.
        examined: where the last job of a kind left work that it refused; it does not count until it may have changed.
        """

    async def checkpointed_files(self) -> tuple[int, int] | None:
        """Return the version of the newest checkpoint and the number of live files in it; None where no one counts.

        It costs one request.
        """

    async def removals(self) -> Sequence[tuple[int, int]]:
        """Return time in ms and size in bytes of each file that was removed and may still be in the store.

        Not all of them are known where the history was cleaned up.
        """

    async def plan_vacuum(self, policy: Policy, options: VacuumOptions, now_ms: int) -> VacuumPreview:
        """Return exactly what a vacuum that began now would delete; raises Unsupported where the format has none."""

    async def retained(self) -> RetainedHistory:
        """Return the newest unbroken part of the history."""

    def refusal(self, metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
        """Return why a table with these must not be rewritten; decided here first, by the actor again. Pure."""


class RewriteReader(Protocol):
    """Reads our own commits from one table's metadata, so that the history outlives the queue."""

    location: str

    async def page(self, *, limit: int, before: int | None = None, max_scanned: int = MAX_SCANNED) -> RewritePage:
        """Return up to `limit` rewrites of versions below `before` (None: from the newest on), newest first.

        Examines at most `max_scanned` commits. Raises NoTable, Corrupt and RetryableError.
        """


@dataclass(frozen=True, slots=True)
class StorageAccess:
    """Storage as a format reads it: the clients, the request counter, and which files a table may name (None: any).

    folders: where tables of catalogs keep their metadata, noted as they are read.
    """

    meter: ReadMeter
    stores: ObjectStores = field(default_factory=ObjectStores)
    boundary: Boundary | None = None
    folders: MetadataFolders = field(default_factory=MetadataFolders)

    def reader(self, location: str) -> ObjectReader:
        """Return a reader rooted at a canonical location; raises NoTable for a directory that does not exist."""
        return ObjectReader(self.stores.open(location), location=location, meter=self.meter)


@dataclass(frozen=True, slots=True)
class CatalogFolder:
    """Content of a catalog right below a namespace (none: at its top): names of namespaces and tables, in no order."""

    namespaces: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


class TableCatalog(Protocol):
    """A catalog, which knows tables by namespaces and name.

    Every method raises RetryableError where the catalog does not answer, PermanentError where it refuses to.
    """

    async def has_table(self, name: tuple[str, ...]) -> bool:
        """Return whether there is a table of this name, its namespaces before it, with one request."""

    async def folder(self, namespace: tuple[str, ...]) -> CatalogFolder:
        """Return what is right below a namespace, with two requests; nothing if there is no such namespace."""


class TableFormat(Protocol):
    """One table format."""

    name: str

    async def probe(self, place: ObjectReader, path: str = "") -> bool:
        """Return whether there is a table of this format at a path below a location, with at most one request."""

    def catalog(self, name: str) -> TableCatalog | None:
        """Return the catalog of this name, None if the format has no such catalog; no request is made yet."""

    def open(self, location: str) -> TableReader:
        """Open the table at a canonical location; no request is made yet."""

    def rewrites(self, location: str) -> RewriteReader:
        """Open the history of our rewrites of the table at a canonical location; no request is made yet."""
