"""The tables of exceptions are those of the libraries: none is left out, and ancestors are the real ones."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from services.paths import ivy_dir
from tests.support.failure_classes import (
    OF_CATALOGS,
    OF_DELTA,
    OF_HADOOP,
    OF_ICEBERG,
    OF_PARQUET,
    OF_S3,
    Expected,
)
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
    "s3": (
        re.compile(
            r"org\.apache\.hadoop\.fs\.s3a\.|software\.amazon\.awssdk\.(awscore|core|http|retries)\.|"
            r"software\.amazon\.awssdk\.services\.(s3|sts)\.model\."
        ),
        [],
    ),
    "catalogs": (
        re.compile(r"io\.unitycatalog\.client\.|org\.apache\.hadoop\.hive\.metastore\.|org\.apache\.thrift\."),
        [
            *("io.unitycatalog.client.ApiException", "org.apache.hadoop.hive.metastore.api.MetaException"),
            "org.apache.thrift.TException",
        ],
    ),
    "parquet": (
        re.compile(r"org\.apache\.parquet\."),
        [
            *("org.apache.parquet.hadoop.ParquetFileReader", "org.apache.parquet.io.ParquetDecodingException"),
            "org.apache.parquet.ParquetRuntimeException",
        ],
    ),
}
"""The packages of each library's own classes, and a class of each of its jars; those for S3 no test session loads."""


TABLES = [
    *(("iceberg", OF_ICEBERG), ("delta", OF_DELTA), ("hadoop", OF_HADOOP)),
    *(("s3", OF_S3), ("catalogs", OF_CATALOGS), ("parquet", OF_PARQUET)),
]


@pytest.mark.parametrize(("library", "table"), TABLES)
def test_every_exception_of_a_library_is_judged_as_its_table_says(
    spark: "SparkSession", library: str, table: dict[Expected, str]
) -> None:
    """On the classes themselves: a new release that adds one, or gives one other ancestors, fails here."""
    from actor.failures import judge, verdict
    from actor.formats.delta.conflicts import RULES as DELTA
    from actor.formats.iceberg.conflicts import RULES as ICEBERG

    rules: tuple[Rule, ...] = ICEBERG if library in ("iceberg", "catalogs") else DELTA
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
    from actor.jvm.jars import S3, look_up
    from actor.jvm.scala import Scala
    from tests.support.java_sources import class_loader

    scala = Scala(spark)
    loader, java_class = class_loader(scala), scala.resolve("java.lang.Class")
    package, examples = LIBRARIES[library]
    found = [java_class.forName(example, False, loader) for example in examples]
    jars = [Path(str(known.getProtectionDomain().getCodeSource().getLocation().getPath())) for known in found]
    if library == "s3":
        jars = list(look_up(ivy_dir(os.environ), S3).files)
        urls = spark.sparkContext._gateway.new_array(scala.resolve("java.net.URL"), len(jars))
        for at, jar in enumerate(jars):
            urls[at] = scala.resolve("java.io.File")(str(jar)).toURI().toURL()
        loader = scala.resolve("java.net.URLClassLoader")(urls, loader)
    names: set[str] = set()
    for path in jars:
        with ZipFile(path) as opened:
            names |= {name.removesuffix(".class").replace("/", ".") for name in opened.namelist()}
    wanted = sorted(name for name in names if package.match(name) and _FAILURE.search(name))
    return [java_class.forName(name, False, loader) for name in wanted]
