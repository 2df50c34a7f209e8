"""Where a table's metadata come from: a catalog that knows its name, or the folder of a table that has none.

pyiceberg is synchronous, so its calls run in threads; each of them ends, for every request has a time limit.
"""

import asyncio
import gzip
import re
import zlib
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from decider.formats.iceberg.catalogs import NamedCatalog, translated
from decider.storage.object_reads import ObjectReader, ReadKind, ReadMeter
from shared.errors import Corrupt, NoTable, Unsupported
from shared.formats.iceberg.metadata import TableHead, decode_head
from shared.locations import decoded_path, file_location

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

METADATA_FOLDER = "metadata"
VERSION_HINT = "version-hint.text"

_METADATA_FILE = re.compile(r"v(\d{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)
_SPELLINGS = ("v{}.metadata.json", "v{}.gz.metadata.json", "v{}.metadata.json.gz")
_GZIP = b"\x1f\x8b"
_MAX_PROBES = 1_000
"""Versions above the hint that are tried one by one; a hint is older only where writers left it behind."""


class MetadataSource(Protocol):
    """Reads one table's metadata files."""

    location: str

    async def head(self) -> TableHead:
        """Return the newest metadata. Raises NoTable, Corrupt, Unsupported, RetryableError and PermanentError."""

    async def read(self, path: str) -> bytes:
        """Return a metadata file by its path; raises what `head` raises, Corrupt for one that is missing."""


class CatalogSource:
    """A table of a catalog."""

    def __init__(self, catalog: NamedCatalog, name: tuple[str, ...], location: str, meter: ReadMeter) -> None:
        self._catalog = catalog
        self._name = name
        self._meter = meter
        self._io: FileIO | None = None
        self.location = location

    async def head(self) -> TableHead:
        """Ask the catalog for the table."""
        self._meter.add(ReadKind.GET)
        loaded = await asyncio.to_thread(self._catalog.load, self._name)
        self._io = loaded.io
        return await asyncio.to_thread(self._decoded, loaded)

    async def read(self, path: str) -> bytes:
        """Read through the catalog's own file access, which may hold credentials for this table alone."""
        self._meter.add(ReadKind.GET)
        if self._io is None:
            await self.head()
        return await asyncio.to_thread(self._read, path)

    def _decoded(self, loaded: "Table") -> TableHead:
        return decode_head(loaded.metadata.model_dump(mode="json", by_alias=True, exclude_none=True), self.location)

    def _read(self, path: str) -> bytes:
        io: Any = self._io
        with translated(f"{self.location}: reading {path}"):
            try:
                with io.new_input(path).open() as stream:
                    return bytes(stream.read())
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
        body = None if version is None else await self._body(version)
        if version is None or body is None:
            version = await self._listed()
            body = await self._body(version)
        for later in range(version + 1, version + _MAX_PROBES):
            newer = await self._body(later)
            if newer is None:
                break
            body = newer
        if body is None:
            raise Corrupt(f"{self.location}: metadata file {version} is missing")
        raw = body
        head = await asyncio.to_thread(lambda: decode_head(_parsed(raw, self.location), self.location))
        if file_location(self.location, head.location) != self.location:
            raise Unsupported(
                f"{self.location}: the metadata say that the table lies at {head.location}; tables that were copied or "
                "moved are not read without a catalog",
                field="location",
            )
        return head

    async def read(self, path: str) -> bytes:
        """Read a file below the table's folder."""
        body = await self._reads.get(self._key(path))
        if body is None:
            raise Corrupt(f"{self.location}: {path} is missing")
        return body

    def _key(self, path: str) -> str:
        place = file_location(self.location, path) or ""
        root = self.location.rstrip("/") + "/"
        if not place.startswith(root):
            raise Unsupported(f"{self.location}: the metadata name {path}, outside of the table", field="path")
        return decoded_path(place)[len(decoded_path(self.location).rstrip("/")) + 1 :]

    async def _hint(self) -> int | None:
        body = await self._reads.get(f"{METADATA_FOLDER}/{VERSION_HINT}")
        text = b"" if body is None else body.strip()
        return int(text) if text.isdigit() else None

    async def _body(self, version: int) -> bytes | None:
        for spelling in _SPELLINGS:
            body = await self._reads.get(f"{METADATA_FOLDER}/{spelling.format(version)}")
            if body is not None:
                return body
        return None

    async def _listed(self) -> int:
        names = await self._reads.list(METADATA_FOLDER)
        versions = [int(found[1]) for name in names if (found := _METADATA_FILE.fullmatch(name))]
        if not versions:
            raise NoTable(f"{self.location}: there is no Iceberg table", field="location")
        return max(versions)


async def is_table_folder(place: ObjectReader, path: str) -> bool:
    """Return whether a folder has numbered metadata files; those of a catalog's table have other names."""
    names = await place.first_names(f"{path}/{METADATA_FOLDER}" if path else METADATA_FOLDER)
    return any(name == VERSION_HINT or _METADATA_FILE.fullmatch(name) for name in names)


def _parsed(body: bytes, location: str) -> dict[str, Any]:
    try:
        found = orjson.loads(gzip.decompress(body) if body.startswith(_GZIP) else body)
    except (ValueError, OSError, EOFError, zlib.error) as problem:
        raise Corrupt(f"{location}: the metadata are no JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise Corrupt(f"{location}: the metadata are no JSON object")
    return found
