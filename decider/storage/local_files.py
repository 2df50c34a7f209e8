"""A local file is read only if it is a plain file of a bounded size, and no open of it waits for anyone.

Everyone who may write into a table's folder chooses what lies there: a pipe that no one writes to, a device without an
end, a hole of terabytes, a link to a file of others.
"""

import os
import stat
from collections.abc import Sequence
from io import FileIO
from pathlib import Path

from shared.errors import Corrupt, InvalidInput, PermanentError
from shared.plain_files import odd_kind

MAX_OBJECT_BYTES = 256 * 1024 * 1024
"""Largest object that is read into memory at once: a commit that adds some 300,000 files."""

_PLAIN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


def read_files(folder: Path, keys: Sequence[str], max_bytes: int, budget_bytes: int) -> list[bytes | None]:
    """Return the first of several files, until they have taken the budget; None for one that does not exist."""
    found: list[bytes | None] = []
    taken = 0
    for key in keys:
        body = read_file(folder, key, max_bytes)
        found.append(body)
        taken += len(body or b"")
        if taken >= budget_bytes:
            break
    return found


def read_file(folder: Path, key: str, max_bytes: int, first_bytes: int | None = None) -> bytes | None:
    """Return a file below a folder, or its first bytes; None if it does not exist.

    Raises Corrupt for what is no plain file or larger than `max_bytes`, and OSError. The first folder of a key may be a
    link, whose place the boundary has checked; nothing else may be one.
    """
    path = f"{folder}/{key}"
    try:
        descriptor = _opened(folder, key)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        if path_is_link(path):
            raise Corrupt(f"{path} is a link, and links are not followed in a table; replace it by its file") from None
        raise
    with FileIO(descriptor) as file:
        found = os.fstat(descriptor)
        if kind := odd_kind(found.st_mode):
            raise Corrupt(f"{path} is {kind} and not a plain file; remove it")
        if first_bytes is not None:
            return _read(file, first_bytes)
        check_size(path, found.st_size, max_bytes)
        body = _read(file, found.st_size + 1)
        check_size(path, len(body), max_bytes)
        return body


def read_chosen_file(path: Path, max_bytes: int) -> bytes:
    """Return a file at a place that was checked or chosen by an operator; raises InvalidInput and OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with FileIO(descriptor) as file:
        found = os.fstat(descriptor)
        if odd_kind(found.st_mode):
            raise InvalidInput(f"{path}: this is no plain file")
        body = _read(file, min(found.st_size, max_bytes) + 1)
        if len(body) > found.st_size:  # It grew, or has no size, as files of the kernel have none.
            body += _read(file, max_bytes + 1 - len(body))
    if len(body) > max_bytes:
        raise InvalidInput(f"{path}: the file has more than {max_bytes} bytes, and that is the limit")
    return body


def check_size(path: str, size_bytes: int, max_bytes: int) -> None:
    """Raise Corrupt for an object that is larger than may be read into memory."""
    if size_bytes > max_bytes:
        raise Corrupt(
            f"{path} has {size_bytes} bytes, and at most {max_bytes} are read into memory; write smaller files, such "
            "as a checkpoint in parts"
        )


def path_is_link(path: str) -> bool:
    """Return whether the last part of a path is a link."""
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False


def _opened(folder: Path, key: str) -> int:
    parts = key.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise PermanentError(f"{folder}: {key} is no path of a file below it")
    if len(parts) <= 2:  # noqa: PLR2004 - a folder and a name: nothing between that may not be a link
        return os.open(f"{folder}/{key}", _PLAIN)
    inside = os.open(f"{folder}/{parts[0]}", os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        for part in parts[1:-1]:
            deeper = os.open(part, _PLAIN | os.O_DIRECTORY, dir_fd=inside)
            os.close(inside)
            inside = deeper
        return os.open(parts[-1], _PLAIN, dir_fd=inside)
    finally:
        os.close(inside)


def _read(file: FileIO, length: int) -> bytes:
    """Return so many bytes, fewer only at the end of the file: one call reads 2 GiB at most."""
    body = file.read(length) or b""
    if len(body) == length or not body:
        return body
    parts = [body]
    while length > (have := sum(map(len, parts))) and (more := file.read(length - have)):
        parts.append(more)
    return body if len(parts) == 1 else b"".join(parts)
