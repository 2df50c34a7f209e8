"""The tables of `tests/data/qbeast.md`, which Qbeast's library wrote: one archive instead of a hundred small files."""

import atexit
import shutil
import tempfile
from functools import cache, partial
from pathlib import Path

_ARCHIVE = Path(__file__).parents[1] / "data" / "qbeast.zip"


@cache
def qbeast_data() -> Path:
    """Return the folder that the archive was unpacked into, which is there until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="qbeast-data-"))
    atexit.register(partial(shutil.rmtree, folder, ignore_errors=True))
    shutil.unpack_archive(_ARCHIVE, folder)
    return folder
