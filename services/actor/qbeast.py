"""`python -m services.actor.qbeast`: an actor of its own for tables with a Qbeast index, and for nothing else.

The library needs Spark 3.5 and Delta 3.1, so this runs in an environment that `make setup-qbeast` creates. It has an
actor's settings, and the library's jar. Tables on S3 are refused. `--fetch` only fetches Delta's jars, as images
need; `--prepare` also looks for the library's jar.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import structlog

from actor.formats.registry import IndexEngineOptions, start_index_engine
from actor.jvm import jars
from actor.jvm.java import JavaHome, collector_options, find_java
from services.actor import settings as actor_variables
from services.actor.__main__ import VARIABLES, StartedEngines, main
from services.actor.secrets import known_secrets
from services.actor.settings import QBEAST_JAR, ActorSettings
from services.missing_jars import fetch_missing
from services.paths import ivy_dir, java_search
from services.service_help import parse_no_arguments
from services.visible_text import visible_lines
from shared.errors import InvalidInput, LakewrightError

log = structlog.get_logger()


def library_jar(environment: Mapping[str, str]) -> Path:
    """Return the jar of the library; raises InvalidInput where none is named, or there is none."""
    named = environment.get(QBEAST_JAR, "")
    if not named or not Path(named).is_file():
        where = f"{named} is no file" if named else "it is not set"
        raise InvalidInput(
            f"{QBEAST_JAR} names the jar of qbeast-spark 0.7.1 for Scala 2.12, and {where}: see docs/qbeast.md",
            field=QBEAST_JAR,
        )
    return Path(named)


def start(settings: ActorSettings, scratch: Path, java: JavaHome, environment: Mapping[str, str]) -> StartedEngines:
    """Start the engine, after the library was tried on a table of its own."""
    fetch_missing(jars.DELTA_FOR_QBEAST, java, environment, lambda line: log.info("setup", line=line))
    options = IndexEngineOptions(
        settings.boundary,
        library_jar(environment),
        settings.ivy_dir,
        settings.master,
        settings.driver_memory,
        collector_options(environment),
        known_secrets(settings, environment),
        settings.spark_options,
        settings.formats.unity,
    )
    spark, engines, took_ms = start_index_engine(options, scratch=scratch, java_home=java.path)
    log.info("self_test_passed", took_ms=took_ms)
    return StartedEngines(spark, engines, {"spark": "pyspark"})


def prepare(*, with_library: bool) -> int:
    """Fetch the jars of Delta that the library needs, and look for the library itself; 1 where one is missing."""
    try:
        java = find_java(java_search(os.environ))
        fetch_missing(jars.DELTA_FOR_QBEAST, java, os.environ, lambda line: print(f"[setup] {line}", flush=True))
        print(f"[setup] Delta's jars for Qbeast in {ivy_dir(os.environ)}; Java {java.version}: {java.path}")
        if with_library:
            print(f"[setup] the library: {library_jar(os.environ)}")
    except LakewrightError as problem:
        print(f"[setup] error: {visible_lines(str(problem))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] in (["--prepare"], ["--fetch"]):
        sys.exit(prepare(with_library=sys.argv[1] == "--prepare"))
    parse_no_arguments(sys.argv[1:], service="actor.qbeast", settings=actor_variables, also=VARIABLES)
    sys.exit(main(start=start))
