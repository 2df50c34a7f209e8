"""`make bench-iceberg`: one trace on real Spark and Iceberg under Lakewright and the rules it is compared with.

The trace is that of `make bench-delta`: late data over 24 partitions, a commit a minute, a MERGE now and then. Each
rule begins with an empty table and gets the same files in the same commits; in the end all tables hold the same rows.
"""

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.jvm.scala import Scala
from decider.formats.registry import table_formats
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.format_options import FormatOptions
from tests.bench.delta.__main__ import picture, table
from tests.bench.delta.playing import Played, play_rounds
from tests.bench.delta.rules import COMMITS_PER_HOUR, TARGET_BYTES
from tests.bench.delta.trace import Trace, make_trace
from tests.bench.iceberg.rules import Amoro, Lakewright, LeaveAlone, RewriteDataFiles
from tests.bench.iceberg.table import IcebergTable
from tests.bench.machine import machine
from tests.bench.spark import started_spark

RULES = ("none", "lakewright", "each", "hourly", "amoro")


class Lake:
    """A warehouse in a folder, in a session with the catalog `ice`."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.session = spark.newSession()
        for name, value in {
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(folder),
            "spark.sql.catalog.ice.cache-enabled": "false",
        }.items():
            self.session.conf.set(name, value)
        self._scala = Scala(spark)

    def rules(self) -> dict[str, LeaveAlone | Lakewright]:
        """Return every rule by the name that it has on the command line, in the order of playing."""
        engine = IcebergEngine(self.spark, IcebergEngineSettings(reads_folders=True))
        formats = table_formats(StorageAccess(ReadMeter()), FormatOptions(iceberg_folders=True))
        made = (
            LeaveAlone(),
            Lakewright(self.spark, engine, formats),
            RewriteDataFiles(self.session, "rewrite_data_files after each commit", 1),
            RewriteDataFiles(self.session, "rewrite_data_files hourly", COMMITS_PER_HOUR),
            Amoro(engine),
        )
        return dict(zip(RULES, made, strict=True))

    def create(self, name: str) -> IcebergTable:
        return IcebergTable(self.session, self._scala, self.folder, name, TARGET_BYTES)


def run(lake: Lake, trace: Trace, wanted: list[str]) -> tuple[list[Played], dict[str, int]]:
    """Play every wanted rule twice; raises if rows differ.

    Returns what was measured the second time, and the manifests of the final tables.
    """
    known = lake.rules()
    done: list[Played] = []
    manifests: dict[str, int] = {}
    for name in wanted:
        rounds = [lake.create(f"{name}_{number}") for number in (1, 2)]
        one = play_rounds(lake.session, known[name], trace, rounds)
        done.append(one)
        manifests[one.title] = rounds[-1].manifests
        row = table(trace, [one]).rpartition("\n")[2]
        print(f"{one.title}: {one.wall_s:.0f} s, {manifests[one.title]} manifests\n{row}", flush=True)
    if len({played.rows for played in done}) != 1 or done[0].rows[0] != trace.rows:
        raise RuntimeError(f"rows differ: {trace.rows} were written; {[(one.title, one.rows) for one in done]}")
    print(f"{trace.rows:,} rows, equal under every rule")
    return done, manifests


def main() -> None:
    """Play, print the table, and keep figures and picture."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.iceberg")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--picture", type=Path, help="write the curves to this SVG file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=240)
    parser.add_argument("--rules", nargs="*", default=RULES, choices=RULES)
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-iceberg-") as made:
        folder = Path(made)
        trace = make_trace(folder / "trace", commits=asked.commits, seed=asked.seed, for_iceberg=True)
        print(f"{trace.files} files, {trace.bytes / 1e6:.1f} MB, target {TARGET_BYTES} bytes", flush=True)
        with started_spark(folder / "spark", iceberg=True) as spark:
            done, manifests = run(Lake(spark, folder / "lake"), trace, asked.rules)
    print(table(trace, done))
    figures: dict[str, Any] = {**machine(), "seed": asked.seed, "commits": asked.commits, "bytes_added": trace.bytes}
    figures["seconds"] = round(time.monotonic() - began)
    figures["manifests_end"] = manifests
    figures["rules"] = {one.title: {**asdict(one), "rows": [str(value) for value in one.rows]} for one in done}
    print(f"{figures['seconds']} s")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    if asked.picture:
        asked.picture.write_text(picture(done))


if __name__ == "__main__":
    main()
