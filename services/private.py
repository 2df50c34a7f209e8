"""Private folders for what others on this machine must not read or replace: made, checked, closed."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from shared.errors import PermanentError


def private_dir(folder: Path) -> Path:
    """Make a folder that no other can enter, and return it; one that is there has to be such a folder.

    Its name can be guessed and any user may create it first: classes are loaded from below. Raises PermanentError for
    a link, another user's folder, or one that others can enter.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermanentError(
            f"{folder} is not a folder of this user alone ({stat.filemode(found.st_mode)}, user {found.st_uid}), so "
            "nothing is put there; remove it, or set TMPDIR to a folder of your own"
        )
    return folder


def closed_dir(folder: Path) -> Path:
    """Make a folder of this user's that no other can enter, and return it; one that is there is closed to others.

    Raises PermanentError for a link or another user's folder.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermanentError(
            f"{folder} is not a folder of this user ({stat.filemode(found.st_mode)}, user {found.st_uid}), so nothing "
            "is put there; remove it, or choose another data directory"
        )
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder
