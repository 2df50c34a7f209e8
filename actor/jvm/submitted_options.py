"""Options reach a JVM in a file that only this user can read, and never in its arguments, which every user can.

PySpark would put each option into the command line of `spark-submit` and of the JVM, where `ps` shows the keys of
object stores to everyone on the machine. The file is gone once the JVM has read it.
"""

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

_FILE = "submitted.properties"
_OLDEST_WITH_DEFAULTS = 4
"""Major version of Spark from which on the defaults of its own folder can be loaded beside a file of properties."""


@contextmanager
def submitted_options(options: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Yield what PYSPARK_SUBMIT_ARGS has to be for a JVM with these options; the file is deleted afterwards."""
    file = folder / _FILE
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.writelines(f"{_escaped(name)}={_escaped(value)}\n" for name, value in options.items())
        has_defaults = int(pyspark.__version__.partition(".")[0]) >= _OLDEST_WITH_DEFAULTS
        defaults = "--load-spark-defaults " if has_defaults else ""
        yield f"{defaults}--properties-file {shlex.quote(str(file))} pyspark-shell"
    finally:
        file.unlink(missing_ok=True)


def _escaped(text: str) -> str:
    """Return a text as Java's properties have it, in ASCII; a space first or last would be lost otherwise."""
    units = memoryview(text.encode("utf-16-be")).cast("B")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\u{code:04x}" for code in codes)
