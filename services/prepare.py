"""What an actor needs beyond Python packages is there before the first start: a Java, and the jars of Delta.

`python -m services.prepare` says what it found and what it fetches; a second call only looks.
"""

import os
import sys
from collections.abc import Callable, Mapping

from actor.delta import jars
from actor.delta.java import find_java
from services.places import ivy_dir, java_search
from shared.errors import LakewrightError


def prepare(environ: Mapping[str, str], say: Callable[[str], None] | None = None) -> None:
    """Find or prepare Java, fetch the jars that are missing; `say` hears each step, standard output without one.

    Raises:
        InvalidInput: no Java can be used.
        PermanentError: the jars cannot be fetched.
    """
    tell = say or _say
    java = find_java(java_search(environ))
    tell(f"Java {java.version} from {java.source}: {java.path}")
    directory = ivy_dir(environ)
    found = jars.look_up(directory)
    if found.complete:
        tell(f"Spark's jars for Delta: all {len(found.files)} in {found.directory}")
        return
    tell(f"Spark's jars for Delta: fetching {len(found.missing) + len(found.damaged)} (13 MB) into {found.directory}")
    jars.fetch(directory, java, environment=environ, progress=lambda line: tell(f"  {line}"))


def _say(line: str) -> None:
    print(f"[setup] {line}", flush=True)


def main() -> int:
    """Prepare with this process's environment; 1 and a sentence on standard error if it cannot be done."""
    try:
        prepare(os.environ)
    except LakewrightError as error:
        print(f"[setup] error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
