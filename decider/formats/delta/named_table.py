"""A Delta table known by its name in a Unity catalog: the name is resolved, and the log at its location is read.

A name may come to lead to another place or another table at any moment. What one reader yields as the changes of a
table is of the table whose files it counted, and of no other: one that has moved has lost its history, and is counted
again. So the commits of one table are never applied to the state of another.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from decider.formats.catalog_calls import CatalogCalls
from decider.formats.delta.log import DeltaLog
from decider.formats.delta.rewrites import DeltaRewrites
from decider.formats.delta.table import DeltaTable
from decider.formats.forwarding import ForwardingReader
from decider.formats.rewrites import RewritePage
from decider.formats.table_format import (
    MAX_SCANNED,
    CatalogFolder,
    StorageAccess,
)
from decider.storage.object_reads import ObjectReader, ReadKind
from shared.errors import NoTable, OtherTable, Unsupported
from shared.formats import delta
from shared.paths.locations import catalog_name, is_under
from shared.refusals import Refusal
from shared.table import Commit, Position, TableMetadata, TableProtocol
from shared.unity.catalog import UnityCatalog
from shared.unity.table_info import NAME_PARTS, UnityTable


class UnityTables:
    """`decider.formats.table_format.TableCatalog` on a Unity catalog; one that does not answer delays no other."""

    def __init__(self, catalog: UnityCatalog) -> None:
        self._catalog = catalog
        self._calls = CatalogCalls(catalog.name)

    async def has_table(self, name: tuple[str, ...]) -> bool:
        """Return whether there is a table of this name; raises Unsupported, with the reason, for one not served."""
        if len(name) != NAME_PARTS:
            return False
        try:
            await self.table(name)
        except NoTable:
            return False
        return True

    async def folder(self, namespace: tuple[str, ...]) -> CatalogFolder:
        """Return what is right below a namespace: catalogs, schemas of a catalog, or Delta tables of a schema."""
        try:
            match namespace:
                case ():
                    return CatalogFolder(namespaces=await self._calls.run(self._catalog.catalogs))
                case (catalog,):
                    return CatalogFolder(namespaces=await self._calls.run(self._catalog.schemas, catalog))
                case (catalog, schema):
                    return CatalogFolder(tables=await self._calls.run(self._catalog.tables, catalog, schema))
                case _:
                    return CatalogFolder()
        except NoTable:
            return CatalogFolder()

    async def table(self, name: tuple[str, ...]) -> UnityTable:
        """Return the table of a full name; raises what `UnityCatalog.table` raises."""
        return await self._calls.run(self._catalog.table, name)


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """The table that a name led to, and what reads its objects."""

    table: UnityTable
    reads: ObjectReader


class TableName:
    """Looks up the place of one table's name."""

    def __init__(self, tables: UnityTables, name: tuple[str, ...], location: str, access: StorageAccess) -> None:
        self._tables = tables
        self._name = name
        self._access = access
        self.location = location

    async def place(self, known: NamedPlace | None = None) -> NamedPlace:
        """Ask the catalog, and return the `known` place where the name still leads there.

        Raises what `UnityCatalog.table` raises, and Unsupported for a place below a root of paths.
        """
        self._access.meter.add(ReadKind.GET)
        table = await self._tables.table(self._name)
        self._refuse_second_name(table)
        place = known
        if place is None or place.table != table:
            place = NamedPlace(table, self._access.reader(table.storage_location))
        self._access.folders.note(self.location, f"{table.storage_location}/")
        return place

    def _refuse_second_name(self, table: UnityTable) -> None:
        """Raise Unsupported where discovery finds the same table by its path: it would have two states."""
        roots = () if self._access.boundary is None else self._access.boundary.roots
        for root in roots:
            if catalog_name(root) is None and is_under(table.storage_location, [root]):
                raise Unsupported(
                    f"{self.location} lies at {table.storage_location}, below the root {root}, where tables are known "
                    "by their location; register it so, or take that root out of LAKEWRIGHT_ROOTS",
                    field="location",
                )


class NamedDeltaTable(ForwardingReader):
    """`TableReader` on the Delta log of a table that a Unity catalog knows.

    The catalog resolves the name for the newest version; anything else is read from the log that was read before, and
    `changes` finds out whether the name still leads there.
    """

    checks_history = False

    def __init__(self, name: TableName, access: StorageAccess) -> None:
        self._name = name
        self._boundary = access.boundary
        self._place: NamedPlace | None = None
        self._reader: DeltaTable | None = None
        self.location = name.location

    async def changes(
        self, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        """Yield the commits above a version of the table that this reader has read before, or that has this commit.

        Raises OtherTable where the name leads to another one, or to another place.
        """
        known = self._place
        place = await self._name.place(known)
        if known is not None and place is not known:
            raise OtherTable(
                f"{self.location} was {known.table.table_id} at {known.table.storage_location}, and is "
                f"{place.table.table_id} at {place.table.storage_location} now",
                field="location",
            )
        reader = self._at(place)
        if known is None and await _is_of_another(DeltaLog(place.reads), after):
            raise OtherTable(f"{self.location}: version {after.version} is of another table", field="location")
        async for commit in reader.changes(after, metadata, until=until):
            yield commit

    def refusal(self, metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
        """Refuse tables with features that a rewrite is not known to preserve."""
        return delta.refusal(metadata, protocol)

    async def _found(self, *, is_newest: bool = False) -> DeltaTable:
        if self._reader is not None and not is_newest:
            return self._reader
        return self._at(await self._name.place(self._place))

    def _at(self, place: NamedPlace) -> DeltaTable:
        if self._reader is None or place is not self._place:
            self._place = place
            self._reader = DeltaTable(DeltaLog(place.reads, self._boundary), place.reads)
        return self._reader


async def _is_of_another(log: DeltaLog, position: Position) -> bool:
    """Return whether a log never had this position; one from which its commit was cleaned up may have had it."""
    if not position.digest:
        return False
    found = await log.digest(position.version)
    return not await log.versions_after(position.version) if found is None else found != position.digest


class NamedRewrites:
    """`RewriteReader` on the same log."""

    def __init__(self, name: TableName) -> None:
        self._name = name
        self.location = name.location

    async def page(self, *, limit: int, before: int | None = None, max_scanned: int = MAX_SCANNED) -> RewritePage:
        """Look the name up, and read the history that the log keeps."""
        place = await self._name.place()
        return await DeltaRewrites(place.reads).page(limit=limit, before=before, max_scanned=max_scanned)
