"""Writes the tables of tests/data/qbeast.md with Qbeast's own library, and what its `optimize` makes of each.

Runs in an environment of its own (PySpark 3.5.2): `python qbeast_tables.py FOLDER ZONE JAR...`, where the jars are the
library's and Delta's. ZONE is the zone of the JVM: in UTC all tables are written but `zone`, elsewhere that one alone.
"""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

APPENDS, ROWS = 5, 200
MIX = "CASE id % 200 WHEN 0 THEN 0 WHEN 1 THEN 1000002 ELSE (id * 7919) % 1000003 END"
"""A number of each row that lies anywhere; its ends are in each append, so that all have the same space."""

VALUES = {
    "long": f"({MIX}) * 1000000007L",
    "int": f"cast(({MIX}) - 500000 AS int)",
    "double": f"({MIX}) / 7.0D",
    "float": f"cast(({MIX}) / 3.0D AS float)",
    "decimal": f"cast(({MIX}) / 8 AS decimal(12, 3))",
    "day": f"date_add(date'1960-01-01', cast(({MIX}) / 33 AS int))",
    "instant": f"timestamp_micros((({MIX}) - 300000) * 1000003017)",
    "text": f"concat('né-', ({MIX}) % 977, '-\U0001f40b')",
    "word": f"substr('zebrafish quokka axolotl', cast(1 + ({MIX}) % 20 AS int), 4)",
    "same": "7L",
    "none": "cast(NULL AS long)",
}


@dataclass(frozen=True)
class Table:
    """A table of 1,000 rows in five appends; `columns` are its indexed ones, as the library names them.

    nulls: each of those is null in every so many rows. widens: later appends leave the space, so there are more
    revisions. stats: further statistics, as the library reads them.
    """

    columns: Sequence[str]
    cube_size: int = 80
    nulls: int = 0
    widens: bool = False
    stats: Mapping[str, Any] | None = None

    @property
    def names(self) -> list[str]:
        return [column.partition(":")[0] for column in self.columns]


TABLES = {
    "one": Table(["long"]),
    "two": Table(["double", "text"], nulls=31),
    "four": Table(["int", "text", "instant", "float"], nulls=17),
    "seven": Table(["long", "int", "double", "float", "decimal", "day", "text"], nulls=13),
    "hashes": Table(["text", "long:hashing", "double:hashing", "float:hashing", "decimal:hashing"], nulls=19),
    "histogram": Table(
        ["word:histogram", "long"],
        nulls=23,
        stats={
            "word_histogram": ["axol", "brai", "fish", "kka ", "lotl", "okka", "quok", "shqu", "zebr"],
            "long_min": 0,
            "long_max": 1_000_002 * 1_000_000_007,
        },
    ),
    "constants": Table(["long", "same", "none"]),
    "revisions": Table(["long", "int"], widens=True),
    "zone": Table(["day", "instant"], nulls=29),
}


def main() -> None:
    folder, zone, jars = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    settings = {
        "spark.master": "local[2]",
        "spark.jars": ",".join(jars),
        "spark.driver.extraJavaOptions": f"-Duser.timezone={zone}",
        "spark.sql.session.timeZone": zone,
        "spark.sql.extensions": "io.qbeast.spark.internal.QbeastSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "io.qbeast.spark.internal.sources.catalog.QbeastCatalog",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.writeChecksumFile.enabled": "false",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for name, table in TABLES.items():
        if (name == "zone") == (zone != "UTC") and not (folder / name).exists():
            _write(spark, folder / name, table)
            _optimize(spark, folder, name)
    for checksum in folder.rglob(".*.crc"):
        checksum.unlink()


def _write(spark: SparkSession, path: Path, table: Table) -> None:
    for number in range(APPENDS):
        columns = [f"{_value(table, name, number)} AS `{name}`" for name in table.names]
        rows = spark.range(number * ROWS, (number + 1) * ROWS, numPartitions=2).selectExpr("id", *columns)
        writer = rows.write.format("qbeast").mode("append").option("columnsToIndex", ",".join(table.columns))
        writer = writer.option("cubeSize", table.cube_size)
        if table.stats:
            writer = writer.option("columnStats", json.dumps(table.stats))
        writer.save(str(path))


def _value(table: Table, name: str, append: int) -> str:
    value = VALUES[name]
    if table.widens:
        value = f"cast(({value}) * {1 + append // 2} AS {'int' if name == 'int' else 'long'})"
    return f"IF(id % {table.nulls} = {table.names.index(name) + 2}, NULL, {value})" if table.nulls else value


def _optimize(spark: SparkSession, folder: Path, name: str) -> None:
    """Write the actions of the library's `optimize` of every revision of a copy, beside the table."""
    copied = folder / f"{name}.copy"
    shutil.copytree(folder / name, copied)
    before = len(list((copied / "_delta_log").glob("*.json")))
    opened = spark._jvm.io.qbeast.spark.QbeastTable.forPath(spark._jsparkSession, str(copied))  # type: ignore[union-attr]
    revisions = opened.allRevisionIDs()
    for at in range(revisions.size()):
        if revisions.apply(at) > 0:
            opened.optimize(revisions.apply(at), 1.0, spark._jvm.PythonUtils.toScalaMap({}))  # type: ignore[union-attr]
    commits = sorted((copied / "_delta_log").glob("*.json"))[before:]
    (folder / f"{name}.optimized.json").write_text("".join(commit.read_text() for commit in commits))
    shutil.rmtree(copied)


if __name__ == "__main__":
    main()
