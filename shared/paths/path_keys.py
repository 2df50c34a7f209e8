"""Key of a file in a log: Delta compares normalized URIs, so several spellings of a path are one file.

All code that counts files of a log (snapshots, commits, replays) uses this key and never the text of the path.
"""

import posixpath
import re

from shared.table import DataFile, RemovedFile

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
