"""Options of Spark that people may set for an actor: any of `spark.*` but those that the actor depends on.

They cannot be overwritten, because a rewrite is exact under them, or because a setting of the actor has their value.

Options reach a JVM in a file that only this user can read, and never in its arguments, which every user can.

PySpark would put each option into the command line of `spark-submit` and of the JVM, where `ps` shows the keys of
object stores to everyone on the machine. The file is gone once the JVM has read it.
"""

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

OWN = frozenset(
    {
        "spark.app.name",
        "spark.driver.extraClassPath",
        "spark.driver.extraJavaOptions",
        "spark.driver.memory",
        "spark.jars",
        "spark.local.dir",
        "spark.log.level",
        "spark.master",
        "spark.scheduler.mode",
        "spark.speculation",
        "spark.sql.catalog.spark_catalog",
        "spark.sql.extensions",
        "spark.sql.session.timeZone",
        "spark.sql.warehouse.dir",
        "spark.databricks.delta.optimizeWrite.enabled",
        "spark.hadoop.parquet.page.verify-checksum.enabled",
    }
)
"""Options that the actor sets itself and depends on."""

OWN_PREFIXES = ("spark.delta.logStore.", "spark.hadoop.fs.s3", "spark.lakewright.")
"""Beginnings of such options: log stores whose commits exclude each other, object stores (LAKEWRIGHT_STORE_OPTIONS)."""

CLUSTER_DEFAULTS: Mapping[str, str] = {
    # An actor without work holds no executors, so that several share a cluster.
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    # Spark would keep an executor for what Delta caches on it, which is read again in a second.
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": "60s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "60s",
}
"""Options where executors are processes of their own, unless people set others."""


def parse_spark_options(text: str) -> dict[str, str]:
    """Read `{"spark.executor.memory": "4g"}`. Raises ValueError, which repeats no value: one may be a secret."""
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(one, str | int | float | bool) for one in found.values()):
        raise ValueError('expected a JSON object of plain values, such as {"spark.executor.memory": "4g"}')
    for name in found:
        if not name.startswith("spark."):
            raise ValueError(f"{name} is no option of Spark: their names begin with `spark.`")
        if name in OWN or name.startswith(OWN_PREFIXES):
            raise ValueError(f"{name} is set by the actor itself; leave it out")
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}


_FILE = "submitted.properties"
_OLDEST_WITH_DEFAULTS = 4
"""Major version of Spark from which on the defaults of its own folder can be loaded beside a file of properties."""


@contextmanager
def submitted_options(options: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Yield what PYSPARK_SUBMIT_ARGS has to be for a JVM with these options; the file is deleted afterwards."""
    file = folder / _FILE
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.writelines(f"{_escaped(name)}={_escaped(value)}\n" for name, value in options.items())
        has_defaults = int(pyspark.__version__.partition(".")[0]) >= _OLDEST_WITH_DEFAULTS
        defaults = "--load-spark-defaults " if has_defaults else ""
        yield f"{defaults}--properties-file {shlex.quote(str(file))} pyspark-shell"
    finally:
        file.unlink(missing_ok=True)


def _escaped(text: str) -> str:
    """Return a text as Java's properties have it, in ASCII; a space first or last would be lost otherwise."""
    units = memoryview(text.encode("utf-16-be")).cast("B")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\u{code:04x}" for code in codes)
