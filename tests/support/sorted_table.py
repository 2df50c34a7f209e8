"""A table of random keys that others write and we rewrite, and how many files readers open for a range of the key."""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from actor.ports import GroupStatus
from shared.layout.key_depth import covers
from shared.layout.planner import Plan, plan
from shared.layout.sort_planner import plan_sort
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import KIB, Policy
from shared.table import DataFile
from tests.support.delta_lab import DeltaLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")

COMMITS, ROWS, KEYS = 500, 250, 1_000_000
ROUND = 50
"""Commits between two rewrites: they are fewer than in production, and each finds more to do."""

SORTED = Policy(target_bytes=64 * KIB, tolerance=Fraction(0), sort_by="k", max_depth=4)
EXAMPLES = 20


def batch(dice: random.Random, at: int) -> Any:
    """The rows of one commit: random keys, a second key, and a text that does not compress away."""
    return pa.table(
        {
            "k": pa.array([dice.randrange(KEYS) for _ in range(ROWS)], pa.int64()),
            "b": pa.array([dice.randrange(KEYS) for _ in range(ROWS)], pa.int64()),
            "n": pa.array(range(at * ROWS, (at + 1) * ROWS), pa.int64()),
            "t": pa.array([f"{dice.getrandbits(64):016x}" for _ in range(ROWS)]),
        }
    )


class Table:
    """A table that others write and we rewrite; counts bytes."""

    def __init__(self, lab: DeltaLab, name: str, policy: Policy) -> None:
        self.lab, self.policy = lab, policy
        self.path = lab.directory / name
        self.location = self.path.as_uri()
        self.rewritten = {"compact": 0, "sort": 0}
        order = f"TBLPROPERTIES ('lakewright.sort-by' = '{policy.sort_by}')" if policy.sort_by else ""
        lab.sql(f"CREATE TABLE delta.`{self.location}` (k BIGINT, b BIGINT, n BIGINT, t STRING) USING delta {order}")

    def live(self) -> tuple[DataFile, ...]:
        return self.lab.engine.read_partition(self.location, WHOLE_TABLE).files

    def care(self) -> None:
        """Run what the planners find, until they find nothing."""
        for _ in range(50):
            made = plan(WHOLE_TABLE, self.live(), self.policy)
            if not made.groups and self.policy.sort_by:
                made = plan_sort(WHOLE_TABLE, self.live(), self.policy)
            if not made.groups:
                return
            self._run(made)
        raise AssertionError("the planners always find something to do")

    def _run(self, made: Plan) -> None:
        for end in self.lab.rewrite(self.location, made.groups).groups:
            assert end.status is GroupStatus.COMMITTED
            if end.group.order is not None and end.group.order.columns:
                self.check_sorted(end.outputs)
            self.rewritten[made.action] += end.group.bytes

    def check_sorted(self, outputs: Sequence[DataFile]) -> None:
        """Rows ascend in each file, and ranges of one group are disjoint: by the files themselves."""
        ranges = []
        for file in outputs:
            keys = pq.ParquetFile(self.path / file.path).read(["k"])["k"].to_pylist()
            assert keys == sorted(keys)
            ranges.append((keys[0], keys[-1]))
            assert file.key_range == ranges[-1]
        assert all(one[1] <= following[0] for one, following in pairwise(sorted(ranges)))


def ranges(width: int, columns: int = 1) -> list[list[tuple[int, int]]]:
    """Examples, each with a range of this width in every column."""
    dice = random.Random(5)
    lows = [[dice.randrange(KEYS - width) for _ in range(columns)] for _ in range(EXAMPLES)]
    return [[(low, low + width) for low in one] for one in lows]


def read_by_spark(lab: DeltaLab, location: str, columns: str, width: int) -> float:
    """Mean number of files that Spark's scan reads for ranges of all these columns, by its own metric."""
    total = 0
    for found in ranges(width, len(columns)):
        frame = lab.spark.read.format("delta").load(location)
        for column, (low, high) in zip(columns, found, strict=True):
            frame = frame.where(f"{column} BETWEEN {low} AND {high}")
        frame.collect()
        leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
        total += leaves.apply(0).metrics().apply("numFiles").value()
    return total / EXAMPLES


def read_by_deltalake(path: Path, columns: str, width: int) -> float:
    """Mean number of files that deltalake's dataset reads for ranges of all these columns."""
    data = deltalake.DeltaTable(path).to_pyarrow_dataset()
    total = 0
    for found in ranges(width, len(columns)):
        wanted = pa.compute.scalar(value=True)
        for column, (low, high) in zip(columns, found, strict=True):
            wanted &= (pa.dataset.field(column) >= low) & (pa.dataset.field(column) <= high)
        total += len(list(data.get_fragments(wanted)))
    return total / EXAMPLES


def true_depth(files: Sequence[DataFile]) -> int:
    known = [file.key_range for file in files if file.key_range is not None]
    return max(sum(covers(one, low + 1) for one in known) for low, _ in known)


def written_by_others(path: Path) -> list[str]:
    return [file.name for file in path.glob("part-*.parquet")]
