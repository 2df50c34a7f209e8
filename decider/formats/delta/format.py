"""Delta as a table format: tables are known by their locations, or by their names in Unity catalogs."""

from collections.abc import Mapping

from decider.formats.delta.listing import LOG_DIRECTORY, read_listing
from decider.formats.delta.log import DeltaLog
from decider.formats.delta.named_table import NamedDeltaTable, NamedRewrites, TableName, UnityTables
from decider.formats.delta.rewrites import DeltaRewrites
from decider.formats.delta.table import DeltaTable
from decider.formats.table_format import RewriteReader, StorageAccess, TableCatalog, TableReader
from decider.storage.object_reads import ObjectReader
from shared.formats import delta
from shared.unity.catalog import UnityCatalog, find_catalog


class DeltaFormat:
    """`TableFormat` for Delta."""

    name = delta.FORMAT

    def __init__(self, access: StorageAccess, catalogs: Mapping[str, UnityCatalog] | None = None) -> None:
        self._access = access
        self._catalogs = {name: UnityTables(catalog) for name, catalog in (catalogs or {}).items()}

    async def probe(self, place: ObjectReader, path: str = "") -> bool:
        """Search for a commit or checkpoint; a folder with the log's name proves nothing."""
        names = await place.first_names(f"{path}/{LOG_DIRECTORY}" if path else LOG_DIRECTORY)
        return read_listing(names).newest is not None

    def catalog(self, name: str) -> TableCatalog | None:
        """Return a Unity catalog by its name in the settings."""
        return self._catalogs.get(name)

    def open(self, location: str) -> TableReader:
        """Open a table's log."""
        named = self._table_name(location)
        if named is not None:
            return NamedDeltaTable(named, self._access)
        reads = self._access.reader(location)
        return DeltaTable(DeltaLog(reads, self._access.boundary), reads)

    def rewrites(self, location: str) -> RewriteReader:
        """Open the history that the log keeps."""
        named = self._table_name(location)
        return DeltaRewrites(self._access.reader(location)) if named is None else NamedRewrites(named)

    def _table_name(self, location: str) -> TableName | None:
        """Return the name by which a table is known, None for one known by its location."""
        found = find_catalog(location, self._catalogs)
        return None if found is None else TableName(*found, location, self._access)
