"""Spark for a benchmark, started with an actor's own settings on every core of the machine."""

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import structlog
from pyspark.sql import SparkSession

from actor.jvm.java import collector_options, find_java
from actor.jvm.spark import SparkSettings, build_session, stop_session
from services.bootstrap import prepare
from services.paths import ivy_dir, java_search

P = ParamSpec("P")
T = TypeVar("T")


def called_alone(call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call in a process of its own, whose JVM has compiled nothing for others."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        return alone.submit(call, *given, **named).result()


@contextmanager
def started_spark(
    work_dir: Path, *, driver_memory: str = "1g", iceberg: bool = False, **extra: str
) -> Iterator[SparkSession]:
    """Start Spark and let its JVM go afterwards; `extra` are settings of Spark. Our own log keeps to warnings."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    prepare(os.environ)
    java = find_java(java_search(os.environ))
    settings = SparkSettings(
        work_dir=work_dir,
        ivy_dir=ivy_dir(os.environ),
        driver_memory=driver_memory,
        master="local[*]",
        collector=collector_options(os.environ),
        iceberg=iceberg,
        extra=extra,
    )
    spark = build_session(settings, java_home=java.path)
    try:
        yield spark
    finally:
        process = spark.sparkContext._gateway.proc
        stop_session(spark)
        process.wait(60)
