"""Orphans of an Iceberg table: files of a listing that a vacuum deletes, because no snapshot names them.

A file is an orphan only if all of these hold; whatever is not known to be the table's own is left alone:

1. No needed file has its base name, however a store or an engine may spell it.
2. It is older than the retention, and than `MIN_ORPHAN_AGE_MS`.
3. It is named like a data file, a delete file or a file of statistics, or, in the folder of the metadata, like a
   manifest. Metadata files are never deleted: catalogs may name any of them.
4. It lies below `data`, in the folder of the metadata, or in a folder in which a snapshot has a file, and is then named
   as writers of Iceberg name files: other systems write there, too. No folder below the table's begins with a dot or
   an underscore.
5. It is in no other table, and the table's folder is none, of whatever system (`shared.formats.table_marks`), nor has
   it a metadata file of another one. Where a table was renamed, and another one created with its old name, both have
   one folder, and neither knows the files of the other.
"""

import re
import zlib
from dataclasses import dataclass
from enum import StrEnum
from posixpath import normpath
from unicodedata import normalize
from urllib.parse import unquote

from shared.formats.table_marks import UUID

MIN_ORPHAN_AGE_MS = 3 * 24 * 3_600_000
"""Least age of an orphan that is deleted, whatever the retention: a writer may still commit younger files. Three days
are what Iceberg's own procedure takes."""

METADATA_FOLDER = "metadata"

_METADATA_FILE = re.compile(r"metadata/[^/]+\.metadata\.json(?:\.gz)?")
_CONTENT = re.compile(r"[^._].*\.(?:parquet|orc|avro|puffin|stats)", re.DOTALL)
_OF_WRITERS = re.compile(rf".*{UUID}.*|\d{{5}}-\d+-.+-\d{{5}}(?:-deletes)?\.[a-z.]+", re.DOTALL)
"""How writers of Iceberg name files: with a UUID, or as its library does, by task, operation and number."""

_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?")
_SLASHES = re.compile(r"/{2,}")
_TABLE_UUID = re.compile(rb'"table-uuid"\s*:\s*"([^"]{1,100})"')


class NotOrphan(StrEnum):
    """Why a listed file is not deleted as an orphan."""

    NEEDED = "needed"
    YOUNG = "young"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class TableFolders:
    """Folders in which a vacuum searches for orphans, as names below the table's folder without a final slash.

    nested: those that are other tables, with a final slash. known: those in which a snapshot has a file.
    """

    nested: tuple[str, ...]
    known: frozenset[str] = frozenset()

    def may_hold(self, name: str) -> bool:
        """Return whether a file of this name may be an orphan of the table."""
        folder, _, base = name.rpartition("/")
        folders = folder.split("/")
        if _CONTENT.fullmatch(base) is None or (self.nested and name.startswith(self.nested)):
            return False
        if any(one.startswith((".", "_")) for one in folders) and folder not in self.known:
            return False
        is_own = folders[0] == "data" or folder == METADATA_FOLDER
        return is_own or (folder in self.known and _OF_WRITERS.fullmatch(base) is not None)


def is_head_file(name: str) -> bool:
    """Return whether a name is of a file by which readers find the newest metadata, which no search deletes."""
    return is_metadata_file(name) or name == f"{METADATA_FOLDER}/version-hint.text"


def is_metadata_file(name: str) -> bool:
    """Return whether a name below the table's folder names a metadata file."""
    return _METADATA_FILE.fullmatch(name) is not None


def table_uuid(start: bytes) -> str | None:
    """Return the id of the table that a metadata file is of, from its first bytes; None where they do not show it."""
    if start.startswith(b"\x1f\x8b"):
        try:
            start = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(start)
        except zlib.error:
            return None
    found = _TABLE_UUID.search(start)
    return None if found is None else found[1].decode(errors="replace")


def young_since_ms(cutoff_ms: int, now_ms: int) -> int:
    """Return the moment before which an orphan must have been written last."""
    return min(cutoff_ms, now_ms - MIN_ORPHAN_AGE_MS)


def file_key(path: str) -> str:
    """Return what is equal for all spellings of a file: without scheme and host, in one case, normal form, encoding.

    Files of several buckets have one key, so that the one that is needed keeps the other: writers spell one bucket, or
    one file system, in several ways.
    """
    place = without_host(path)
    if "%" in place or not place.isascii():
        place = normalize("NFC", unquote(unquote(place)))
    if "/." in place:
        place = normpath(place)
    return _SLASHES.sub("/", place).strip("/").casefold()


def without_host(path: str) -> str:
    """Return a path without scheme and host."""
    return path[found.end() :] if (found := _HOST.match(path)) else path


def base_key(path: str) -> str:
    """Return the same of the last part of a path."""
    return file_key(path).rpartition("/")[2]
