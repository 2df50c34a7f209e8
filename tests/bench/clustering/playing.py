"""One stream of MERGEs on real tables, each clustered by another rule: what it rewrites, and what ranges then read."""

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shared.layout.cells.boxes import Point
from shared.layout.cells.counts import CellFiles
from tests.bench.cells.reads import Reads, compare, mean_reads, optimized, queries
from tests.bench.clustering.tables import POLICY, TARGET_BYTES, Table
from tests.bench.cpu_parts import PARTS, cpu_parts

ROW_BYTES = 41
"""Bytes of a stored row, about: three numbers of which two are random, and a text."""

BASE_TARGETS, MERGES_PER_TARGET = 32, 4
UPDATED = 0.1
"""Share of a MERGE's rows that replace others, which keep their keys."""

COMMAND_EACH = 20
CHECK_EACH = 10
"""MERGEs between two measurements of what ranges read."""

KEYS = 1 << 30


@dataclass(slots=True)
class Stream:
    """Rows that MERGEs bring; each is a file. points: keys by id; upto: how many ids there are after each MERGE."""

    folder: Path
    merges: int
    seed: int = 1
    points: list[Point] = field(default_factory=list)
    upto: list[int] = field(default_factory=list)

    @property
    def base_rows(self) -> int:
        return BASE_TARGETS * self.target_rows

    @property
    def target_rows(self) -> int:
        return TARGET_BYTES // ROW_BYTES

    def write(self) -> list[Path]:
        """Write the base and the rows of each MERGE."""
        dice = random.Random(self.seed)
        return [self._file(dice, 0, self.base_rows)] + [
            self._file(dice, at, self.target_rows // MERGES_PER_TARGET) for at in range(1, self.merges + 1)
        ]

    def _file(self, dice: random.Random, at: int, rows: int) -> Path:
        updated = [dice.randrange(len(self.points)) for _ in range(int(rows * UPDATED))] if at else []
        ids = list(dict.fromkeys(updated))
        ids += range(len(self.points), len(self.points) + rows - len(ids))
        self.points += [(dice.randrange(KEYS), dice.randrange(KEYS)) for _ in range(ids[-1] + 1 - len(self.points))]
        self.upto.append(len(self.points))
        columns = {
            "id": pa.array(ids, pa.int64()),
            "a": pa.array([self.points[one][0] for one in ids], pa.int64()),
            "b": pa.array([self.points[one][1] for one in ids], pa.int64()),
            "t": pa.array([f"{dice.getrandbits(96):024x}" for _ in ids]),
        }
        file = self.folder / f"rows-{at}.parquet"
        pq.write_table(pa.table(columns), file)
        return file


@dataclass(slots=True)
class Played:
    """What one rule did; sizes in bytes, CPU in seconds of all processes of this one's tree.

    runs: the number of the MERGE before each run, and the bytes that it rewrote. checks: number of a MERGE, and what
    ranges read after it.
    """

    title: str
    runs: list[tuple[int, int]] = field(default_factory=list)
    checks: list[tuple[int, Reads]] = field(default_factory=list)
    taken_over_bytes: int = 0
    clustering_cpu: Counter[str] = field(default_factory=Counter)
    merging_cpu_s: float = 0.0
    wall_s: float = 0.0
    files: int = 0
    rows: Any = None

    @property
    def clustering_cpu_s(self) -> float:
        return sum(self.clustering_cpu.values())

    @property
    def rewritten_bytes(self) -> int:
        return sum(spent for _, spent in self.runs)

    @property
    def cost_curve(self) -> list[tuple[float, float]]:
        return [(at, spent / TARGET_BYTES) for at, spent in self.runs]

    @property
    def read_curve(self) -> list[tuple[float, float]]:
        return [(at, found.bytes) for at, found in self.checks]

    @property
    def dearest_over_median(self) -> float:
        costs = [spent for _, spent in self.runs]
        return max(costs) / median(costs) if costs else 0.0

    @property
    def reads(self) -> Reads:
        return mean_reads([found for _, found in self.checks])

    def figures(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "rewritten_bytes": self.rewritten_bytes,
            "taken_over_bytes": self.taken_over_bytes,
            "clustering_cpu_s": round(self.clustering_cpu_s, 1),
            "clustering_cpu_parts": {part: round(self.clustering_cpu[part], 2) for part in PARTS},
            "merging_cpu_s": round(self.merging_cpu_s, 1),
            "wall_s": round(self.wall_s),
            "files_end": self.files,
            "mean_files_opened": round(fmean(found.files for _, found in self.checks), 2),
            "mean_bytes_read": round(self.reads.bytes, 3),
            "dearest_over_median": round(self.dearest_over_median, 2),
            "runs": self.runs,
        }


class Rule:
    """No clustering."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def title(self) -> str:
        """What the rule is called."""
        return "none"

    def begin(self) -> None:
        """Cluster the base."""
        self.table.cluster()

    def is_due(self, number: int) -> bool:
        """Return whether to cluster after this MERGE."""
        return False

    def run(self) -> None:
        """Cluster."""
        self.table.cluster()


class AutoCompaction(Rule):
    """Delta's auto compaction, which the writer of the table runs after its commit."""

    @property
    def title(self) -> str:
        return "auto compaction"


class Scheduled(Rule):
    """The format's command on a schedule."""

    @property
    def title(self) -> str:
        return f"{self.table.command} after {COMMAND_EACH}"

    def is_due(self, number: int) -> bool:
        return number % COMMAND_EACH == 0


class Cells(Rule):
    """Lakewright's cells: a run where commits add up to one, by the rule of the decider."""

    @property
    def title(self) -> str:
        return "cells"

    def begin(self) -> None:
        self.table.run_cells(force=True)

    def is_due(self, number: int) -> bool:
        return CellFiles(self.table.counts(), *self.table.report()).need(POLICY).is_due

    def run(self) -> None:
        self.table.run_cells(force=False)


def play(rule: Rule, stream: Stream, files: list[Path]) -> Played:
    """Play the stream under one rule."""
    table, played, began_s = rule.table, Played(rule.title), time.monotonic()
    table.create(files[0])
    rule.begin()
    played.taken_over_bytes = rewritten = table.rewritten()
    for number, file in enumerate(files[1:], 1):
        began_cpu = cpu_parts()
        table.merge(file)
        played.merging_cpu_s += cpu_parts().total() - began_cpu.total()
        if rule.is_due(number):
            began_cpu = cpu_parts()
            rule.run()
            played.clustering_cpu.update(cpu_parts())
            played.clustering_cpu.subtract(began_cpu)
        before, rewritten = rewritten, table.rewritten()
        if rewritten > before:
            played.runs.append((number, rewritten - before))
        if number % CHECK_EACH == 0:
            played.checks.append((number, _reads(stream, table, stream.upto[number])))
    played.wall_s = time.monotonic() - began_s
    played.files = len(table.boxes())
    played.rows = table.rows()
    return played


def _reads(stream: Stream, table: Table, ids: int) -> Reads:
    """Return what ranges read, over OPTIMIZE's layout of the same rows."""
    rows = range(ids)
    return compare(table.boxes(), optimized(stream.points, rows, stream.target_rows), queries(stream.points, rows))
