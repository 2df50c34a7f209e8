"""Stored files that an action of a Delta log needs, by their names below the table's folder.

Engines spell one path in several ways, and a path may be absolute. A name that might be meant is a name that is kept:
this module may name too many files, never too few.
"""

import posixpath
from base64 import b85decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

from shared.paths.data_paths import is_absolute
from shared.paths.locations import decoded_path, file_location

VECTOR_NAME = "deletion_vector_{}.bin"
"""Name of a file of deletion vectors, by its UUID (protocol, "Deletion Vector Descriptor Schema")."""

_UUID_CHARS = 20

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)


@dataclass(frozen=True, slots=True)
class FileReference:
    """The stored files of one `add`, `remove` or `cdc`: names below the table's folder, decoded.

    `own`: the names as Delta reads them, each with its size in bytes (0: unknown); what a removal frees. A path that is
    absolute is none of these: as in a shallow clone, the file may be another table's. `kept`: every name that some
    engine could mean, so a superset. `outside`: base names of files that may not be in the table.
    """

    own: tuple[tuple[str, int], ...]
    kept: tuple[str, ...]
    outside: tuple[str, ...] = ()


def reference(action: Mapping[str, Any], location: str) -> FileReference:
    """Return the files of an action of the table at a canonical location."""
    own: list[tuple[str, int]] = []
    kept: list[str] = []
    outside: list[str] = []
    for path, size_bytes in _paths(action):
        name = _name_below(location, path)
        if name is None:
            outside += {posixpath.basename(path), posixpath.basename(unquote(path))}
            continue
        if is_absolute(path):
            kept.append(name)
            continue
        own.append((name, size_bytes))
        kept += {name, _normal(path), _normal(unquote(path))}
    return FileReference(tuple(own), tuple(kept), tuple(outside))


def _paths(action: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the paths that an action names, each with its size in bytes."""
    yield action["path"], int(action.get("size") or 0)
    vector = vector_path(action.get("deletionVector"))
    if vector is not None:
        yield vector, 0


def vector_path(vector: Mapping[str, Any] | None) -> str | None:
    """Return the path of the file that holds a deletion vector, as a log spells paths; None where the log holds it."""
    if not vector or vector["storageType"] == "i":
        return None
    place: str = vector["pathOrInlineDv"]
    if vector["storageType"] == "p":
        return place
    prefix, encoded = place[:-_UUID_CHARS], place[-_UUID_CHARS:]
    name = VECTOR_NAME.format(UUID(bytes=b85decode(encoded.translate(_TO_B85))))
    # The prefix is a folder's name and no URI.
    return f"{quote(prefix)}/{name}".lstrip("/") if prefix else name


def _name_below(location: str, path: str) -> str | None:
    """Return the name of a file below its table's folder as Delta reads it; None for one outside of it."""
    if not is_absolute(path):
        return _normal(unquote(path))
    place = file_location(location, path)
    root = decoded_path(location).rstrip("/") + "/"
    if place is None or place.partition("://")[0] != location.partition("://")[0]:
        return None
    decoded = decoded_path(place)
    same_store = place.split("/")[2] == location.split("/")[2]
    return decoded.removeprefix(root) if same_store and decoded.startswith(root) else None


def _normal(name: str) -> str:
    return posixpath.normpath(name) if "./" in name or "//" in name else name
