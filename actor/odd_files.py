"""Files of a table on this machine's disk that are no plain files: Spark would open it, and wait or follow it."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from shared.paths.boundary import Boundary
from shared.plain_files import odd_kind


def local_boundary() -> Boundary:
    """Return the rule of what may be read anywhere on this machine's disk: links are followed, odd files are not."""
    return Boundary(real_path=os.path.realpath, first_odd=first_odd, is_link=os.path.islink)


def first_odd(place: str) -> str:
    """Return a sentence's start about the first file at or right below a place that is no plain one, empty if none is.

    A folder below a folder is none of its files, and what cannot be read is left to the open to report.
    """
    with suppress(OSError):
        for path, mode in _modes(place):
            if kind := odd_kind(mode):
                return f"{path} is {kind} and not a plain file"
    return ""


def _modes(place: str) -> Iterator[tuple[str, int]]:
    mode = os.lstat(place).st_mode
    if not stat.S_ISDIR(mode):
        yield place, mode
        return
    with os.scandir(place) as entries:
        for entry in entries:
            # The kind is part of the listing, so that a log of many files takes no call for each.
            if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
                yield entry.path, entry.stat(follow_symlinks=False).st_mode
