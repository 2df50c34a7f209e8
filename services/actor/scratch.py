"""Scratch space of one actor process: deleted when it ends, or by the next one if it was killed."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_dir(parent: Path) -> Iterator[Path]:
    """Own a new folder below `parent`; folders whose owner is dead are removed first.

    An owner holds a lock on its folder, which the system drops with the process, however that ends. Who sweeps or makes
    a folder holds the parent's lock, so that no folder is seen between being made and being locked.
    """
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / ".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for abandoned in parent.glob("actor-*"):
            _remove_if_abandoned(abandoned)
        folder = Path(tempfile.mkdtemp(prefix="actor-", dir=parent))
        lock = (folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_if_abandoned(folder: Path) -> None:
    try:
        with (folder / "lock").open("r+") as lock:  # Never created here: such a lock would have no owner.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except FileNotFoundError:  # Its owner was killed before it could lock it, or is removing it right now.
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # Owned by a living process, or by another user: not ours to touch.
        return
