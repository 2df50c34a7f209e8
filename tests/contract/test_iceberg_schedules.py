"""Random schedules of rewrites of an Iceberg table beside others, committed by Iceberg's own classes without Spark.

LAKEWRIGHT_ROW_EXACT_SEEDS says how many of them are played; the seed is in the name of each.
"""

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from shared.errors import Conflict
from shared.partitions import WHOLE_TABLE
from tests.contract.test_iceberg_deletes import deletes_of_both
from tests.support.iceberg_jvm import IcebergJvm, visible

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

SEEDS = range(1, 1 + int(os.environ.get("LAKEWRIGHT_ROW_EXACT_SEEDS", "2")))
ROUNDS = 14


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergJvm]:
    running = IcebergJvm(tmp_path_factory.mktemp("iceberg"))
    yield running
    running.close()


class Others:
    """Those who change a table, and the ids that are left; changed_files: whether they replaced or removed a file."""

    def __init__(self, ice: IcebergJvm, table: Any, draw: Random) -> None:
        self._ice, self._table, self._draw = ice, table, draw
        self.ids: set[int] = set()
        self.changed_files = False
        self._of_rows = [self.append, *[self.delete_places] * 3, self.delete_values]

    def act(self, at_most: int, *, to_files: bool) -> None:
        """Do some things."""
        acts = [*self._of_rows, *([self.drop, self.move] if to_files else [])]
        for one in self._draw.choices(acts, k=self._draw.randint(0, at_most)):
            one()

    def append(self) -> None:
        start = 10 * self._draw.randrange(1_000_000_000)
        self._ice.append(self._table, start)
        self.ids.update(range(start, start + 10))

    def delete_places(self) -> None:
        where = self._ice.places(self._table)
        gone = self._draw.sample(sorted(where), k=min(max(len(where) - 1, 0), self._draw.randint(1, 6)))
        if gone:
            self._ice.delete_places(self._table, [where[one] for one in gone])
            self.ids.difference_update(gone)

    def delete_values(self) -> None:
        gone = self._draw.sample(sorted(self.ids), k=min(2, len(self.ids)))
        self._ice.delete_values(self._table, gone)
        self.ids.difference_update(gone)

    def drop(self) -> None:
        if path := self._a_file():
            self.ids.difference_update(visible(self._ice.inputs(self._table)[path]))
            self._ice.drop(self._table, path)
            self.changed_files = True

    def move(self) -> None:
        """Write the rows of a file again, as another compactor does."""
        if path := self._a_file():
            self._ice.rewrite_as_others(self._table, path)
            self.changed_files = True

    def _a_file(self) -> str | None:
        """Return a file with rows that readers see."""
        live = self._ice.inputs(self._table)
        paths = sorted(path for path, one in live.items() if visible(one))
        return self._draw.choice(paths) if paths else None


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_comes_back_or_is_lost_whatever_others_do_before_a_commit(ice: IcebergJvm, seed: int) -> None:
    """Beside those who add and delete rows, only deletes by value that left out rows at the read may cost a rewrite."""
    draw, table = Random(seed), ice.create(f"random-{seed}")
    others, landed = Others(ice, table, draw), 0
    for _ in range(3):
        others.append()
    for _ in range(ROUNDS):
        others.act(2, to_files=True)
        live = {path: one for path, one in ice.inputs(table).items() if visible(one)}
        chosen = draw.sample(sorted(live), k=min(len(live), draw.randint(1, 4)))
        if not chosen:
            others.append()
            continue
        has_values = any(not one.is_positional for path in chosen for one in live[path].deletes)
        read = {number for path in chosen for number in visible(live[path])}
        others.changed_files, to_files = False, draw.random() < 0.5
        acts = [lambda to_files=to_files: others.act(2, to_files=to_files) for _ in range(draw.randint(1, 4))]
        try:
            has_landed = ice.rewrite(table, WHOLE_TABLE, chosen, *acts).version is not None
        except Conflict:  # Iceberg would have dropped deletes by value.
            has_landed, has_values = False, True
        assert has_landed or has_values or others.ids.isdisjoint(read) or others.changed_files
        landed += has_landed
        assert ice.rows(table) == sorted(others.ids)
        deletes_of_both(ice, table)
        assert not ice.metadata_files_left(table)
    assert landed > 2
