"""The tables of one Unity catalog as the decider asks for them: in threads of their own, and by name.

A catalog that does not answer delays no table of another.
"""

from decider.formats.catalog_calls import CatalogCalls
from decider.formats.table_format import CatalogFolder
from shared.errors import NoTable
from shared.unity.catalog import UnityCatalog
from shared.unity.table_info import NAME_PARTS, UnityTable


class UnityTables:
    """`decider.formats.table_format.TableCatalog` on a Unity catalog."""

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
