"""The engine of an actor for the life of one command: Java and jars are prepared on demand, and it proves itself first.

If Delta's inner API is not what we know, an actor falls back to OPTIMIZE, which takes other files than were shown;
here that would break a promise, so it is refused.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from actor.engines import EngineSet
from actor.formats.registry import start_engines
from actor.jvm.java import find_java
from actor.jvm.spark import stop_session
from services.actor.scratch import scratch_dir
from services.actor.settings import actor_settings
from services.actor.spark import engine_options, start_spark
from services.bootstrap import prepare
from services.logs import configure_logs
from services.paths import java_search
from services.private import private_dir


@contextmanager
def alone_engine(report: Callable[[str], None]) -> Iterator[EngineSet]:
    """Start Spark in this process and stop it at the end; `report` gets the name of each step.

    Raises InvalidInput without a usable Java, PermanentError if jars cannot be fetched, there is no scratch space of
    our own, Spark does not start, or the exact rewrite does not work with what is installed.
    """
    configure_logs("warning")
    settings = actor_settings(os.environ)
    prepare(os.environ, report)
    java = find_java(java_search(os.environ))
    with scratch_dir(private_dir(Path(tempfile.gettempdir()) / f"lakewright-{os.getuid()}")) as scratch:
        report("starting Spark")
        spark = start_spark(settings, scratch=scratch, java=java)
        try:
            report("trying an exact rewrite on a scratch table")
            engines, _ = start_engines(spark, engine_options(settings), scratch=scratch.resolve().as_uri())
            yield engines
        finally:
            stop_session(spark)
