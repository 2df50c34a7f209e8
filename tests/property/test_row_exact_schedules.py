"""Whatever others do between read, write and each attempt of a commit, readers see exactly the rows of a model.

The code that finds, maps, hides and commits is the real one, on a table in memory. `make test-properties ARGS="-k
schedules"` plays 1,000 schedules of each kind.
"""

from collections.abc import Callable
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.formats.iceberg.commit import IcebergTarget
from actor.formats.iceberg.late_rows import SetAside
from actor.formats.iceberg.staged import StagedGroup
from actor.rewrite.commit import Committer
from actor.rewrite.late_rows import Comparisons
from shared.errors import Conflict, RetryableError
from tests.support.memory_snapshots import MemorySnapshots
from tests.support.steering import Steering

SEEDS = st.integers(0, 2**32 - 1)


class OnIceberg:
    """A table in memory, the model of its rows, and those who change both. `by_value`: some of them delete by value."""

    def __init__(self, draw: Random, *, has_vectors: bool) -> None:
        self.draw = draw
        self.table = MemorySnapshots(has_vectors=has_vectors)
        self.rows: set[int] = set()
        self.then: dict[int, set[int]] = {0: set()}  # The model at each snapshot.
        self._numbers = count()
        self.seconds = 0.0
        self.left: set[str] = set()  # Orphans of commits of which nothing is known.

    def act(self, *kinds: Callable[["OnIceberg"], object]) -> None:
        """Do one thing, and note what is there afterwards."""
        self.draw.choice(kinds)(self)
        self.then[self.table.current] = set(self.rows)

    def append(self) -> None:
        for _ in range(self.draw.randint(1, 3)):
            rows = [next(self._numbers) for _ in range(self.draw.randint(1, 6))]
            self.table.make({self.table.write(rows): None}, {})
            self.rows |= {*rows}

    def delete_places(self) -> None:
        where = self.table.where()
        gone = self.draw.sample(sorted(where), k=min(len(where), self.draw.randint(1, 5)))
        if gone:
            self.table.delete_places([where[one] for one in gone], in_one_file=self.draw.random() < 0.5)
            self.rows -= {*gone}

    def delete_values(self) -> None:
        gone = self.draw.sample(range(1_000), k=2) + self.draw.sample(sorted(self.rows), k=min(2, len(self.rows)))
        self.table.delete_values(gone)
        self.rows -= {*gone}

    def put_together(self) -> None:
        self.table.put_together()

    def bring_back(self) -> None:
        """Remove a delete file, so that rows are visible again, as a writer may that undoes its own delete."""
        if self.table.now.deletes:
            self.table.make({}, {}, [self.draw.choice(sorted(self.table.now.deletes))])
            self.rows = {*self.table.rows()}

    def move(self) -> None:
        """Write the rows of a file again, as an update of others does that copies what it does not change."""
        if self.table.now.data:
            path = self.draw.choice(sorted(self.table.now.data))
            rows = [row for _, row in self.table.visible(path, self.table.now)]
            gone = self.draw.sample(rows, k=min(len(rows), 1))
            kept = [row for row in rows if row not in gone]
            vectors = [name for name in self.table.now.deletes if self.table.written[name].only == path]
            self.table.make({self.table.write(kept): None}, {}, [path, *vectors])
            self.rows -= {*gone}

    def roll_back(self) -> None:
        """Make an earlier snapshot the newest one; main forgets those since."""
        self.table.current = self.draw.choice(sorted(self.then))
        self.rows = set(self.then[self.table.current])

    def rewrite(
        self, between: Callable[[], object], at_attempts: list[Callable[[], object]], *, in_order: float
    ) -> bool:
        """Rewrite some files, and return whether all groups landed that have a row left.

        at_attempts: what others do between the look and the commit of each attempt. in_order: share of outputs that
        hold their inputs one after the other.
        """
        table = self.table
        live = [path for path in sorted(table.now.data) if table.visible(path, table.now)]
        self.draw.shuffle(live)
        head, groups = table.head(), list[StagedGroup]()
        for chosen in (live[:3], live[3:5]):
            if chosen:
                groups.append(table.staged(chosen, in_order=self.draw.random() < in_order))
        target = IcebergTarget(table, table, head, "{}", Comparisons(table.compare))
        others = iter(at_attempts)
        table.others = lambda: next(others, lambda: None)()
        between()
        committer: Committer[StagedGroup] = Committer(
            target, Steering(), clock_s=lambda: self.seconds, pause=self._pause
        )
        try:
            done = committer.commit(groups)
        except Conflict:
            return False
        except RetryableError:  # Others rolled back what our commit may have been made upon: nothing is known of it.
            self.left |= table.orphans()
            return False
        finally:
            table.others = lambda: None
        self.then[table.current] = set(self.rows)
        return {*done.set_aside.values()} <= {SetAside.NO_ROW_LEFT}

    def _pause(self, seconds: float) -> None:
        self.seconds += seconds


OF_ROWS = (OnIceberg.append, OnIceberg.delete_places, OnIceberg.delete_places)
OF_FILES = (OnIceberg.put_together, OnIceberg.bring_back, OnIceberg.move, OnIceberg.roll_back)


def play(world: OnIceberg, others: tuple[Callable[[OnIceberg], object], ...], *, in_order: float = 1) -> list[bool]:
    """Play a schedule; returns of each rewrite whether all of it landed."""
    draw, landed = world.draw, list[bool]()
    for _ in range(3):
        world.act(OnIceberg.append)

    def some(at_most: int) -> Callable[[], object]:
        return lambda: [world.act(*others) for _ in range(draw.randint(0, at_most))]

    for _ in range(draw.randint(1, 6)):
        some(3)()
        landed.append(world.rewrite(some(4), [some(2) for _ in range(draw.randint(0, 4))], in_order=in_order))
        assert world.table.rows() == sorted(world.rows)
        assert world.table.orphans() <= world.left, "what was not committed is deleted"
    return landed


VERSIONS = pytest.mark.parametrize("has_vectors", [False, True], ids=["v2", "v3"])


@VERSIONS
@given(SEEDS)
def test_no_row_is_lost_or_comes_back_on_iceberg_whatever_others_do(has_vectors: bool, seed: int) -> None:
    play(OnIceberg(Random(seed), has_vectors=has_vectors), (*OF_ROWS, *OF_FILES, OnIceberg.delete_values), in_order=0.9)


@VERSIONS
@given(SEEDS)
def test_a_rewrite_on_iceberg_lands_beside_all_who_add_and_delete_rows(has_vectors: bool, seed: int) -> None:
    assert all(play(OnIceberg(Random(seed), has_vectors=has_vectors), OF_ROWS))
