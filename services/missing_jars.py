"""Fetches a set of jars unless it is there; imports nothing beyond Python, for builds of packages fetch jars, too."""

from collections.abc import Callable, Mapping

from actor.jvm import jars
from actor.jvm.java import JavaHome
from services.paths import ivy_dir


def fetch_missing(
    wanted: jars.JarSet, java: JavaHome, environ: Mapping[str, str], report: Callable[[str], None]
) -> None:
    """Fetch a set of jars unless they are all there; `report` gets each step."""
    directory = ivy_dir(environ)
    found = jars.look_up(directory, wanted)
    about = f"Spark's jars for {wanted.purpose}"
    if found.complete:
        report(f"{about}: all {len(found.files)} in {found.directory}")
        return
    report(f"{about}: fetching {len(found.missing) + len(found.damaged)} ({wanted.size_mb} MB) into {found.directory}")
    jars.fetch(directory, java, environment=environ, progress=lambda line: report(f"  {line}"), wanted=wanted)
