"""Finds tables below a root: a folder that a format recognizes is a table, or a name that a catalog has.

An event that names a location proves nothing, nor does a folder's name. A probe costs one request per format; a scan
costs one more request per folder, and never lists data files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from decider.formats.table_format import StorageAccess, TableFormat
from shared.errors import InvalidInput
from shared.paths.locations import catalog_name, decoded_path, key_location

_NO_TABLES = ("_", ".")
"""First characters of folders that hold no tables: logs, self-tests of actors, what other systems hide."""


@dataclass(frozen=True, slots=True)
class ScannedFolder:
    """A scanned path: a table, or the names of folders, in order, that may contain some; `requests` is its cost."""

    is_table: bool
    folders: tuple[str, ...] = ()
    requests: int = 1


class TableScanner:
    """Everything below one root; a link that leads out of the roots is not followed."""

    def __init__(self, access: StorageAccess, formats: Sequence[TableFormat], *, location: str) -> None:
        self._formats = tuple(formats)
        self._boundary = access.boundary
        self._reads = access.reader(location)
        self.location = location

    async def has_table(self, path: str) -> bool:
        """Return whether there is a table of any format at a path below the root. Raises what a listing raises.

        Nothing in a hidden folder is a table, whatever an event names; a person may register it. Raises Unsupported for
        a link out of the roots.
        """
        if any(name.startswith(_NO_TABLES) for name in path.split("/")):
            return False
        if self._boundary is not None:
            self._boundary.check_table(self.location_of(path))
        for one in self._formats:
            if await one.probe(self._reads, path):
                return True
        return False

    async def scan(self, path: str) -> ScannedFolder:
        """Return what is at a path below the root; folders of partitions and hidden ones are left out."""
        if await self.has_table(path):
            return ScannedFolder(is_table=True)
        found = await self._reads.folders(path)
        folders = sorted(name for name in found.names if not name.startswith(_NO_TABLES) and "=" not in name)
        return ScannedFolder(is_table=False, folders=tuple(folders), requests=len(self._formats) + found.requests)

    def path_of(self, location: str) -> str:
        """Return the path, relative to the root, of a canonical location below it."""
        return decoded_path(location)[len(decoded_path(self.location).rstrip("/")) :].strip("/")

    def location_of(self, path: str) -> str:
        """Return the canonical location of a path below the root."""
        return key_location(self.location, path) if path else self.location


class CatalogScanner:
    """Everything below one namespace of a catalog, or all of it; namespaces are its folders."""

    def __init__(self, formats: Sequence[TableFormat], *, location: str) -> None:
        self._formats = tuple(formats)
        self.location = location

    async def has_table(self, path: str) -> bool:
        """Return whether a catalog has a table of this name below the root. Raises what the catalog raises."""
        return any([await has_table(one, *self._name(path)) for one in self._formats])

    async def scan(self, path: str) -> ScannedFolder:
        """Return what has this name below the root; raises InvalidInput for a catalog that is not configured."""
        name, parts = self._name(path)
        catalogs = [catalog for one in self._formats if (catalog := one.catalog(name)) is not None]
        if not catalogs:
            raise InvalidInput(
                f"{self.location}: there is no catalog {name!r}; add it to LAKEWRIGHT_CATALOGS", field="location"
            )
        if parts and any([await catalog.has_table(parts) for catalog in catalogs]):
            return ScannedFolder(is_table=True, requests=len(catalogs))
        found = [await catalog.folder(parts) for catalog in catalogs]
        names = {name for one in found for name in (*one.namespaces, *one.tables) if "/" not in name}
        return ScannedFolder(is_table=False, folders=tuple(sorted(names)), requests=3 * len(catalogs))

    def path_of(self, location: str) -> str:
        """Return the name, relative to the root, of a canonical location below it."""
        return decoded_path(location)[len(decoded_path(self.location).rstrip("/")) :].strip("/")

    def location_of(self, path: str) -> str:
        """Return the canonical location of a name below the root."""
        return key_location(self.location, path) if path else self.location

    def _name(self, path: str) -> tuple[str, tuple[str, ...]]:
        return catalog_name(self.location_of(path)) or ("", ())


async def has_table(one: TableFormat, catalog: str, name: tuple[str, ...]) -> bool:
    """Return whether a format's catalog has a table of this name."""
    found = one.catalog(catalog)
    return found is not None and bool(name) and await found.has_table(name)
