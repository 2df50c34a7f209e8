"""Where a table's metadata come from: a catalog that knows its name, or the folder of a table that has none.

pyiceberg is synchronous, so its calls run in threads; each of them ends, for every request has a time limit.
"""

import asyncio
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Protocol

from decider.formats.iceberg.catalogs import NamedCatalog, translated
from decider.formats.iceberg.raw_tables import read_file
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ObjectReader, ReadKind
from shared.errors import Corrupt, NoTable, Unsupported
from shared.formats.iceberg.head_cache import HeadCache
from shared.formats.iceberg.metadata import TableHead, as_paimon, decode_head, may_be_of_paimon, parse_metadata
from shared.formats.iceberg.names import PAIMON_SCHEMA
from shared.paths.locations import decoded_path, literal_location
from shared.paths.stored_file import StoredFile
from shared.whole_numbers import whole_number

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

METADATA_FOLDER = "metadata"
VERSION_HINT = "version-hint.text"

_METADATA_FILE = re.compile(r"v(\d{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)
_SPELLINGS = ("v{}.metadata.json", "v{}.gz.metadata.json", "v{}.metadata.json.gz")
_MAX_PROBES = 1_000
"""Versions above the hint that are tried one by one; a hint is older only where writers left it behind."""


class MetadataSource(Protocol):
    """Reads one table's metadata files."""

    location: str

    async def head(self) -> TableHead:
        """Return the newest metadata. Raises NoTable, Corrupt, Unsupported, RetryableError and PermanentError."""

    async def read(self, path: str) -> bytes:
        """Return a metadata file by its path; raises what `head` raises, Corrupt for one that is missing."""

    async def read_each(self, paths: Sequence[str]) -> Sequence[bytes]:
        """Return several metadata files, requested at once; raises what `read` raises."""

    async def read_if_present(self, path: str, length: int = 0) -> bytes | None:
        """Return a file, or its first bytes (0: all of it); None for one that is missing."""

    async def files(self) -> Sequence[StoredFile]:
        """Return every file below the table's folder; raises what `head` raises."""

    async def metadata_files(self, folder: str) -> Sequence[StoredFile]:
        """Return the files in the folder of the metadata, by their names in it; raises what `files` raises."""

    async def existing(self, paths: Sequence[str]) -> AbstractSet[str]:
        """Return the files among these that exist."""


class CatalogSource:
    """A table of a catalog."""

    def __init__(
        self,
        catalog: NamedCatalog,
        name: tuple[str, ...],
        location: str,
        access: StorageAccess,
        heads: HeadCache | None = None,
    ) -> None:
        self._heads = heads or HeadCache()
        self._catalog = catalog
        self._name = name
        self._meter = access.meter
        self._folders = access.folders
        self._boundary = None if access.boundary is None else access.boundary.for_literal_paths()
        self._threads = access.stores.threads
        self._io: FileIO | None = None
        self._places: tuple[str, ...] = ()
        self.location = location

    async def head(self) -> TableHead:
        """Ask the catalog for the table."""
        self._meter.add(ReadKind.GET)
        loaded = await self._catalog.load(self._name)
        self._io = loaded.io
        identity, (known_as, head) = loaded.identity, self._heads.get(self.location)
        if head is None or not identity or identity != known_as:
            known = {} if head is None or head.metadata.table_uuid != loaded.raw.get("table-uuid") else head.snapshots
            head = await asyncio.to_thread(decode_head, loaded.raw, self.location, loaded.path, known)
            self._heads.put(self.location, identity, head)
        self._folders.note(self.location, head.records.path)
        named = (head.location, head.records.path.rpartition("/")[0])
        places = (place for one in named if (place := literal_location(self.location, one)))
        self._places = () if self._boundary is None else self._boundary.real_folders(places)
        return await _with_marks(self, head)

    async def read(self, path: str) -> bytes:
        """Read through the catalog's own file access, which may hold credentials for this table alone."""
        return (await self.read_each([path]))[0]

    async def read_each(self, paths: Sequence[str]) -> Sequence[bytes]:
        """Read in one thread what are local files, and each in its own what takes a request to a store."""
        self._meter.add(ReadKind.GET, len(paths))
        if self._io is None:
            await self.head()
        if self._boundary is not None:
            for path in paths:
                self._boundary.check_metadata(self.location, path, self._places)
        places = [(path, literal_location(self.location, path) or "") for path in paths]
        if paths and all(place.startswith("file:") for _, place in places):
            return await self._threads.run(paths[0], self._read_all, places)
        return await asyncio.gather(*(self._read_one(*one) for one in places))

    async def _read_one(self, path: str, place: str) -> bytes:
        if place.startswith("file:"):
            return await self._threads.run(path, self._read, path, place)
        return await asyncio.to_thread(self._read, path, place)

    def _read_all(self, places: Sequence[tuple[str, str]]) -> Sequence[bytes]:
        return [self._read(*one) for one in places]

    async def read_if_present(self, path: str, length: int = 0) -> bytes | None:
        """Read through the catalog's own file access."""
        try:
            body = await self.read(path)
        except Corrupt:
            return None
        return body[:length] if length else body

    async def files(self) -> Sequence[StoredFile]:
        """List through the catalog's own file access; raises Unsupported for one that cannot list."""
        location = (await self.head()).location
        self._meter.add(ReadKind.LIST)
        return await asyncio.to_thread(self._files, location)

    async def metadata_files(self, folder: str) -> Sequence[StoredFile]:
        """List through the catalog's own file access; raises Unsupported for one that cannot list."""
        self._meter.add(ReadKind.LIST)
        return await asyncio.to_thread(self._files, folder)

    async def existing(self, paths: Sequence[str]) -> AbstractSet[str]:
        """Ask for each file through the catalog's own file access, in several threads."""
        self._meter.add(ReadKind.HEAD, len(paths))
        found = await asyncio.gather(*(asyncio.to_thread(self._exists, path) for path in paths))
        return {path for path, is_there in zip(paths, found, strict=True) if is_there}

    def _files(self, location: str) -> Sequence[StoredFile]:
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - with the rest of pyiceberg
        from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415

        io: Any = self._io
        if not isinstance(io, PyArrowFileIO):
            raise Unsupported(
                f"{self.location}: the catalog's py-io-impl lists no files, so there is no dry run of a vacuum",
                field="py-io-impl",
            )
        with translated(f"{self.location}: listing {location}"):
            scheme, host, root = io.parse_location(location, io.properties)
            root = root.rstrip("/")
            found = io.fs_by_scheme(scheme, host).get_file_info(FileSelector(root, recursive=True))
        return [
            StoredFile(one.path[len(root) + 1 :], one.size, one.mtime_ns // 1_000_000)
            for one in found
            if one.type is FileType.File
        ]

    def _exists(self, path: str) -> bool:
        io: Any = self._io
        with translated(f"{self.location}: reading {path}"):
            return bool(io.new_input(path).exists())

    def _read(self, path: str, place: str) -> bytes:
        io: Any = self._io
        with translated(f"{self.location}: reading {path}"):
            try:
                return read_file(io, path, place)
            except FileNotFoundError as missing:
                raise Corrupt(f"{self.location}: {path} is missing") from missing


class FolderSource:
    """A table without a catalog, as Hadoop's catalog keeps it: numbered metadata files, and a hint of the newest."""

    def __init__(self, reads: ObjectReader) -> None:
        self._reads = reads
        self.location = reads.location

    async def head(self) -> TableHead:
        """Read the hint, then the metadata after it, until a number is missing."""
        version = await self._hint()
        found = None if version is None else await self._file(version)
        if version is None or found is None:
            version = await self._listed()
            found = await self._file(version)
        for later in range(version + 1, version + _MAX_PROBES):
            newer = await self._file(later)
            if newer is None:
                break
            found = newer
        if found is None:
            raise Corrupt(f"{self.location}: metadata file {version} is missing")
        path, raw = found
        head = await asyncio.to_thread(lambda: decode_head(parse_metadata(raw, self.location), self.location, path))
        if literal_location(self.location, head.location) != self.location:
            raise Unsupported(
                f"{self.location}: the metadata say that the table lies at {head.location}; tables that were copied or "
                "moved are not read without a catalog",
                field="location",
            )
        return await _with_marks(self, head)

    async def read(self, path: str) -> bytes:
        """Read a file below the table's folder."""
        body = await self._reads.get(self._key(path))
        if body is None:
            raise Corrupt(f"{self.location}: {path} is missing")
        return body

    async def read_each(self, paths: Sequence[str]) -> Sequence[bytes]:
        """Read files below the table's folder."""
        return await asyncio.gather(*map(self.read, paths))

    async def read_if_present(self, path: str, length: int = 0) -> bytes | None:
        """Read a file below the table's folder."""
        key = self._key(path)
        return await (self._reads.start(key, length) if length else self._reads.get(key))

    async def files(self) -> Sequence[StoredFile]:
        """List the table's folder."""
        return [StoredFile(*entry) for entry in await self._reads.entries()]

    async def metadata_files(self, folder: str) -> Sequence[StoredFile]:
        """List the folder of the metadata, which lies in the table's folder."""
        return [StoredFile(*entry) for entry in await self._reads.entries(self._key(folder))]

    async def existing(self, paths: Sequence[str]) -> AbstractSet[str]:
        """List the table's folder, which takes fewer requests than one for each file."""
        names = {file.name for file in await self.files()}
        return {path for path in paths if self._key(path) in names}

    def _key(self, path: str) -> str:
        place = literal_location(self.location, path) or ""
        root = self.location.rstrip("/") + "/"
        if not place.startswith(root):
            raise Unsupported(f"{self.location}: the metadata name {path}, outside of the table", field="path")
        return decoded_path(place)[len(decoded_path(self.location).rstrip("/")) + 1 :]

    async def _hint(self) -> int | None:
        body = await self._reads.get(f"{METADATA_FOLDER}/{VERSION_HINT}")
        return None if body is None else whole_number(body.strip().decode("ascii", "replace"))

    async def _file(self, version: int) -> tuple[str, bytes] | None:
        """Return path and bytes of a metadata file."""
        for spelling in _SPELLINGS:
            name = f"{METADATA_FOLDER}/{spelling.format(version)}"
            body = await self._reads.get(name)
            if body is not None:
                return f"{self.location}/{name}", body
        return None

    async def _listed(self) -> int:
        names = await self._reads.list(METADATA_FOLDER)
        versions = [int(found[1]) for name in names if (found := _METADATA_FILE.fullmatch(name))]
        if not versions:
            raise NoTable(f"{self.location}: there is no Iceberg table", field="location")
        return max(versions)


async def _with_marks(source: MetadataSource, head: TableHead) -> TableHead:
    """Return metadata with what only a file beside them shows; a request, where it may be there."""
    if may_be_of_paimon(head) and await source.read_if_present(f"{head.location}/{PAIMON_SCHEMA}", 1) is not None:
        return as_paimon(head)
    return head


async def is_table_folder(place: ObjectReader, path: str) -> bool:
    """Return whether a folder has numbered metadata files; a catalog's table names them otherwise."""
    names = await place.first_names(f"{path}/{METADATA_FOLDER}" if path else METADATA_FOLDER)
    return any(name == VERSION_HINT or _METADATA_FILE.fullmatch(name) for name in names)
