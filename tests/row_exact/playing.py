"""Random schedules of rewrites and of others who change the table, on a real table, beside a model of its rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Protocol

from actor.ports import GroupStatus, RewriteOutcome, TableEngine
from shared.errors import Conflict
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, PartitionKey
from tests.support.steering import Steering

Row = tuple[str, int]
Rows = dict[int, Row]
"""`v` and `x` by `id`."""

FIRST_NEW = 10
"""Rows of an append at most; small files make every position count."""


class Model:
    """The rows that have to be there, now and at each version; `draw` chooses among them."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.rows: Rows = {}
        self.then: dict[int, Rows] = {}
        self.touched: set[int] = set()  # Rows that others wrote.
        self._next_id = 0
        self._next_text = 0

    def new_ids(self) -> list[int]:
        """Return ids that were never used."""
        first, self._next_id = self._next_id, self._next_id + self.draw.randint(3, FIRST_NEW)
        return list(range(first, self._next_id))

    def new_text(self) -> str:
        """Return a text that no other row has."""
        self._next_text += 1
        return f"t{self._next_text}"

    def some(self, at_most: int) -> list[int]:
        """Choose ids of rows that are there."""
        return sorted(self.draw.sample(sorted(self.rows), k=min(len(self.rows), self.draw.randint(1, at_most))))

    def neighbors(self) -> list[int]:
        """Choose ids that lie beside each other, as whole files have them."""
        ids = sorted(self.rows)
        start = self.draw.randrange(len(ids)) if ids else 0
        return ids[start : start + self.draw.randint(4, 12)]

    def add(self, rows: Rows) -> None:
        self.rows |= rows
        self.touched |= {*rows}

    def drop(self, ids: Sequence[int]) -> None:
        for one in ids:
            del self.rows[one]

    def note(self, versions: Sequence[int]) -> None:
        """Note these versions as having the rows of now."""
        self.then |= {version: dict(self.rows) for version in versions}

    def go_back(self, version: int) -> None:
        """Take the rows of a version."""
        self.rows = dict(self.then[version])
        self.touched |= {*self.rows}


class World(Protocol):
    """A table, its model, and those who change and read it."""

    model: Model
    others: Mapping[str, Callable[[], object]]
    meanwhile: Mapping[str, Callable[[], object]]
    deletes_by_value: bool

    def version(self) -> int:
        """Return the newest version, or the newest snapshot."""

    def note(self) -> None:
        """Note the rows of all versions since the last call."""

    def go_back(self, version: int) -> None:
        """Make the rows of a version the newest ones."""

    def live(self) -> Mapping[PartitionKey, Sequence[DataFile]]:
        """Return the live files of each partition."""

    def rewrite(self, groups: Sequence[FileGroup], control: Steering, way: str, below: int) -> RewriteOutcome:
        """Rewrite groups in a way; below: percentage of hidden rows from which none is carried."""

    def check(self) -> None:
        """Let every reader read the newest version, and compare."""

    def finish(self) -> None:
        """Let every reader read what it can of earlier versions and of changes, and compare."""


WAYS = ("copied", "copied", "by column", "by column", "encoded")
MODES = (*[RewriteMode.MINOR] * 5, RewriteMode.MAJOR, RewriteMode.FULL, RewriteMode.IDLE, RewriteMode.PURGE)


def live_files(engine: TableEngine, location: str, days: int) -> Mapping[PartitionKey, Sequence[DataFile]]:
    """Return the live files of each partition; days: number of partitions, 0 for a table without."""
    keys = [PartitionKey(f'{{"d":"{day}"}}') for day in range(days)] or [WHOLE_TABLE]
    found = {key: engine.read_partition(location, key).files for key in keys}
    return {key: sorted(files, key=lambda file: file.path) for key, files in found.items()}


@contextmanager
def row_ids_kept(model: Model, ids: Callable[[], Mapping[int, tuple[Any, ...]]]) -> Iterator[None]:
    """Compare what `ids` returns of each row before and after, except for rows that others wrote meanwhile."""
    before, model.touched = ids(), set()
    try:
        yield
    finally:
        after = ids()
        kept = before.keys() & after.keys() - model.touched
        assert {one: before[one] for one in kept} == {one: after[one] for one in kept}, "row ids changed"


