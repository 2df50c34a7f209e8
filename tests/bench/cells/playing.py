"""One stream under several rules at once: each has a table of its own, and all see the same commits."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from tests.bench.cells.policies import Clustering, Optimize, Rule
from tests.bench.cells.reads import Reads, compare, mean_reads, optimized, queries
from tests.support.clustered_streams import Commit, stream
from tests.support.simulated_table import ROW_BYTES, Cells, RowFile, SimulatedTable

TARGET_ROWS = 1024
UPDATED_ROWS = 6
"""Rows of a commit that replace earlier ones: a tenth. They hit as many files."""


@dataclass(frozen=True, slots=True)
class Case:
    """A stream: how keys spread, how many columns and commits, and how its writer deletes rows."""

    title: str
    kind: str = "uniform"
    columns: int = 2
    commits: int = 1000
    commit_rows: int = 64
    updated: int = UPDATED_ROWS
    lag: int = 0
    """Commits between a decision and its run, for every rule."""
    is_copied: bool = False
    """Deletes by writing files again without order, as copy-on-write does, and not by vectors."""

    @property
    def written_rows(self) -> int:
        """Rows that a commit writes: with copies, those of as many full files as it updates rows."""
        return self.commit_rows + self.updated * TARGET_ROWS * self.is_copied


@dataclass(slots=True)
class Played:
    """What one rule wrote, and what was read of it; means leave out the first quarter."""

    written_bytes: int = 0
    runs: list[tuple[int, int]] = field(default_factory=list)
    """The number of the commit before each run, and the bytes that it rewrote."""
    checks: list[tuple[int, Reads]] = field(default_factory=list)
    """The number of a commit, and what was read after it."""
    files: int = 0
    cells: int = 0

    @property
    def costs(self) -> list[int]:
        return [spent for _, spent in self.runs]

    @property
    def cost_curve(self) -> list[tuple[float, float]]:
        return [(at, spent / (TARGET_ROWS * ROW_BYTES)) for at, spent in self.runs]

    @property
    def read_curve(self) -> list[tuple[float, float]]:
        return [(at, found.bytes) for at, found in self.checks]

    @property
    def amplification(self) -> float:
        return sum(self.costs) / self.written_bytes

    @property
    def dearest_targets(self) -> float:
        return max(self.costs, default=0) / (TARGET_ROWS * ROW_BYTES)

    @property
    def dearest_over_median(self) -> float:
        return max(self.costs) / median(self.costs) if self.runs else 0.0

    @property
    def reads(self) -> Reads:
        return mean_reads([found for _, found in self.checks[len(self.checks) // 4 :]])

    def figures(self) -> dict[str, float]:
        reads = self.reads
        return {
            "rewritten": round(self.amplification, 3),
            "reads_ranges": round(reads.bytes, 3),
            "files_opened": round(reads.files, 3),
            "reads_points": round(reads.point_bytes, 3),
            "runs": len(self.runs),
            "dearest_targets": round(self.dearest_targets, 3),
            "dearest_over_median": round(self.dearest_over_median, 3),
            "files": self.files,
            "cells": self.cells,
        }


@dataclass(slots=True)
class _Player:
    rule: Clustering
    played: Played = field(default_factory=Played)
    starts_at: int | None = None
    dice: random.Random = field(default_factory=lambda: random.Random(8))

    def commit(self, number: int, commit: Commit, case: Case) -> None:
        written = self._written(commit, case)
        self.played.written_bytes += written * ROW_BYTES
        if self.rule.is_due() and self.starts_at is None:
            self.starts_at = number + case.lag
        if self.starts_at == number:
            self.starts_at = None
            if spent := self.rule.run():
                self.played.runs.append((number, spent))

    def _written(self, commit: Commit, case: Case) -> int:
        table = self.rule.table
        rows = list(commit.added)
        if case.is_copied and commit.deleted:
            self._lay_out()
            touched: Counter[RowFile] = Counter(table.file_of[row] for row in commit.deleted)
            table.delete(commit.deleted)
            rows += table.take(touched)
            table.new = [file for file in table.new if file not in touched]
            self.dice.shuffle(rows)
        else:
            table.delete(commit.deleted)
        for first in range(0, len(rows), TARGET_ROWS):
            table.append(rows[first : first + TARGET_ROWS])
        return len(rows)

    def _lay_out(self) -> None:
        if isinstance(self.rule, Optimize):
            self.rule.lay_out()

    def laid(self) -> list:
        self._lay_out()
        return [(file.box, len(file.rows)) for file in self.rule.table.files.values()]


def play(case: Case, rules: Mapping[str, Rule], points: int = 16) -> dict[str, Played]:
    """Play one case; `points`: how often reads are measured."""
    made = stream(case.kind, case.commits, case.commit_rows, case.columns, updated=case.updated)
    players = {
        name: _Player(rule(SimulatedTable(made.points), TARGET_ROWS, case.written_rows)) for name, rule in rules.items()
    }
    measured = {case.commits * at // points for at in range(1, points + 1)}
    for number, commit in enumerate(made.commits, 1):
        for player in players.values():
            player.commit(number, commit, case)
        if number in measured:
            _measure(number, made.points, [*players.values()])
    for player in players.values():
        table = player.rule.table
        player.played.files = len(table.files)
        if isinstance(player.rule, Cells):
            player.played.cells = sum(not node.parts for node in player.rule.tree().nodes())
    return {name: player.played for name, player in players.items()}


def _measure(number: int, points: Sequence, players: Sequence[_Player]) -> None:
    rows = sorted(players[0].rule.table.live_rows())
    best, asked = optimized(points, rows, TARGET_ROWS), queries(points, rows)
    for player in players:
        player.played.checks.append((number, compare(player.laid(), best, asked)))
