"""`python -m services.actor`: reads the environment, starts Spark, tests the rewrite on a scratch table, takes jobs."""

import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote_plus, unquote, urlsplit

import structlog

from actor.engines import EngineSet
from actor.formats.registry import start_engines
from actor.jvm.java import find_java
from actor.jvm.spark import stop_session
from actor.presence import ActorInfo
from actor.worker import ProgressHook
from services.actor import settings as actor_variables
from services.actor.scratch import scratch_dir
from services.actor.serve import serve, wait_for_redis
from services.actor.settings import ActorSettings, actor_settings
from services.actor.spark import engine_options, start_spark
from services.bootstrap import prepare
from services.descriptors import raise_descriptor_limit
from services.logs import configure_logs
from services.paths import java_search
from services.service_help import parse_no_arguments
from services.settings import (
    ALLOW_EXTERNAL_FILES,
    CATALOGS,
    DATA_DIR,
    ICEBERG_FOLDERS,
    IVY_DIR,
    JAVA,
    LOG_FORMAT,
    OTLP_ENDPOINT,
    OTLP_TRACES_ENDPOINT,
    READY_FILE,
    ROOTS,
    STORE_OPTIONS,
    host_name,
    log_format,
)
from services.tracing import start_traces, stop_traces
from services.versions import installed
from services.visible_text import visible_lines
from shared.errors import LakewrightError
from shared.queue.client_settings import parse_sentinel_url

VARIABLES = (
    *(DATA_DIR, READY_FILE, IVY_DIR, JAVA, LOG_FORMAT, ROOTS, ALLOW_EXTERNAL_FILES),
    *(STORE_OPTIONS, CATALOGS, ICEBERG_FOLDERS, OTLP_ENDPOINT, OTLP_TRACES_ENDPOINT),
)
"""Environment variables that are read by functions shared between services."""

log = structlog.get_logger()


def main(
    environment: Mapping[str, str] = os.environ,
    *,
    reached: ProgressHook = lambda _claim, _point: None,
) -> int:
    """Run until asked to stop; `reached` hears of each labelled point of each run."""
    # Until the slots take the signal over: process 1 of a container is not ended by one that it does not handle, and
    # would be killed after a minute. Nothing is claimed yet, and the next start sweeps the scratch space.
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    try:
        settings = actor_settings(environment)
        configure_logs(settings.log_level, log_format(environment))
        raise_descriptor_limit()
        settings.ready_file.unlink(missing_ok=True)  # A killed actor leaves its own behind.
        tracer = start_traces("actor", installed("lakewright") or "unreleased", environment)
        try:
            with scratch_dir(settings.scratch_parent) as scratch:
                _run(settings, scratch, environment, reached)
        finally:
            stop_traces(tracer)
    except LakewrightError as problem:
        print(f"lakewright actor: {visible_lines(str(problem))}", file=sys.stderr)
        return 1
    return 0


def _run(settings: ActorSettings, scratch: Path, environment: Mapping[str, str], reached: ProgressHook) -> None:
    """Start Spark and the engines, find out whether the exact rewrite works with what is installed, and take jobs."""
    prepare(environment)
    wait_for_redis(settings)
    java = find_java(java_search(environment))
    log.info("starting_spark", master=settings.master, java=java.version, java_from=java.source)
    spark = start_spark(settings, scratch=scratch, java=java)
    options = replace(engine_options(settings), secrets=known_secrets(settings, environment))
    place = settings.self_test_location or scratch.resolve().as_uri()
    engines, took_ms = start_engines(spark, options, scratch=place)
    log.info("self_test_passed", took_ms=took_ms)
    try:
        serve(settings, engines, _about(settings, java.version, engines), reached)
    finally:
        stop_session(spark)


def _about(settings: ActorSettings, java: str, engines: EngineSet) -> ActorInfo:
    """Information that this actor reports about itself."""
    packages = {"lakewright": "lakewright", "spark": "pyspark", "delta": "delta-spark"}
    versions = {name: found for name, package in packages.items() if (found := installed(package))}
    now_ms = time.time_ns() // 1_000_000
    return ActorInfo(settings.slots, now_ms, host_name(), {**versions, "java": java}, engines.abilities)


_NAMES_A_SECRET = re.compile(r"(?i)secret|token|password|passwd|credential|signature|account.?key|access.?key|sas")
_NAMES_NONE = re.compile(r"(?i)file|provider|access.?key.?id$")
_PARTS = re.compile(r"[,:\s]+")


def known_secrets(settings: ActorSettings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets in an actor's settings and environment: passwords, keys and tokens, whole and in parts."""
    stores = settings.store_options.by_place.values()
    named = [environment, settings.spark_options, *stores, *settings.formats.catalogs.values()]
    values = [
        value
        for options in named
        for name, value in options.items()
        if _NAMES_A_SECRET.search(name) and not _NAMES_NONE.search(name)
    ]
    password = urlsplit(settings.redis_url).password
    if password:
        values += [password, unquote(password)]
    sentinels = parse_sentinel_url(settings.redis_url)
    if sentinels is not None and (password := sentinels.credentials.get("password")):
        values += [password, quote_plus(password)]
    return tuple({part for value in values for part in (value, *_PARTS.split(value)) if part})


if __name__ == "__main__":
    parse_no_arguments(sys.argv[1:], service="actor", settings=actor_variables, also=VARIABLES)
    sys.exit(main())
