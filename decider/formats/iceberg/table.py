"""Iceberg as a table format: a commit is a snapshot of main, and what changed without one comes with the newest."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from decider.formats.iceberg.bounds import key_type, range_of
from decider.formats.iceberg.bounds_change import bounds_change
from decider.formats.iceberg.catalogs import NamedCatalog
from decider.formats.iceberg.commits import FileHistory, delete_file, snapshot_commit
from decider.formats.iceberg.entries import EntryReader
from decider.formats.iceberg.rewrites import IcebergRewrites
from decider.formats.iceberg.source import CatalogSource, FolderSource, MetadataSource, is_table_folder
from decider.formats.iceberg.upkeep import READERS, upkeep
from decider.formats.iceberg.vacuums import IcebergVacuums, removals, vacuum_mark
from decider.formats.table_format import (
    HistoryEnd,
    RetainedHistory,
    StorageAccess,
    TableCatalog,
    TableTotals,
    VacuumPreview,
)
from decider.state.file_columns import LiveFiles
from decider.storage.object_reads import ObjectReader
from shared.errors import InvalidInput, NoTable
from shared.formats.iceberg.deletes import DeleteIndex
from shared.formats.iceberg.head_cache import HeadCache
from shared.formats.iceberg.manifests import Entry
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.names import FORMAT
from shared.formats.iceberg.positions import digest_snapshot, newest_position, position_of, positions, snapshots_after
from shared.formats.iceberg.refusal import refusal
from shared.jobs.options import VacuumOptions
from shared.layout.upkeep import UpkeepFound
from shared.paths.boundary import Boundary
from shared.paths.locations import catalog_name
from shared.policy.policy import Policy
from shared.refusals import Refusal
from shared.table import (
    NOTHING_EXAMINED,
    Commit,
    DataFile,
    ExaminedTable,
    PartitionColumn,
    Position,
    Snapshot,
    TableMetadata,
    TableProtocol,
)
from shared.whole_numbers import whole_number


class IcebergTable:
    """`TableReader` on a table's snapshots."""

    checks_history = True  # Each snapshot names the one before it.

    def __init__(self, source: MetadataSource, boundary: Boundary | None) -> None:
        self._source = source
        self._reader = EntryReader(source)
        self._boundary = None if boundary is None else boundary.for_literal_paths()
        self.location = source.location

    async def changes(
        self, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        """Yield the snapshots of main after a position; only the manifests that these wrote are read.

        Metadata that changed come with the newest snapshot, or alone where there is none.
        """
        head = await self._source.head()
        later = snapshots_after(head, after)
        if later is None:
            return
        history, at = FileHistory(head), positions(head)
        previous = after
        async with aclosing(self._reader.written_by_each(head, later)) as written:
            async for snapshot, entries in written:
                if until is not None and previous.version >= until:
                    return
                position = Position(max(at[snapshot.id].version, previous.version + 1), at[snapshot.id].digest)
                commit = snapshot_commit(snapshot, position, entries, history)
                commit = replace(commit, external=self._external(head, commit.added))
                if snapshot is later[-1] and after.digest:
                    if metadata != head.metadata:
                        ended = vacuum_mark(metadata.configuration, head.metadata.configuration)
                        commit = replace(commit, metadata=head.metadata, protocol=head.protocol, vacuum=ended)
                    elif head.protocol.writer_features:
                        commit = replace(commit, protocol=head.protocol)  # A snapshot shows why the table is refused.
                previous = position
                yield commit
        if not later and after.digest and metadata != head.metadata:
            version = max(head.updated_ms, after.version + 1)
            if until is None or after.version < until:
                changed = position_of(head, head.current, version)
                ended = vacuum_mark(metadata.configuration, head.metadata.configuration)
                yield Commit(
                    version,
                    head.updated_ms,
                    "SET TBLPROPERTIES" if ended is None else "VACUUM END",
                    metadata=head.metadata,
                    protocol=head.protocol,
                    data_change=False,
                    digest=changed.digest,
                    vacuum=ended,
                )

    async def contains(self, position: Position) -> bool:
        """Return whether main still leads through this position; an unknown digest is not compared."""
        return not position.digest or snapshots_after(await self._source.head(), position) is not None

    async def end_of_history(self, after: Position) -> HistoryEnd:
        """Return whether main ends at a position, or no longer leads through it."""
        later = snapshots_after(await self._source.head(), after)
        if later is None:
            return HistoryEnd(
                lost=f"the snapshot of position {after.version} is no longer an ancestor of the current one: "
                "it expired, or the table was rolled back or replaced"
            )
        return HistoryEnd(is_end=not later)

    async def snapshot(self, at: Position | None = None) -> Snapshot:
        """Return all live files of a snapshot, with the metadata of today."""
        head = await self._source.head()
        snapshot, position = self._at(head, at)
        entries = [] if snapshot is None else await self._reader.live(head, snapshot)
        return self._snapshot(head, snapshot, position, entries)

    def _snapshot(
        self, head: TableHead, snapshot: SnapshotRecord | None, position: Position, entries: Sequence[Entry]
    ) -> Snapshot:
        history = FileHistory(head)
        deletes = DeleteIndex((one for one in entries if one.kind is not None), head.unpartitioned)
        files = tuple(history.data_file(one, deletes.of(one)) for one in entries if one.kind is None)
        if self._boundary is not None:
            self._boundary.check_files(head.location, files)
        return Snapshot(
            position.version,
            head.updated_ms if snapshot is None else snapshot.timestamp_ms,
            head.metadata,
            head.protocol,
            files,
            position.digest,
            self.refusal(head.metadata, head.protocol),
            tuple(delete_file(entry) for entry in entries if entry.kind is not None),
        )

    async def snapshot_with_ranges(self, column: str) -> Snapshot:
        """Return the newest snapshot with the bounds of a column that its manifests have."""
        head = await self._source.head()
        field_id, kind = head.records.columns.get(column, (0, ""))
        key = key_type(kind)
        if key is None:
            raise InvalidInput(
                f"{self.location}: files have no bounds of {column!r} by which ranges can be compared",
                field="sort_keys",
                allowed="columns of numbers, texts, dates or timestamps, also in structs",
            )
        snapshot, position = self._at(head, None)
        entries = [] if snapshot is None else await self._reader.live(head, snapshot, column=field_id)
        found = self._snapshot(head, snapshot, position, entries)
        ranges = {one.path: range_of(*one.bounds, kind) for one in entries if one.kind is None}
        files = tuple(replace(file, key_range=ranges[file.path]) for file in found.files)
        # What partitions by a transform of a column spare its reads is not known: none counts as one of all files.
        is_source = any(column in names for names in head.sources.values())
        change = {} if is_source else bounds_change(found.metadata.configuration, head.records.columns, column)
        metadata = replace(found.metadata, sort_key=PartitionColumn(column, column, key), bounds_change=change)
        return replace(found, files=files, metadata=metadata)

    async def live_files(self, at: Position | None = None) -> LiveFiles:
        """Return the same files for counting, none of them in columns; delete files count by themselves."""
        return LiveFiles.of(await self.snapshot(at))

    async def totals(self, at: Position) -> TableTotals | None:
        """Return the totals of the snapshot's summary; its bytes count data files where there are no others."""
        snapshot, _ = self._at(await self._source.head(), at)
        summary: Mapping[str, str] = {} if snapshot is None else snapshot.summary
        files, size = (whole_number(summary.get(f"total-{name}", "")) for name in ("data-files", "files-size"))
        if files is None or size is None or summary.get("total-delete-files") != "0":
            return None
        return TableTotals(files, size)

    async def checkpoint(self) -> int | None:
        """Return None: metadata files are whole, so there are no checkpoints."""
        return None

    async def upkeep(
        self, kinds: Collection[str], examined: Mapping[str, ExaminedTable] = NOTHING_EXAMINED
    ) -> Mapping[str, UpkeepFound]:
        """Return what the newest metadata need; nothing is read for other kinds."""
        if not any(kind in READERS for kind in kinds):
            return {}
        return await upkeep(self._reader, await self._source.head(), kinds, examined)

    async def checkpointed_files(self) -> tuple[int, int] | None:
        """Return None: each snapshot has its totals."""
        return None

    async def removals(self) -> Sequence[tuple[int, int]]:
        """Return what the retained snapshots of main have removed."""
        return tuple(removals(await self._source.head()))

    async def plan_vacuum(self, policy: Policy, options: VacuumOptions, now_ms: int) -> VacuumPreview:
        """Return what a vacuum that began now would expire and delete."""
        return await IcebergVacuums(self._source, self._boundary).plan(policy, options, now_ms)

    async def retained(self) -> RetainedHistory:
        """Return the retained snapshots of main; older ones of it have expired."""
        head = await self._source.head()
        chain = list(head.chain())
        return RetainedHistory(
            tuple(positions(head).values()), is_whole=not chain or chain[-1].parent is None, missing=None
        )

    def refusal(self, metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
        """Refuse tables that a rewrite is not known to preserve."""
        return refusal(metadata, protocol)

    def _at(self, head: TableHead, at: Position | None) -> tuple[SnapshotRecord | None, Position]:
        """Return the snapshot of a position (None: of the newest), and the position."""
        if at is None:
            newest = newest_position(head)
            return (None if head.current is None else self._retained(head, head.current, newest)), newest
        try:
            known = digest_snapshot(at.digest, head.metadata.table_uuid)
        except ValueError as other:
            raise InvalidInput(f"{self.location}: {other}", field="version") from other
        return (None if known is None else self._retained(head, known, at)), at

    def _retained(self, head: TableHead, snapshot: int, at: Position) -> SnapshotRecord:
        found = head.snapshots.get(snapshot)
        if found is None:
            raise InvalidInput(f"{self.location}: the snapshot of position {at.version} has expired", field="version")
        return found

    def _external(self, head: TableHead, files: Sequence[DataFile]) -> str:
        return "" if self._boundary is None else self._boundary.first_external(head.location, files)


@dataclass(frozen=True, slots=True)
class IcebergSettings:
    """Catalogs by name, with pyiceberg's options; `reads_folders`: tables without a catalog are read, too."""

    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, hash=False)
    reads_folders: bool = False


class IcebergFormat:
    """`TableFormat` for Iceberg."""

    name = FORMAT

    def __init__(self, access: StorageAccess, settings: IcebergSettings) -> None:
        self._access = access
        self._settings = settings
        self._heads = HeadCache()
        self._catalogs = {name: NamedCatalog(name, options) for name, options in settings.catalogs.items()}

    async def probe(self, place: ObjectReader, path: str = "") -> bool:
        """Search for the metadata of a table without a catalog."""
        return self._settings.reads_folders and await is_table_folder(place, path)

    def catalog(self, name: str) -> TableCatalog | None:
        """Return a catalog by its name in the settings."""
        return self._catalogs.get(name)

    def open(self, location: str) -> IcebergTable:
        """Open a table by its name in a catalog, or by its folder."""
        return IcebergTable(self._source(location), self._access.boundary)

    def rewrites(self, location: str) -> IcebergRewrites:
        """Open the history that the summaries of snapshots keep."""
        return IcebergRewrites(self._source(location))

    def _source(self, location: str) -> MetadataSource:
        named = catalog_name(location)
        if named is None:
            return FolderSource(self._access.reader(location))
        catalog = self._catalogs.get(named[0])
        if catalog is None:
            raise NoTable(f"{location}: there is no catalog {named[0]!r}", field="location")
        return CatalogSource(catalog, named[1], location, self._access, self._heads)
