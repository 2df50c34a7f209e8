"""Spellings of a data file's path that every engine agrees on: the log compares paths as text, never as files.

The Delta protocol calls `path` a URI, and engines escape different characters in it. A remove that delta-rs writes
spells the path again: it decodes the path of the add, then escapes by its own rules. Where that text differs from the
add's, log replay sees no removal, and the file stays live: its rows are duplicated. Spark and Delta Kernel repeat
the add's own text. Measured with deltalake 1.5.1 for every ASCII character and several alphabets; see
`tests/unit/shared/paths/test_locations.py`.

All code that counts files of a log (snapshots, commits, replays) uses this key and never the text of the path.
"""

import posixpath
import re
import string
from urllib.parse import unquote

from shared.table import DataFile, RemovedFile

_ALWAYS_RAW = frozenset(string.ascii_letters + string.digits + "-_.~!$&'()+,;=@/")
"""Characters that no engine escapes."""

_ALWAYS_ESCAPED = frozenset('"#%<>?[\\]^`{|}')
"""Characters that every engine writes as `%` with two uppercase hexadecimal digits.

The others are escaped by some engines and left by others: the blank, `*`, `:` (where it could end a URI's scheme),
control characters and all that is not ASCII.
"""

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
PLAIN_PATH = "[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*"
"""Regular expression of a path in which no engine escapes anything; without `.` and `..` segments it is portable."""

_PLAIN = re.compile(PLAIN_PATH)


def is_portable(path: str) -> bool:
    """Return whether every engine spells this `path` of a file action without change; absolute ones never are."""
    decoded = unquote(path, errors="replace")
    segments = path.split("/")
    return (
        all(segment not in ("", ".", "..") for segment in segments)
        and decoded.count("/") == len(segments) - 1  # An escaped slash comes back as a real one.
        and "".join(map(_spelled, decoded)) == path
    )


def is_plain(path: str) -> bool:
    """Return whether no engine escapes or has escaped anything in this path; Lakewright's outputs have such paths."""
    return _PLAIN.fullmatch(path) is not None and is_portable(path)


def is_harmful(path: str) -> bool:
    """Return whether a remove by some engine can miss this file of the table's own folder.

    Absolute paths name files of other tables, which are not rewritten for how they are spelled.
    """
    return not is_absolute(path) and not is_portable(path)


def is_absolute(path: str) -> bool:
    """Return whether this `path` names its place by itself rather than below the table's folder."""
    return _ABSOLUTE.match(path) is not None


def file_name(path: str) -> str:
    """Return the name of the file that this `path` means, the same for all its spellings; relative paths only."""
    return unquote(path)


def _spelled(character: str) -> str:
    """Return a decoded character as all engines write it, the empty string (which equals nothing) if they differ."""
    if character in _ALWAYS_RAW:
        return character
    return f"%{ord(character):02X}" if character in _ALWAYS_ESCAPED else ""


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://(?=/))?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


def canonical_path(path: str) -> str:
    """Return the spelling of a log's path under which Delta compares it: as a normalised URI, never decoded.

    `/x`, `file:/x` and `file:///x` are one path, and so are `%2f` and `%2F`; `a%3Db` and `a=b` are two.
    """
    if "%" in path:
        path = _ESCAPE.sub(lambda escape: escape[0].upper(), path)
    if path.startswith("/"):
        return "file:" + _normalised(path)
    scheme = _SCHEME.fullmatch(path) if ":" in path else None
    if scheme is None:
        return _normalised(path)
    return f"{scheme[1].lower()}:{_normalised(scheme[2]) if scheme[2].startswith('/') else scheme[2]}"


def _normalised(path: str) -> str:
    """Return a path without empty, `.` and resolvable `..` segments; two leading slashes (a host) stay."""
    if "./" not in path and "//" not in path and not path.endswith("/."):
        return path
    return posixpath.normpath(path)


PathKey = tuple[str, str | None]
"""Canonical path and deletion vector: what makes two actions speak of one file."""


def path_key(file: DataFile | RemovedFile) -> PathKey:
    """Return the key under which Delta's replay of a log keeps a file."""
    return canonical_path(file.path), file.dv_id
