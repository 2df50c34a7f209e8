"""Finds metadata of a table that its catalog does not know: another catalog may have an entry with them.

A table that was registered in a second catalog has two histories from then on, and each entry knows its own alone. What
one of them expires may be live in the other. Both write metadata files into one folder. So files there that are newer
than the oldest known one, and are not known, may be the other entry's; files of refused commits look the same.
The snapshots of all of them stay. An entry without a commit since then cannot be seen.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence

from shared.errors import Corrupt, Unsupported
from shared.formats.iceberg.metadata import TableHead, decode_head, parse_metadata
from shared.formats.iceberg.orphans import METADATA_FOLDER, file_key
from shared.formats.iceberg.walk import Bodies, Read, chunks
from shared.paths.stored_file import StoredFile

MAX_UNKNOWN = 1_000
"""New metadata files that are not known, beyond which nothing is deleted: each has to be read."""

SUFFIXES = (".metadata.json", ".metadata.json.gz")
"""How the names of metadata files end."""


def metadata_folder(head: TableHead) -> str:
    """Return the folder of a table's newest metadata file, without a final slash."""
    return head.records.path.rpartition("/")[0] or f"{head.location}/{METADATA_FOLDER}"


def read_other_entries(
    head: TableHead, folder: str, listed: Sequence[StoredFile]
) -> Generator[Read, Bodies, tuple[TableHead, ...]]:
    """Return the newest metadata of each history that may be another entry's; none of another table.

    `listed`: the files of the folder of the metadata, by their names in it; listed before `head` was read. Raises
    Unsupported for more than `MAX_UNKNOWN` of them, and for those that only a later release can read.
    """
    unknown = newer_unknown(head, {f"{folder}/{one.name}": one for one in listed if one.name.endswith(SUFFIXES)})
    if len(unknown) > MAX_UNKNOWN:
        raise Unsupported(
            f"{folder} has {len(unknown)} new metadata files that are not known to this table, which may be in two "
            "catalogs; nothing is deleted",
            field="metadata-log",
        )
    found: list[TableHead] = []
    earlier: set[str] = set()
    for some in chunks(unknown):
        bodies = yield Read(some)
        for path, body in zip(some, bodies, strict=True):
            for other in _decoded(path, body, head.metadata.table_uuid):
                if file_key(path) not in earlier:
                    found.append(other)
                    earlier.update(file_key(one) for one in other.records.previous)
    return tuple(found)


def newer_unknown(head: TableHead, files: Mapping[str, StoredFile]) -> list[str]:
    """Return the metadata files that are not known, and not older than all known ones; the newest first."""
    known = {file_key(one) for one in (*head.records.previous, head.records.path)}
    since_ms = min((file.modified_ms for path, file in files.items() if file_key(path) in known), default=0)
    found = (path for path, file in files.items() if file_key(path) not in known and file.modified_ms >= since_ms)
    return sorted(found, key=lambda path: (-files[path].modified_ms, path))


def _decoded(path: str, body: bytes | None, table_uuid: str) -> Iterator[TableHead]:
    """Yield metadata of this table; what is no metadata file at all, is no catalog's."""
    if body is None:
        return
    try:
        raw = parse_metadata(body, path)
    except Corrupt:
        return
    if raw.get("table-uuid") == table_uuid:
        yield decode_head(raw, path, path)
