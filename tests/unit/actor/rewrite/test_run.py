"""One rewrite from request to outcome: each group has one end, and what was planned is what was replaced."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest
from actor.rewrite.checks import MIB, free_bytes, require_disjoint, require_free_space
from actor.rewrite.late_rows import RowMap
from actor.rewrite.model import Blame
from actor.rewrite.run import COMMITTED, FILES_WRITTEN, ExactRewrite, RewriteSettings
from actor.worker import RunControl
from shared.errors import Corrupt, LeaseLost, RefusedFiles, RetryableError, Unsupported
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.policy.row_order import INPUT_ORDER, RowOrder, SortColumn
from shared.refusals import RefusalReason
from shared.table import DataFile
from tests.support.memory_rewrite import LOCATION, Fault, MemoryTable

LANDED, STALE, SKIPPED = GroupStatus.COMMITTED, GroupStatus.CONFLICTED, GroupStatus.SKIPPED


class World:
    """A table of seven files, six of them in three planned groups, and a rewrite with one thread."""

    def __init__(self) -> None:
        self.table = MemoryTable()
        self.table.add(*"abcdefx")
        self.groups = tuple(self.table.group(*pair) for pair in ("ab", "cd", "ef"))
        self.points: list[str] = []
        self.at: dict[str, Callable[[], object]] = {}
        self.should_stop: Callable[[], bool] = lambda: False
        self.may_commit: Callable[[], None] = lambda: None
        self.free: int | None = None
        self.reserve = 0
        self.boundary = Boundary()

    def rewrite(self) -> RewriteOutcome:
        times_s = iter([0.0, 0.0, 2.0, 2.0, 2.5])
        settings = RewriteSettings(write_threads=1, reserved_disk_bytes=self.reserve)
        rewrite = ExactRewrite(
            self.table,
            self.table,
            self.table,
            self.boundary,
            settings,
            clock_s=lambda: next(times_s, 2.5),
            free_bytes=lambda _: self.free,
        )
        control = RunControl(lambda: self.may_commit(), lambda: self.should_stop(), self._reached)
        return rewrite.run(RewriteRequest(LOCATION, self.groups, ""), control)

    def _reached(self, point: str) -> None:
        self.points.append(point)
        self.at.get(point, lambda: None)()


@pytest.fixture
def world() -> World:
    return World()


def ends(outcome: RewriteOutcome) -> list[GroupStatus]:
    return [group.status for group in outcome.groups]


def lost() -> None:
    raise LeaseLost("the job is with another actor")


def test_exactly_the_planned_files_are_replaced(world: World) -> None:
    outcome = world.rewrite()
    assert world.table.live.keys() == {"x", "out-0", "out-1", "out-2"}
    assert [group.group for group in outcome.groups] == list(world.groups)
    assert [(group.status, group.rows, group.is_copied) for group in outcome.groups] == [(LANDED, 10, True)] * 3
    assert (outcome.version, outcome.conflicts, world.points) == (1, 0, [FILES_WRITTEN, COMMITTED])
    assert (outcome.prepare_ms, outcome.commit_ms) == (2000, 500)


def test_a_group_whose_input_is_gone_at_the_start_is_stale_and_not_written(world: World) -> None:
    world.table.remove("c")
    outcome = world.rewrite()
    assert (ends(outcome), outcome.conflicts, world.table.begun) == ([LANDED, STALE, LANDED], 0, ["a", "e"])


def test_a_group_taken_while_files_were_written_is_stale(world: World) -> None:
    world.at[FILES_WRITTEN] = lambda: world.table.remove("c")
    outcome = world.rewrite()
    assert (ends(outcome), outcome.conflicts) == ([LANDED, STALE, LANDED], 1)
    assert [group.conflicted_because for group in outcome.groups] == ["", "input_gone", ""]
    assert world.table.deleted == ["out-1"]


def test_groups_that_were_all_taken_before_the_commit_are_stale_and_nothing_is_committed(world: World) -> None:
    world.at[FILES_WRITTEN] = lambda: world.table.remove("a", "c", "e")
    outcome = world.rewrite()
    assert (ends(outcome), outcome.version, world.points) == ([STALE] * 3, None, [FILES_WRITTEN])
    assert {group.conflicted_because for group in outcome.groups} == {"input_gone"}
    assert world.table.orphans() == set()


def test_nothing_written_is_nothing_committed_and_the_lease_is_not_asked(world: World) -> None:
    world.table.remove("a", "c", "e")
    world.may_commit = lost
    outcome = world.rewrite()
    assert (outcome.version, ends(outcome), world.points) == (None, [STALE] * 3, [])


def test_asked_to_stop_the_groups_not_begun_are_skipped_and_the_rest_lands(world: World) -> None:
    world.should_stop = lambda: len(world.table.begun) >= 1
    assert ends(world.rewrite()) == [LANDED, SKIPPED, SKIPPED]
    assert world.table.live.keys() == {"c", "d", "e", "f", "x", "out-0"}


def test_asked_to_stop_before_the_start_nothing_is_written(world: World) -> None:
    world.should_stop = lambda: True
    outcome = world.rewrite()
    assert (outcome.version, ends(outcome), world.table.disk) == (None, [SKIPPED] * 3, {})


def test_a_failure_between_writing_and_committing_leaves_no_file(world: World) -> None:
    world.at[FILES_WRITTEN] = lost
    with pytest.raises(LeaseLost):
        world.rewrite()
    assert (world.table.disk, world.table.attempts) == ({}, 0)


@pytest.mark.parametrize(
    ("failure", "end"),
    [
        (RefusedFiles("a type that cannot be read", reason="type", files=("c",)), GroupStatus.REFUSED),
        (Fault(blame=Blame.FILES), GroupStatus.FAILED),
    ],
)
def test_a_group_that_failed_for_itself_is_returned_with_its_error_and_the_others_land(
    world: World, failure: Exception, end: GroupStatus
) -> None:
    world.table.fails_writing = {"c": failure}
    outcome = world.rewrite()
    assert ends(outcome) == [LANDED, end, LANDED]
    assert outcome.groups[1].error is not None
    assert world.table.live.keys() == {"c", "d", "x", "out-0", "out-2"}
    assert world.table.orphans() == set()


@pytest.mark.parametrize(("text", "files"), [("s3://bucket/t/d: page 7", ("d",)), ("page 7", ())])
def test_a_refusal_names_the_files_that_the_librarys_message_names(
    world: World, text: str, files: tuple[str, ...]
) -> None:
    """The others of the group are rewritten; without a name, all of it is refused."""
    world.table.fails_writing = {"c": Fault(blame=Blame.FILES, text=text, refused=RefusalReason.DAMAGED)}
    error = world.rewrite().groups[1].error
    assert isinstance(error, RefusedFiles)
    assert error.files == files


def test_on_a_full_disk_what_is_written_lands_and_no_part_of_a_file_stays(world: World) -> None:
    world.table.fails_writing = {"c": Fault(blame=Blame.STORE)}
    assert ends(world.rewrite()) == [LANDED, GroupStatus.FAILED, SKIPPED]
    assert world.table.orphans() == set()


@pytest.mark.parametrize(("free", "is_written"), [(None, True), (100 * MIB + 750, True), (100 * MIB + 749, False)])
def test_a_disk_without_room_for_the_outputs_and_the_reserve_is_not_written_to(
    world: World, free: int | None, is_written: bool
) -> None:
    """Six inputs of 100 bytes may take 750."""
    world.free, world.reserve = free, 100 * MIB
    if is_written:
        assert ends(world.rewrite()) == [LANDED] * 3
    else:
        with pytest.raises(RetryableError, match="rewriting 0 MiB takes up to 100 MiB with the 100 MiB kept"):
            world.rewrite()
        assert world.table.begun == []


def test_only_a_local_disk_has_a_known_amount_of_room(tmp_path: Path) -> None:
    assert free_bytes("s3://bucket/t") is None
    for location in (str(tmp_path), tmp_path.as_uri(), f"file:{tmp_path}", f"{tmp_path.as_uri()}/not/there"):
        assert (free_bytes(location) or 0) > 0


class Fence(Boundary):
    """Refuses files whose paths begin with `letter`; and all, by their links, if `is_linked`."""

    letter = "c"
    is_linked = False

    def check_files(self, location: str, files: Iterable[DataFile]) -> None:
        if any(file.path.startswith(self.letter) for file in files):
            raise Unsupported(f"{location}: outside", field="path")

    def check_links(self, location: str, paths: Iterable[str]) -> None:
        if self.is_linked:
            raise Unsupported(f"{location}: by a link", field="path")


class Linked(Fence):
    """Refuses links."""

    letter = "no such path"
    is_linked = True


class FenceOfOutputs(Fence):
    """Refuses outputs."""

    letter = "o"


@pytest.mark.parametrize("boundary", [Fence(), Linked()])
def test_an_input_outside_of_the_table_is_refused_before_anything_is_read(world: World, boundary: Boundary) -> None:
    world.boundary = boundary
    world.table.resolve = lambda _: pytest.fail("read")  # type: ignore[method-assign]
    with pytest.raises(Unsupported):
        world.rewrite()


class FenceOfDeletes(Boundary):
    """Finds a pipe among the files that name deleted rows."""

    def check_links(self, location: str, paths: Iterable[str]) -> None:
        if "deletes" in paths:
            raise Unsupported(f"{location}: deletes is a pipe", field="path")


def test_files_that_name_deleted_rows_are_plain_before_a_group_is_begun(world: World) -> None:
    """They are read with their data files: who opens a pipe waits for ever, and keeps a slot of the actor."""
    world.table.delete_files = ("deletes",)
    assert ends(world.rewrite()) == [LANDED] * 3
    world = World()
    world.table.delete_files, world.boundary = ("deletes",), FenceOfDeletes()
    with pytest.raises(Unsupported, match="deletes is a pipe"):
        world.rewrite()
    assert (world.table.begun, world.table.attempts) == ([], 0)


def test_an_output_outside_of_the_table_is_not_committed_and_deleted(world: World) -> None:
    world.boundary = FenceOfOutputs()
    with pytest.raises(Unsupported):
        world.rewrite()
    assert (world.table.disk, world.table.attempts) == ({}, 0)


SORTED = RowOrder((SortColumn("k"),), outputs=2)


def output(*key_range: int) -> DataFile:
    return DataFile(f"f{key_range}", 1, WHOLE_TABLE, key_range=(key_range[0], key_range[1]) if key_range else None)


def test_outputs_that_overlap_stop_the_rewrite_before_its_commit() -> None:
    with pytest.raises(Corrupt, match="two outputs overlap in 'k', from 0 to 6 and from 5 to 9"):
        require_disjoint([output(5, 9), output(0, 6)], SORTED, "k", "the sort")


def test_outputs_that_touch_or_have_no_bounds_are_as_they_should_be() -> None:
    require_disjoint([output(5, 9), output(0, 5), output()], SORTED, "k", "the sort")


@pytest.mark.parametrize("order", [None, INPUT_ORDER, replace(SORTED, is_interleaved=True)])
def test_nothing_is_promised_of_other_orders(order: RowOrder | None) -> None:
    require_disjoint([output(5, 9), output(0, 6)], order, "k", "the rewrite")


@pytest.mark.parametrize(("free", "fits"), [(None, True), (135 * MIB, True), (135 * MIB - 1, False), (0, False)])
def test_outputs_have_to_fit_beside_the_reserve(free: int | None, fits: bool) -> None:
    if fits:
        require_free_space("file:///t", 100 * MIB, reserved_bytes=10 * MIB, free_bytes=lambda _: free)
    else:
        with pytest.raises(RetryableError, match="rewriting 100 MiB takes up to 135 MiB with the 10 MiB"):
            require_free_space("file:///t", 100 * MIB, reserved_bytes=10 * MIB, free_bytes=lambda _: free)


@given(st.lists(st.tuples(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)), st.integers(31, 40)), max_size=6))
def test_the_places_are_those_of_the_same_rows_in_what_was_written(
    inputs: list[tuple[set[int], set[int], int]],
) -> None:
    """inputs: of each what the read left out, what others deleted since, and its rows."""
    omitted = [sorted(gone) for gone, _, _ in inputs]
    chosen = [sorted(late - gone) for gone, late, _ in inputs]
    written = [(number, row) for number, (gone, _, rows) in enumerate(inputs) for row in range(rows) if row not in gone]
    mapped = RowMap(tuple(rows for _, _, rows in inputs), omitted)
    places = list(mapped.places(chosen))
    assert [written[place] for place in places] == [(n, row) for n, rows in enumerate(chosen) for row in rows]
    assert places == sorted(set(places))
    assert mapped.output_rows == len(written)


def test_drawn_rows_are_of_the_output() -> None:
    mapped = RowMap((10, 3, 0), ([1, 2, 3, 4], (), ()))
    some, few, none = mapped.drawn(random.Random(1), 4)
    assert 0 < len(some) <= 4
    assert not {*some} & {1, 2, 3, 4}
    assert (len(few), none) == (1, [])
    assert list(mapped.places([[0, 5], [2], []])) == [0, 1, 8]
