"""`make bench-writers`: whether rewrites land, and rows stay exact, while others change one row after the other.

A writer in a session of its own DELETEs, UPDATEs and MERGEs rows with deletion vectors, or merged on read. Meanwhile
all files of its table are rewritten: by our engine as an actor does, by the same engine without late rows, and by the
command of the table format. Every reader must find the rows of the statements that succeeded. Last, a stream upserts.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.bench.machine import exit_code, keep, machine
from tests.bench.spark import started_spark
from tests.bench.writers.playing import GROUPS, OURS, THEIRS, WITHOUT, Played, limits, play, rewrite
from tests.bench.writers.rows import MERGES, Rows, Writer, change, digest, new_rows
from tests.bench.writers.tables import OnDelta, OnIceberg, Table
from tests.support.iceberg_foreign import ForeignWriter, field

ROWS_PER_MIB = 1_000
UPSERTS = "iceberg-v2-upserts"
KEYS = 200
"""Ids that the stream writes again and again, a tenth of them in each commit."""

MERGED_ON_READ = {f"write.{one}.mode": "merge-on-read" for one in ("delete", "update", "merge")}
OF_ICEBERG = {"write.distribution-mode": "none", "write.parquet.compression-codec": "snappy", **MERGED_ON_READ}


@dataclass(frozen=True, slots=True)
class Case:
    """How tables are rewritten; `version` of Iceberg's format, 0 for a Delta table."""

    name: str
    version: int = 0
    may_copy: bool = True
    by_column: bool = False

    def table(self, spark: SparkSession, folder: Path, name: str, rows: int, files: int) -> Table:
        """Create a table."""
        if not self.version:
            on_delta = OnDelta(spark, folder, name, by_column=self.by_column)
            on_delta.create(rows, files, {"delta.enableDeletionVectors": "true"})
            return on_delta
        made = OnIceberg(spark, folder, name, self.version)
        made.create(rows, files, {"format-version": str(self.version), **OF_ICEBERG})
        if self.version > 2 and self.may_copy:  # Row groups are copied once files hold the ids of their rows.
            rewrite(made, list(made.live().values()), groups=files)
        return made


CASES = (
    Case("delta-copied"),
    Case("delta-by-column", by_column=True),
    Case("iceberg-v2-copied", 2),
    Case("iceberg-v2-encoded", 2, may_copy=False),
    Case("iceberg-v3-copied", 3),
    Case("iceberg-v3-encoded", 3, may_copy=False),
)


def play_case(spark: SparkSession, folder: Path, case: Case, asked: Any) -> Iterator[Played]:
    """Play each side on tables of its own."""
    count = int(asked.mib * ROWS_PER_MIB)

    def step(table: Table, rows: Rows, draw: Random, number: int) -> None:
        text, apply = change(MERGES if asked.merges else number, draw.randrange(count), rows, number)
        table.statement(text)
        apply()

    for place, side in enumerate(asked.sides):
        played, name = Played(case.name, side), f"{case.name}_{place}".replace("-", "_")
        table, rows = case.table(spark, folder, name, count, asked.files), new_rows(range(count))
        steps = partial(step, table, rows, Random(asked.seed))
        writer = Writer(steps, table.failures, asked.statements, asked.every, asked.merges)
        play(table, writer, rows, played, may_copy=case.may_copy, again=bool(asked.merges))
        rmtree(table.path)  # A gigabyte, and as much again.
        yield played


def play_upserts(spark: SparkSession, folder: Path, asked: Any) -> Iterator[Played]:
    """Rewrite all files again and again while a stream upserts, by our engine and by Iceberg's command."""
    kinds = {"id": pa.int64(), "v": pa.int64(), "t": pa.string()}
    schema = pa.schema([field(name, kind, {"id": 1, "v": 2, "t": 3}) for name, kind in kinds.items()])

    def step(stream: ForeignWriter, rows: Rows, number: int) -> None:
        ids = [(number * 7 + one) % KEYS for one in range(0, KEYS, 10)]
        values = [[ids[0], *ids], [-1, *[number] * len(ids)], [""] * (len(ids) + 1)]  # The first id is written twice.
        stream.upsert(pa.table(values, schema=schema), pa.table([ids], schema=pa.schema([schema.field("id")])))
        rows.update(dict.fromkeys(ids, (number, digest(""))))

    for place, side in enumerate((OURS, THEIRS)):
        table, rows = OnIceberg(spark, folder, f"upserts_{place}", 2, is_stream=True), new_rows(range(KEYS))
        table.create(KEYS, GROUPS, {"format-version": "2", **OF_ICEBERG})
        steps = partial(step, ForeignWriter(table.lab, table.name), rows)
        played = Played(UPSERTS, side)
        play(table, Writer(steps, table.failures, asked.statements, asked.every), rows, played, again=True)
        yield played


def main() -> int:
    """Play the cases, print figures and limits, and keep the figures; returns 1 if a limit is not met."""
    names = [*(case.name for case in CASES), UPSERTS]
    parser = argparse.ArgumentParser(prog="python -m tests.bench.writers")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mib", type=float, default=256, help="size of a table")
    parser.add_argument("--files", type=int, default=20, help="files of a table")
    parser.add_argument("--every", type=float, default=0.5, help="seconds from statement to statement")
    parser.add_argument("--statements", type=int, default=30, help="of the writer of a table, at most")
    rate = "MERGE alone, and rewrite all files once for so many statements: the rate of those that are aborted"
    parser.add_argument("--merges", type=int, default=0, help=rate)
    all_sides = [OURS, WITHOUT, THEIRS]
    parser.add_argument("--sides", nargs="*", default=all_sides, choices=all_sides)
    parser.add_argument("--cases", nargs="*", default=names, choices=names)
    asked, done, began = parser.parse_args(), list[Played](), machine()
    print(f"seed {asked.seed}; {began}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="lakewright-bench-writers-") as made,
        started_spark(Path(made) / "spark", driver_memory="4g", iceberg=True) as spark,
    ):
        played = [play_case(spark, Path(made), case, asked) for case in CASES if case.name in asked.cases]
        for sides in [*played, *([play_upserts(spark, Path(made), asked)] if UPSERTS in asked.cases else [])]:
            for one in sides:
                print(one, flush=True)
                done.append(one)
    checked = limits(done)
    print(*checked, sep="\n")
    settings = {name: value for name, value in vars(asked).items() if name not in ("json", "cases", "sides")}
    keep({**began, **settings, "played": [one.figures for one in done]}, asked.json)
    return exit_code(checked)


if __name__ == "__main__":
    sys.exit(main())
