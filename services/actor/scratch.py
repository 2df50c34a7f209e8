"""Scratch space of one actor process: gone when it ends, and swept up by the next one if it was killed."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_dir(parent: Path) -> Iterator[Path]:
    """Own a new folder below `parent`; folders whose owner is dead are removed first.

    An owner holds a lock on its folder, which the system drops with the process, however that ends.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for abandoned in parent.glob("actor-*"):
        _remove_if_abandoned(abandoned)
    folder = Path(tempfile.mkdtemp(prefix="actor-", dir=parent))
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_if_abandoned(folder: Path) -> None:
    try:
        with (folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # Owned by a living process, or not fully made yet: not ours to touch.
        return
