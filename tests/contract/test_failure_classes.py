"""The tables of exceptions are those of the libraries: none is left out, and ancestors are the real ones."""

import re
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from tests.support.failure_classes import OF_DELTA, OF_HADOOP, OF_ICEBERG, Expected
from tests.support.java_errors import ANCESTORS, throwable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from actor.failures import Rule

pytestmark = pytest.mark.spark

_FAILURE = re.compile(r"(Exception|Error|Failure)$")
LIBRARIES = {
    "iceberg": (re.compile(r"org\.apache\.iceberg\.(?!shaded\.|relocated\.)"), ["org.apache.iceberg.Table"]),
    "delta": (
        re.compile(r"io\.delta\.(exceptions|storage)\.|org\.apache\.spark\.sql\.delta\."),
        ["org.apache.spark.sql.delta.DeltaLog", "io.delta.storage.LogStore"],
    ),
    "hadoop": (
        re.compile(r"org\.apache\.hadoop\.(fs|hdfs|io|ipc|net|security)\."),
        ["org.apache.hadoop.fs.FileSystem"],
    ),
}
"""The packages of each library's own classes, and a class of each of its jars."""


@pytest.mark.parametrize(("library", "table"), [("iceberg", OF_ICEBERG), ("delta", OF_DELTA), ("hadoop", OF_HADOOP)])
def test_every_exception_of_a_library_is_judged_as_its_table_says(
    spark: "SparkSession", library: str, table: dict[Expected, str]
) -> None:
    """On the classes themselves: a new release that adds one, or gives one other ancestors, fails here."""
    from actor.failures import judge, verdict
    from actor.formats.delta.conflicts import RULES as DELTA
    from actor.formats.iceberg.conflicts import RULES as ICEBERG

    rules: tuple[Rule, ...] = {"iceberg": ICEBERG, "delta": DELTA, "hadoop": DELTA}[library]
    expected = {name: meant for meant, names in table.items() for name in names.split()}
    found = {}
    for one in classes(spark, library):
        error: Any = RuntimeError("called")
        error.java_exception = throwable(one, "no")
        found[str(one.getSimpleName())] = (judge(error, rules).meaning, verdict(error, rules))
    wrong = {name: meant for name, meant in found.items() if expected.pop(name, None) != meant}
    assert (wrong, expected) == ({}, {})


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_ancestors_that_tests_without_a_jvm_use_are_the_real_ones(spark: "SparkSession", library: str) -> None:
    from actor.jvm.errors import causes

    for one in classes(spark, library):
        name = str(one.getSimpleName())
        if str(one.getName()).startswith("io.delta.storage."):
            continue  # Two of these have the simple names of Iceberg's.
        error: Any = RuntimeError("called")
        error.java_exception = throwable(one, "no")
        assert set(ANCESTORS.get(name, ())) <= causes(error)[0].kinds, name


def classes(spark: "SparkSession", library: str) -> list[Any]:
    """Return Java's classes of all exceptions in the jars of a library."""
    from actor.jvm.java_sources import class_loader
    from actor.jvm.scala import Scala

    scala = Scala(spark)
    loader, java_class = class_loader(scala), scala.resolve("java.lang.Class")
    package, examples = LIBRARIES[library]
    names: set[str] = set()
    for example in examples:
        known = java_class.forName(example, False, loader)
        with ZipFile(str(known.getProtectionDomain().getCodeSource().getLocation().getPath())) as jar:
            names |= {name.removesuffix(".class").replace("/", ".") for name in jar.namelist()}
    wanted = sorted(name for name in names if package.match(name) and _FAILURE.search(name))
    return [java_class.forName(name, False, loader) for name in wanted]
