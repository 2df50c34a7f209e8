"""Calls through Py4J that mean one thing: one that is as near to an overload as to another fails.

Py4J takes the first of them in a list whose order differs from one JVM to the next, so that such a call fails, or does
something else, in some processes alone. `OneOverload.java` is a `ReflectionEngine` that compares them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from actor.jvm.scala import Scala
from tests.support.java_sources import compile_sources

_SOURCE = Path(__file__).with_name("OneOverload.java")


@contextmanager
def one_overload(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Refuse such calls of this process with a Py4JError, for the block; folder: for what is compiled."""
    compile_sources(spark, [_SOURCE], folder)
    gateway = spark.sparkContext._gateway.java_gateway_server.getGateway()
    engine = gateway.getClass().getDeclaredField("rEngine")
    engine.setAccessible(True)
    before = engine.get(gateway)
    engine.set(gateway, Scala(spark).resolve("OneOverload")())
    try:
        yield
    finally:
        engine.set(gateway, before)
