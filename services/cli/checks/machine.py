"""Checks of this machine: Python, Java, jars, disk. Nothing is changed but the shim of the bundled Java."""

import shutil
import sys
from pathlib import Path

from actor.jvm import jars
from actor.jvm.java import JavaSearch, find_java
from services.cli.checks.finding import Finding, FindingLevel
from shared.errors import LakewrightError

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
FREE_WARN_BYTES = 5 * 2**30  # Spark spills what does not fit in memory, and Redis rewrites its file beside the old one.
FREE_FAIL_BYTES = 512 * 2**20  # Below this the next rewrite of the append-only file may fail.


def check_python(version: tuple[int, ...]) -> Finding:
    """The interpreter that runs this is one that Lakewright is tested on."""
    what = f"Python {'.'.join(map(str, version))}"
    if OLDEST_PYTHON <= version <= NEWEST_PYTHON:
        return Finding("python", FindingLevel.OK, what, sys.executable)
    return Finding("python", FindingLevel.FAIL, what, sys.executable, "use Python 3.11, 3.12 or 3.13")


def check_java(search: JavaSearch) -> Finding:
    """There is a Java that Spark runs on."""
    try:
        java = find_java(search)
    except LakewrightError as error:
        return Finding("java", FindingLevel.FAIL, str(error), action="needed by actors only")
    return Finding("java", FindingLevel.OK, f"Java {java.version} from {java.source}", str(java.path))


def check_jars(directory: Path) -> Finding:
    """Delta's jars are there, so that an actor starts without a network."""
    found = jars.look_up(directory)
    if found.complete:
        return Finding("jars", FindingLevel.OK, f"all {len(found.files)} jars of Delta", str(found.directory))
    lacking = [f"{name} is missing" for name in found.missing] + [f"{name} is damaged" for name in found.damaged]
    return Finding(
        "jars",
        FindingLevel.WARN,
        f"{len(lacking)} of {len(found.files)} jars: {lacking[0]}",
        str(found.directory),
        "the next actor fetches them; or run `python -m services.bootstrap` (`make setup`)",
    )


def check_disk(directory: Path) -> Finding:
    """There is room where Redis and Spark write."""
    existing = next(folder for folder in (directory.resolve(), *directory.resolve().parents) if folder.is_dir())
    free_bytes = shutil.disk_usage(existing).free
    what = f"{free_bytes / 2**30:.1f} GiB free"
    if free_bytes >= FREE_WARN_BYTES:
        return Finding("disk", FindingLevel.OK, what, str(existing))
    status = FindingLevel.FAIL if free_bytes < FREE_FAIL_BYTES else FindingLevel.WARN
    return Finding("disk", status, what, str(existing), "make room, or set LAKEWRIGHT_DATA_DIR to a larger disk")
