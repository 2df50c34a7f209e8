"""Provides what an actor needs beyond Python packages, before the first start: a Java, and the jars of Delta.

Jars for S3 are fetched only if LAKEWRIGHT_ALLOW_S3 is set, that for Iceberg only if LAKEWRIGHT_CATALOGS or
LAKEWRIGHT_ICEBERG_FOLDERS is. `python -m services.bootstrap` prints what it finds and fetches; a second call only
checks.
"""

import os
import sys
from collections.abc import Callable, Mapping

from actor.jvm import jars
from actor.jvm.java import find_java
from services.actor.settings import allows_s3
from services.missing_jars import fetch_missing
from services.paths import java_search
from services.settings import format_options
from services.visible_text import visible_lines
from shared.errors import LakewrightError


def prepare(environ: Mapping[str, str], report: Callable[[str], None] | None = None) -> None:
    """Find or prepare Java, fetch the jars that are missing; `report` gets each step, standard output without one.

    Raises:
        InvalidInput: no Java can be used.
        PermanentError: the jars cannot be fetched.
    """
    report = report or _print
    java = find_java(java_search(environ))
    report(f"Java {java.version} from {java.source}: {java.path}")
    wanted_sets = [jars.DELTA]
    wanted_sets += [jars.ICEBERG] if format_options(environ).has_iceberg else []
    wanted_sets += [jars.S3] if allows_s3(environ) else []
    for wanted in wanted_sets:
        fetch_missing(wanted, java, environ, report)


def _print(line: str) -> None:
    print(f"[setup] {line}", flush=True)


def main() -> int:
    """Prepare with this process's environment; 1 and a sentence on standard error if it cannot be done."""
    try:
        prepare(os.environ)
    except LakewrightError as error:
        print(f"[setup] error: {visible_lines(str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
