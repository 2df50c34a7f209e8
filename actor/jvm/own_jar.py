"""The jar of our Java classes: compiled for a wheel or by `make setup`, never when an actor starts.

Its manifest names the state of the sources that it was compiled from; an actor runs no classes of another state.
"""

import hashlib
import re
import zipfile
from pathlib import Path

from shared.errors import PermanentError

JAR = Path(__file__).with_name("lakewright.jar")
SOURCES = Path(__file__).parents[1] / "java"

MANIFEST = "META-INF/MANIFEST.MF"
_STATE = re.compile(r"^Lakewright-Sources: (\w+)", re.MULTILINE)


def own_jar() -> Path:
    """Return the jar; raises PermanentError if there is none, or if it was compiled from other sources."""
    state = state_of(JAR)
    if state != digest():
        found = "is missing" if state is None else f"was not compiled from the sources in {SOURCES}"
        raise PermanentError(
            f"the jar of Lakewright's Java classes {JAR} {found}; compile it with `python -m services.java_jar` "
            "(`make setup` does in a checkout), or install the wheel again"
        )
    return JAR


def sources() -> list[Path]:
    """Return the sources that the jar holds the classes of."""
    return sorted(SOURCES.rglob("*.java"))


def digest() -> str:
    """Return the state of the sources, and of what they are compiled against."""
    found = hashlib.sha256()
    for file in (*sources(), *sorted(Path(__file__).parent.glob("*.sha256"))):
        found.update(f"{file.name}\0".encode() + file.read_bytes())
    return found.hexdigest()[:40]  # A line of a manifest has at most 72 bytes.


def manifest(state: str) -> str:
    """Return the manifest of a jar that is compiled from sources of this state."""
    return f"Manifest-Version: 1.0\nLakewright-Sources: {state}\n\n"


def state_of(jar: Path) -> str | None:
    """Return the state that a jar names, None if there is none."""
    try:
        with zipfile.ZipFile(jar) as archive:
            named = _STATE.search(archive.read(MANIFEST).decode())
    except (OSError, zipfile.BadZipFile, KeyError):
        return None
    return named[1] if named else None