class Player:
    """Plays one schedule. done: what was done, for people; ends: how many groups ended in which way."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._draw = world.model.draw
        self.done: list[str] = []
        self.ends: Counter[str] = Counter()

    def play(self, rounds: int, after: int) -> None:
        """Play rounds of changes and a rewrite, and changes after them."""
        for _ in range(self._draw.randint(2, 4)):
            self._act({"append": self.world.others["append"]})
        for _ in range(rounds):
            for _ in range(self._draw.randint(0, 2)):
                self._act(self.world.others)
            self._rewrite()
            self.world.check()
        for _ in range(after):
            self._act(self.world.others)
            self.world.check()
        self.world.finish()

    def afterwards(self, control: Steering, way: str, below: int) -> None:
        """Rewrite all files so that rows are hidden in the output; then let others do one thing after the other to it.

        below: as of `World.rewrite`.
        """
        world = self.world
        groups = [FileGroup(key, tuple(files), RewriteMode.MINOR) for key, files in world.live().items()]
        outcome = world.rewrite(groups, control, way, below)
        world.note()
        assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED] * len(groups)
        assert any(file.deleted_rows for end in outcome.groups for file in end.outputs)
        self._compare_report(outcome)
        world.check()
        version = world.version()
        for name in {**world.others, "rewrite": None}:
            self.done.append(name)
            if name == "rewrite":
                self._rewrite()
            else:
                world.others[name]()
                world.note()
            world.check()
            world.go_back(version)
            world.note()
        world.check()
        world.finish()

    def _act(self, among: Mapping[str, Callable[[], object]]) -> None:
        name = self._draw.choice(list(among))
        self.done.append(name)
        among[name]()
        self.world.note()

    def _rewrite(self) -> None:
        draw, world = self._draw, self.world
        groups = self._groups()
        if not groups:
            return

        def some(at_most: int) -> Callable[[], object]:
            return lambda: [self._act(world.meanwhile) for _ in range(draw.randint(0, at_most))]

        control = Steering(at={"files_written": some(3)}, before_commit=[some(1) for _ in range(draw.randint(0, 3))])
        way, below = draw.choice(WAYS), draw.choice((10, 30, 50))
        self.done.append(f"rewrite {[len(group.files) for group in groups]} {groups[0].mode} {way}")
        try:
            outcome = world.rewrite(groups, control, way, below)
        except Conflict:
            self.ends["conflict"] += 1
            self.done.append("conflict")
            world.note()
            return
        world.note()
        for end in outcome.groups:
            self.ends[end.status] += 1
            self.ends["late"] += end.status is GroupStatus.COMMITTED and end.late_rows > 0
            self.ends["carried or late"] += any(file.deleted_rows for file in end.outputs)
            assert end.status in (GroupStatus.COMMITTED, GroupStatus.CONFLICTED), end
        self.done.append("; ".join(end.status for end in outcome.groups))
        self._compare_report(outcome)

    def _groups(self) -> list[FileGroup]:
        """Choose one or two groups of files."""
        live = self.world.live()
        found: list[FileGroup] = []
        for partition in sorted(live):
            files = list(live[partition])
            self._draw.shuffle(files)
            mode, size = self._draw.choice(MODES), self._draw.randint(1, 4)
            chosen = [files[:size], *([files[size : size + 2]] if self._draw.random() < 0.3 else [])]
            found += [FileGroup(partition, tuple(one), mode) for one in chosen if one]
        return found

    def _compare_report(self, outcome: RewriteOutcome) -> None:
        """What is reported of the outputs is what a new look finds, but for rows that others deleted by value."""
        live = {file.path: file for files in self.world.live().values() for file in files}
        for end in outcome.groups:
            if end.status is GroupStatus.COMMITTED:
                for output in end.outputs:
                    seen = live[output.path]
                    if seen.key == output.key or not self.world.deletes_by_value:
                        assert (seen.rows, seen.deleted_rows) == (output.rows, output.deleted_rows)


def counted(rows: Rows) -> Counter[tuple[Any, ...]]:
    """Return rows as readers return them."""
    return Counter((one, *values) for one, values in rows.items())


def explain(found: Counter[Any], expected: Counter[Any]) -> str:
    """Return which rows are missing, and which are too many."""
    return f"missing {sorted((expected - found).elements())[:9]}, too many {sorted((found - expected).elements())[:9]}"
