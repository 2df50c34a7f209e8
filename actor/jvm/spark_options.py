"""Options of Spark that people may set for an actor: any of `spark.*` but those that the actor depends on.

They cannot be overwritten, because a rewrite is exact under them, or because a setting of the actor has their value.
"""

import json
from collections.abc import Mapping

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
