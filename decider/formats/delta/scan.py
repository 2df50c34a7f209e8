"""Where tables are below a root: a folder with a commit or checkpoint in its `_delta_log` is one, and nothing else is.

An event that names a place proves nothing, and so does a folder of that name; looking costs one request, and a root is
walked with two requests per folder, never with a listing of data files.
"""

from dataclasses import dataclass
from typing import Any

from obstore.exceptions import BaseError

from decider.formats.delta.listing import LOG_DIRECTORY, read_listing
from decider.storage.object_reads import LIST_PAGE, ObjectReader, ReadKind, ReadMeter
from decider.storage.stores import ObjectStores, RootedStore
from shared.boundary import Boundary
from shared.locations import canonical_location, decoded_path, key_location

PROBE_NAMES = 1_000
"""Names below `_delta_log` that are looked at: one page. What sorts before the first commit are a few hidden files."""

_NO_TABLES = ("_", ".")
"""First characters of folders that hold no tables: logs, scratch space, what other systems hide."""


@dataclass(frozen=True, slots=True)
class ScannedFolder:
    """What lies at a place: a table, or folders by name, in order, that may hold some; `requests` is what it cost."""

    is_table: bool
    folders: tuple[str, ...] = ()
    requests: int = 1


class TableScanner(ObjectReader):
    """Everything below one root; a link that leads out of the roots is followed by nobody."""

    def __init__(
        self, place: RootedStore, *, location: str, meter: ReadMeter, boundary: Boundary | None = None
    ) -> None:
        super().__init__(place, location=location, meter=meter)
        self._boundary = boundary

    async def has_log(self, path: str) -> bool:
        """Say whether there is a table at a path below the root. Raises what a listing raises.

        Raises Unsupported for a link out of the roots.
        """
        if self._boundary is not None:
            self._boundary.check_table(self.location_of(path))
        prefix = self._place.key(f"{path}/{LOG_DIRECTORY}" if path else LOG_DIRECTORY)
        self._meter.add(ReadKind.LIST)
        try:
            async for page in self._place.client.list(prefix, chunk_size=PROBE_NAMES):
                listing = read_listing(entry["path"].removeprefix(prefix + "/") for entry in page)
                return listing.newest is not None
        except FileNotFoundError:
            return False
        except (BaseError, OSError) as problem:
            raise self._failed("list", prefix, problem) from problem
        return False

    async def look(self, path: str) -> ScannedFolder:
        """Return what lies at a path below the root; folders of partitions and hidden ones are left out."""
        if await self.has_log(path):
            return ScannedFolder(is_table=True)
        try:
            found: Any = await self._place.client.list_with_delimiter_async(self._place.key(path).rstrip("/") or None)
        except FileNotFoundError:
            return ScannedFolder(is_table=False, requests=2)
        except (BaseError, OSError) as problem:
            raise self._failed("list", path, problem) from problem
        pages = 1 + (len(found["objects"]) + len(found["common_prefixes"])) // LIST_PAGE
        self._meter.add(ReadKind.LIST, pages)
        names = (prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])
        folders = sorted(name for name in names if name and not name.startswith(_NO_TABLES) and "=" not in name)
        return ScannedFolder(is_table=False, folders=tuple(folders), requests=1 + pages)

    def path_of(self, location: str) -> str:
        """Return the path below the root of a canonical location that lies there."""
        return decoded_path(location)[len(decoded_path(self.location).rstrip("/")) :].strip("/")

    def location_of(self, path: str) -> str:
        """Return the canonical location of a path below the root."""
        return key_location(self.location, path) if path else self.location


def open_lake(
    root: str, *, meter: ReadMeter, stores: ObjectStores | None = None, boundary: Boundary | None = None
) -> TableScanner:
    """Open a root; raises InvalidInput if there can be none or an option is unknown."""
    canonical = canonical_location(root)
    return TableScanner((stores or ObjectStores()).open(canonical), location=canonical, meter=meter, boundary=boundary)
