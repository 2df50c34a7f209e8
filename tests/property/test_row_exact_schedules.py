"""Whatever others do between read, write and each attempt of a commit, readers see exactly the rows of a model.

The code that finds, maps, hides and commits is the real one, on a table in memory. `make test-properties ARGS="-k
schedules"` plays 1,000 schedules of each kind.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import count
from random import Random
from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.commit import DeltaTarget
from actor.formats.delta.late_rows import RowHider
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.iceberg import delete_groups, value_groups
from actor.formats.iceberg.commit import IcebergTarget
from actor.formats.iceberg.convert_deletes import Conversion
from actor.formats.iceberg.late_rows import SetAside
from actor.formats.iceberg.merge_deletes_job import NOTHING, MergeDeletesJob
from actor.formats.iceberg.staged import StagedGroup
from actor.ports import TableJob, TableJobOutcome
from actor.proofread.model import Proof, Reading
from actor.rewrite.commit import Committer
from actor.rewrite.late_rows import Comparisons
from shared.errors import Conflict, RefusedFiles, RetryableError
from shared.formats.delta_references import vector_path
from shared.formats.iceberg import delete_merges
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.upkeep import MERGE_DELETES
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy
from shared.table import CommitOrigin, DeleteKind, PartitionColumn
from tests.support.fake_delta import FakeScala, FakeTable, live_group
from tests.support.fake_delta_table import METADATA, add, remove, vector
from tests.support.local_vacuum import Control
from tests.support.memory_snapshots import KEYS, Begun, Footers, MemorySnapshots
from tests.support.steering import Steering

MARK = CommitMetadata(CommitOrigin("j", 1)).encode()
ON = {"delta.enableDeletionVectors": "true"}
FEATURES = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7, **FEATURES}
NEW_COLUMN = '"fields":[{"name":"n","type":"long","nullable":true,"metadata":{}},'
OTHER_COLUMNS = str(METADATA["schemaString"]).replace('"fields":[', NEW_COLUMN)

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
        self.begun: Begun | None = None
        self.ended = 0  # Compactions of others.

    def act(self, *kinds: Callable[["OnIceberg"], object]) -> None:
        """Do one thing, and note what is there afterwards."""
        self.draw.choice(kinds)(self)
        self.then[self.table.current] = set(self.rows)

    def visible_rows(self) -> list[int]:
        """Return the rows that readers see."""
        return self.table.rows()

    def orphans(self) -> set[str]:
        """Return files that no snapshot names, but for those of commits of which nothing is known."""
        return self.table.orphans() - self.left

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

    def stream(self) -> None:
        """Add a file, some rows of which the same commit deletes by position, as a stream of upserts does."""
        rows = [next(self._numbers) for _ in range(self.draw.randint(3, 6))]
        path, gone = self.table.write(rows), self.draw.sample(range(3), k=2)
        self.table.stream(path, gone, in_one_file=self.draw.random() < 0.5)
        self.rows |= {row for place, row in enumerate(rows) if place not in gone}

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

    def add_again(self) -> None:
        """Add a data file that was removed: what deleted its rows then does not delete them now."""
        table, now = self.table, {row for path in self.table.now.data for row in self.table.files[path]}
        gone = [path for path in {*table.files} & table.disk - {*table.now.data} if now.isdisjoint(table.files[path])]
        if gone:
            table.make({self.draw.choice(sorted(gone)): None}, {})
            self.rows = {*table.rows()}

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

    def rewrite_of_others(self) -> None:
        """Begin a compaction of another engine, or end it."""
        live = [path for path in sorted(self.table.now.data) if self.table.visible(path, self.table.now)]
        if self.begun is None and live:
            self.begun = self.table.begin_rewrite(self.draw.sample(live, k=min(len(live), self.draw.randint(1, 3))))
        elif self.begun is not None:
            self.ended += self.table.end_rewrite(self.begun)
            self.begun = None

    def merge(self, at_attempts: list[Callable[[], object]], *, converts: bool = False) -> TableJobOutcome | None:
        """Merge the delete files as a job does, beside others; None: they were first, all stay, or nothing is known.

        converts: deletes by value become positions before.
        """
        table, others = self.table, iter(at_attempts)
        table.others = lambda: next(others, lambda: None)()
        job = TableJob(MERGE_DELETES.kind, "t", Policy(), CommitOrigin("job", 7))
        proof = Proof(Reading.ROWS, 0)
        try:
            return MergeDeletesJob(
                *(table, table, job, Control(), table.check, Boundary()),
                lambda _: proof,
                lambda: self.seconds,
                self._pause,
                Conversion(table, lambda _: KEYS, Footers(), lambda _: proof) if converts else None,
            ).run()
        except (Conflict, RefusedFiles):
            return None
        except RetryableError:
            self.left |= table.orphans()
            return None
        finally:
            table.others = lambda: None
            self.then[table.current] = set(self.rows)

    def upgrade(self) -> None:
        """Raise the format version; others write vectors from now on."""
        self.table.has_vectors = True

    def _pause(self, seconds: float) -> None:
        self.seconds += seconds


class OnDelta:
    """The same on a Delta table with deletion vectors, whose few hidden rows are carried into copies."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.table = FakeTable(user_metadata=MARK)
        self.table.commit({"metaData": METADATA | {"configuration": ON}}, {"protocol": PROTOCOL})
        self.files: dict[str, tuple[int, ...]] = {}
        self.rows: set[int] = set()
        self.then: dict[int, set[int]] = {0: set()}  # The model at each version.
        self.seconds = 0.0
        self._numbers, self._names = count(), count()

    def act(self, *kinds: Callable[["OnDelta"], object]) -> None:
        """Do one thing, and note what is there afterwards."""
        self.draw.choice(kinds)(self)
        self.then[self.table.version] = set(self.rows)

    def live(self, version: int | None = None) -> dict[str, dict[str, Any]]:
        """Return the entries of a version, of the newest one unless it is given."""
        at = self.table.at(self.table.version if version is None else version)
        return {body["path"]: body for body in at.allFiles().bodies}

    def hidden(self, entry: Mapping[str, Any]) -> set[int]:
        found = entry.get("deletionVector")
        return {*self.table.vectors[found["pathOrInlineDv"]]} if found else set()

    def visible(self, entry: Mapping[str, Any]) -> list[tuple[int, int]]:
        gone = self.hidden(entry)
        return [(place, row) for place, row in enumerate(self.files[entry["path"]]) if place not in gone]

    def visible_rows(self) -> list[int]:
        """Return the rows that readers see."""
        return sorted(row for entry in self.live().values() for _, row in self.visible(entry))

    def orphans(self) -> set[str]:
        """Return files on the disk that no version names."""
        added = self.table.bodies("add")
        vectors = {str(vector_path(body["deletionVector"])) for body in added if "deletionVector" in body}
        return self.table.disk.keys() - {body["path"] for body in added} - vectors

    def _write(self, rows: Iterable[int], name: str = "data") -> dict[str, Any]:
        path = f"{name}-{next(self._names)}"
        self.files[path] = tuple(rows)
        self.table.disk[path] = 100
        return add(path, len(self.files[path]))

    def append(self) -> None:
        rows = [next(self._numbers) for _ in range(self.draw.randint(1, 9))]
        self.table.commit(self._write(rows))
        self.rows |= {*rows}

    def delete_places(self) -> None:
        live = self.live()
        where = {row: (path, place) for path, entry in live.items() for place, row in self.visible(entry)}
        gone = self.draw.sample(sorted(where), k=min(len(where), self.draw.randint(1, 3)))
        actions: list[dict[str, Any]] = []
        for path in {where[row][0] for row in gone}:
            places = self.hidden(live[path]) | {where[row][1] for row in gone if where[row][0] == path}
            actions.append(self._removal(live[path]))
            if len(places) < len(self.files[path]):
                name = f"of{next(self._names):020}"
                self.table.vectors[name] = sorted(places)
                actions.append(add(path, len(self.files[path]), deletionVector=vector(len(places), name)))
        self.table.commit(*actions)
        self.rows -= {*gone}

    def _removal(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        return remove(entry["path"], **{name: entry[name] for name in ("deletionVector",) if entry.get(name)})

    def move(self) -> None:
        """Write the rows of a file again, as an update of others does that copies what it does not change."""
        if live := self.live():
            entry = live[self.draw.choice(sorted(live))]
            rows = [row for _, row in self.visible(entry)]
            self.table.commit(self._removal(entry), self._write(rows[1:]))
            self.rows -= {*rows[:1]}

    def restore(self) -> None:
        """Commit the files of an earlier version, as RESTORE does."""
        then, now = self.draw.choice(sorted(self.then)), self.live()
        before = self.live(then)
        gone = [self._removal(entry) for path, entry in now.items() if before.get(path) != entry]
        again = [{"add": entry | {"dataChange": True}} for path, entry in before.items() if now.get(path) != entry]
        self.table.commit(*gone, *again)
        self.rows = set(self.then[then])

    def change_columns(self) -> None:
        self.table.commit({"metaData": METADATA | {"configuration": ON, "schemaString": OTHER_COLUMNS}})

    def rewrite(
        self, between: Callable[[], object], at_attempts: list[Callable[[], object]], *, in_order: float
    ) -> bool:
        """Rewrite some files as `OnIceberg.rewrite` does; outputs that are not in order state no places."""
        table, log, scala = self.table, self.table.log(), FakeScala(self.table)
        shape = log.shape(log.snapshot())
        hider = RowHider(scala, log, shape, cast("Proofs", self), Fraction(1, 2))
        live = [path for path, entry in sorted(self.live().items()) if self.visible(entry)]
        self.draw.shuffle(live)
        groups = [
            self._staged(hider, chosen, is_in_order=self.draw.random() < in_order)
            for chosen in (live[:3], live[3:5])
            if chosen
        ]
        others = iter(at_attempts)
        table.others = lambda: next(others, lambda: None)()
        between()
        target = DeltaTarget(scala, log, shape, CommitOrigin("j", 1), hider)
        committer: Committer[WrittenGroup] = Committer(
            target, Steering(), clock_s=lambda: self.seconds, pause=self._pause
        )
        try:
            done = committer.commit(groups)
        except Conflict:
            return False
        finally:
            table.others = lambda: None
        self.then[table.version] = set(self.rows)
        return len(done.committed) == len(groups)

    def _staged(self, hider: RowHider, paths: Sequence[str], *, is_in_order: bool) -> WrittenGroup:
        live, entries = live_group(self.table, *paths), self.live()
        stored = [row for path in paths for row in self.files[path]]
        had_vectors = any(entries[path].get("deletionVector") for path in paths)
        if is_in_order and (not had_vectors or hider.may_carry(live)):
            output = self._output(stored)
            of_inputs = tuple(len(self.files[path]) for path in paths)
            written = WrittenGroup(live, (output,), len(stored), input_rows=of_inputs)
            carried = hider.carried(written) if had_vectors else written
            assert carried is not None
            return carried
        seen = [row for path in paths for _, row in self.visible(entries[path])]
        return WrittenGroup(live, (self._output(reversed(seen)),), len(seen), "row_order")

    def _output(self, rows: Iterable[int]) -> LoggedFile:
        body = self._write(rows, "out")["add"]
        return LoggedFile(decode_add(body, (PartitionColumn("p", "p", "string"),)), encode(body))

    def check_places(
        self, live: Any, chosen: Sequence[Sequence[int]], output: LoggedFile, places: Sequence[int]
    ) -> bool:
        """Compare rows as a proofreader does."""
        pairs = zip(live.inputs, chosen, strict=True)
        read = [self.files[logged.file.path][place] for logged, of_file in pairs for place in of_file]
        assert read == [self.files[output.file.path][place] for place in places]
        return True

    def _pause(self, seconds: float) -> None:
        self.seconds += seconds


OF_ROWS = (OnIceberg.append, OnIceberg.delete_places, OnIceberg.delete_places)
OF_FILES = (OnIceberg.put_together, OnIceberg.bring_back, OnIceberg.move, OnIceberg.roll_back)


def play(world: Any, others: Sequence[Callable[[Any], object]], *, in_order: float = 1) -> list[bool]:
    """Play a schedule; returns of each rewrite whether all of it landed."""
    draw, landed = world.draw, list[bool]()
    for _ in range(3):
        world.act(type(world).append)

    def some(at_most: int) -> Callable[[], object]:
        return lambda: [world.act(*others) for _ in range(draw.randint(0, at_most))]

    for _ in range(draw.randint(1, 6)):
        some(3)()
        landed.append(world.rewrite(some(4), [some(2) for _ in range(draw.randint(0, 4))], in_order=in_order))
        assert world.visible_rows() == sorted(world.rows)
        assert world.orphans() == set(), "what was not committed is deleted"
    return landed


@pytest.mark.parametrize("upgrades", [False, True], ids=["v2", "v2 to v3"])
@given(SEEDS)
def test_no_row_is_lost_or_comes_back_where_delete_files_are_merged_whatever_others_do(
    upgrades: bool, seed: int
) -> None:
    draw = Random(seed)
    world = OnIceberg(draw, has_vectors=False)
    others = (
        *OF_ROWS,
        *OF_FILES,
        OnIceberg.add_again,
        OnIceberg.stream,
        OnIceberg.delete_values,
        *([OnIceberg.upgrade] if upgrades else []),
    )

    def some(at_most: int) -> Callable[[], object]:
        return lambda: [world.act(*others) for _ in range(draw.randint(0, at_most))]

    for _ in range(draw.randint(2, 6)):
        world.act(OnIceberg.append)
        some(4)()
        most = draw.choice([1, 2, 4, 8, 1_000])
        with patch.object(delete_merges, "MOST_ROWS", most), patch.object(delete_groups, "MOST_ROWS", most):
            world.merge([some(2) for _ in range(draw.randint(0, 4))])
        assert world.visible_rows() == sorted(world.rows)
        assert world.orphans() == set(), "what was not committed is deleted"
        if draw.random() < 0.5:
            world.rewrite(some(2), [some(1)], in_order=1)
            assert world.visible_rows() == sorted(world.rows)
    done = world.merge([])
    assert done is not None
    table = world.table
    assert world.visible_rows() == sorted(world.rows)
    found = table.look(table.head())
    assert found is not None
    for path in table.now.data:
        places = [one for one in found.inputs if one.path == path]
        named = [delete for one in places for delete in one.by_position]
        assert len([one for one in named if one.is_of_one_file]) <= 1
        assert not table.has_vectors or {one.kind for one in named} <= {DeleteKind.VECTOR}
    again = world.merge([])
    assert again is not None
    assert (again.commits, again.reason) == ((), NOTHING)


@pytest.mark.parametrize("kind", ["v2", "v3", "v2 to v3"])
@given(SEEDS)
def test_no_row_is_lost_or_comes_back_where_deletes_by_value_become_positions_whatever_others_do(
    kind: str, seed: int
) -> None:
    """Others compact beside it, too: they look at what deleted rows by position, and at no `replace`."""
    draw = Random(seed)
    world = OnIceberg(draw, has_vectors=kind == "v3")
    others = (
        *OF_ROWS,
        *[OnIceberg.rewrite_of_others] * 3,
        *[OnIceberg.delete_values] * 3,
        OnIceberg.put_together,
        OnIceberg.move,
        OnIceberg.roll_back,
        OnIceberg.stream,
        *([OnIceberg.upgrade] if kind == "v2 to v3" else []),
    )

    def some(at_most: int) -> Callable[[], object]:
        return lambda: [world.act(*others) for _ in range(draw.randint(0, at_most))]

    for _ in range(draw.randint(2, 6)):
        world.act(OnIceberg.append)
        some(4)()
        most = draw.choice([2, 4, 8, 1_000])
        with patch.object(value_groups, "MOST_KEYS", most), patch.object(value_groups, "MOST_DATA_FILES", most):
            world.merge([some(2) for _ in range(draw.randint(0, 4))], converts=True)
        assert world.visible_rows() == sorted(world.rows)
        assert world.orphans() == set(), "what was not committed is deleted"
        if draw.random() < 0.5:
            world.rewrite(some(2), [some(1)], in_order=1)
            assert world.visible_rows() == sorted(world.rows)
    world.merge([], converts=True)
    assert world.visible_rows() == sorted(world.rows)
    table = world.table
    assert {table.written[name].kind for name in table.now.deletes} <= {DeleteKind.VECTOR, DeleteKind.POSITION}
    assert (again := world.merge([], converts=True)) is not None
    assert (again.commits, again.reason) == ((), NOTHING)


VERSIONS = pytest.mark.parametrize("has_vectors", [False, True], ids=["v2", "v3"])


@VERSIONS
@given(SEEDS)
def test_no_row_is_lost_or_comes_back_on_iceberg_whatever_others_do(has_vectors: bool, seed: int) -> None:
    play(OnIceberg(Random(seed), has_vectors=has_vectors), (*OF_ROWS, *OF_FILES, OnIceberg.delete_values), in_order=0.9)


@VERSIONS
@given(SEEDS)
def test_a_rewrite_on_iceberg_lands_beside_all_who_add_and_delete_rows(has_vectors: bool, seed: int) -> None:
    assert all(play(OnIceberg(Random(seed), has_vectors=has_vectors), OF_ROWS))


DELTA_ROWS = (OnDelta.append, OnDelta.delete_places, OnDelta.delete_places)


@given(SEEDS)
def test_no_row_is_lost_or_comes_back_on_delta_whatever_others_do(seed: int) -> None:
    others = (*DELTA_ROWS, *DELTA_ROWS, OnDelta.move, OnDelta.restore, OnDelta.change_columns)
    play(OnDelta(Random(seed)), others, in_order=0.9)
