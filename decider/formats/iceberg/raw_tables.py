"""A catalog's table as its metadata file has it: pyiceberg's classes refuse whatever they do not know.

They know two kinds of statistics, some types, and no later release of the format. What matters here is decoded by
`shared.formats.iceberg.metadata`, which leaves the rest alone. So only the place of the metadata file, and the access
to files, are pyiceberg's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decider.storage.local_files import MAX_OBJECT_BYTES, check_size, read_chosen_file
from shared.errors import Corrupt
from shared.formats.iceberg.metadata import parse_metadata
from shared.paths.locations import decoded_path, literal_location

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO


@dataclass(frozen=True, slots=True)
class RawTable:
    """The JSON of a table's metadata, the path of their file, and access to the table's files."""

    raw: Mapping[str, Any]
    path: str
    io: "FileIO"

    @property
    def identity(self) -> str:
        """A text that no other metadata of a table at this place have; empty if nothing distinguishes them."""
        return f"{self.raw.get('table-uuid')} {self.raw.get('last-updated-ms')} {self.path}" if self.path else ""


_CONVERTERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "sql": ("_convert_orm_to_iceberg", lambda entry: entry.metadata_location),
    "glue": ("_convert_glue_to_iceberg", lambda entry: _pointer(entry.get("Parameters") or {})),
    "hive": ("_convert_hive_into_iceberg", lambda entry: _pointer(entry.parameters)),
}
"""The method of each kind of catalog that makes a table of an entry, and what the entry says of its metadata file."""


def with_raw_tables(catalog: Any, kind: str) -> "Catalog":
    """Return a catalog whose `load_table` returns a `RawTable`; nothing else of it makes tables here."""
    name, location_of = _CONVERTERS[kind]

    def convert(entry: Any) -> RawTable:
        path = location_of(entry)
        if not path:
            from pyiceberg.exceptions import NoSuchIcebergTableError  # noqa: PLC0415 - with the rest of pyiceberg

            raise NoSuchIcebergTableError("the entry of the catalog has no metadata of Iceberg")
        return read_raw(catalog, path)

    setattr(catalog, name, convert)
    found: Catalog = catalog
    return found


def read_raw(catalog: Any, path: str) -> RawTable:
    """Read the metadata file that a catalog names; raises Corrupt for one that is missing or damaged.

    Files are read with the options of the settings, not with the table's properties, as pyiceberg would: everyone who
    may write to a table sets those, and they name classes, hosts and keys.
    """
    io = catalog._load_file_io(location=path)  # noqa: SLF001 - the one place where pyiceberg joins both
    try:
        body = read_file(io, path, literal_location(path, path) or "")
    except FileNotFoundError as missing:
        raise Corrupt(f"{path}, which the catalog names, is missing") from missing
    return RawTable(parse_metadata(body, path), path, io)


def read_file(io: "FileIO", path: str, place: str) -> bytes:
    """Read a metadata file, whose canonical location is `place`, into memory; a local one by ourselves.

    pyiceberg would wait for a pipe. Raises FileNotFoundError, Corrupt for one
    that is too large, InvalidInput for one that is no plain file, and what `io` raises.
    """
    if place.startswith("file:"):
        return read_chosen_file(Path(decoded_path(place)), MAX_OBJECT_BYTES)
    file = io.new_input(path)
    with file.open() as stream:
        check_size(path, len(file), MAX_OBJECT_BYTES)
        return bytes(stream.read())


def _pointer(parameters: Mapping[str, str]) -> str:
    is_ours = parameters.get("table_type", "").lower() == "iceberg"
    return parameters.get("metadata_location", "") if is_ours else ""
