"""One rewrite from request to outcome: each group has one end, and what was planned is what was replaced."""

import json
from collections.abc import Callable

import pytest

from actor.formats.delta.free_space import MIB
from actor.formats.delta.read import read_partition
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.formats.delta.transaction import FILES_WRITTEN, TransactionExecutor, TransactionSettings
from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest
from actor.worker import RunControl
from shared.errors import Corrupt, InvalidInput, LeaseLost, OtherTable, RetryableError, Unsupported
from tests.support.fake_delta import LOCATION, FakeScala, FakeSessions, FakeTable, group_of
from tests.support.fake_delta_table import NAME_PREFIX, PROTOCOL, JavaError, add, remove

MARK = json.dumps({"lakewright": {"job": "j-1", "token": 7}})


def executor_of(table: FakeTable, memory: ReadCache, settings: TransactionSettings) -> TransactionExecutor:
    return TransactionExecutor(FakeScala(table), FakeSessions(table), memory, SnapshotCache(), settings)


class World:
    """A table of six files in three planned groups, and an executor with one thread."""

    def __init__(self) -> None:
        self.table = FakeTable()
        self.table.commit(*map(add, "abcdefx"))
        self.memory = ReadCache()
        self.groups = tuple(group_of(self.table, *pair) for pair in ("ab", "cd", "ef"))
        self.settings = TransactionSettings(write_threads=1)
        self.points: list[str] = []
        self.at: dict[str, Callable[[], None]] = {}
        self.should_stop: Callable[[], bool] = lambda: False
        self.may_commit: Callable[[], None] = lambda: None

    def rewrite(self, mark: str = MARK, table_uuid: str = "") -> RewriteOutcome:
        executor = TransactionExecutor(
            FakeScala(self.table), FakeSessions(self.table), self.memory, SnapshotCache(), self.settings
        )
        control = RunControl(lambda: self.may_commit(), lambda: self.should_stop(), self._reached)
        return executor.rewrite(RewriteRequest(LOCATION, self.groups, mark, table_uuid), control)

    def _reached(self, point: str) -> None:
        self.points.append(point)
        self.at.get(point, lambda: None)()


@pytest.fixture
def world() -> World:
    return World()


def ends(outcome: RewriteOutcome) -> list[GroupStatus]:
    return [group.status for group in outcome.groups]


LANDED, STALE, SKIPPED = GroupStatus.COMMITTED, GroupStatus.CONFLICTED, GroupStatus.SKIPPED


def test_exactly_the_planned_files_are_replaced(world: World) -> None:
    outcome = world.rewrite()
    assert ends(outcome) == [LANDED] * 3
    assert world.table.live() == {"x", "out-0", "out-1", "out-2"}
    assert [group.group for group in outcome.groups] == list(world.groups)
    assert [group.rows for group in outcome.groups] == [20] * 3
    assert (outcome.version, world.points) == (1, ["files_written", "committed"])


def test_a_group_whose_input_is_gone_at_the_start_is_stale_and_not_written(world: World) -> None:
    world.table.commit(remove("c"))
    outcome = world.rewrite()
    assert ends(outcome) == [LANDED, STALE, LANDED]
    assert world.table.live() == {"d", "x", "out-0", "out-1"}


def test_a_group_taken_while_files_were_written_is_stale(world: World) -> None:
    world.at["files_written"] = lambda: world.table.commit(remove("c")) and None
    outcome = world.rewrite()
    assert (ends(outcome), outcome.conflicts) == ([LANDED, STALE, LANDED], 1)
    assert world.table.deleted == ["out-1"]


def test_nothing_written_is_nothing_committed_and_the_fence_is_not_asked(world: World) -> None:
    world.table.commit(*(remove(path) for path in "ace"))
    world.may_commit = _lost
    outcome = world.rewrite()
    assert (outcome.version, ends(outcome), world.points) == (None, [STALE] * 3, [])


def test_asked_to_stop_the_groups_not_begun_are_skipped_and_the_rest_lands(world: World) -> None:
    world.should_stop = lambda: world.table.counts >= 1
    assert ends(world.rewrite()) == [LANDED, SKIPPED, SKIPPED]
    assert world.table.live() == {"c", "d", "e", "f", "x", "out-0"}


def _lost() -> None:
    raise LeaseLost("the job is with another actor")


def test_without_the_fences_word_nothing_is_committed_and_no_file_stays(world: World) -> None:
    world.may_commit = _lost
    with pytest.raises(LeaseLost):
        world.rewrite()
    assert world.table.version == 0
    assert world.table.deleted == ["out-0", "out-1", "out-2"]


def test_a_failure_between_writing_and_committing_leaves_no_file(world: World) -> None:
    world.at["files_written"] = _lost
    with pytest.raises(LeaseLost):
        world.rewrite()
    assert world.table.deleted == ["out-0", "out-1", "out-2"]


def test_rows_that_differ_in_one_group_stop_all_of_them(world: World) -> None:
    world.table.rows["c"] = 9
    with pytest.raises(Corrupt):
        world.rewrite()
    assert world.table.version == 0
    assert sorted(world.table.deleted) == ["out-0", "out-1"]


def test_a_file_that_vanished_with_its_group_is_no_failure(world: World) -> None:
    def take(_path: str = "c") -> Exception:
        world.table.commit(remove("c"))
        return JavaError("FileNotFoundException")

    class Taken(dict[str, Exception]):
        def __getitem__(self, path: str) -> Exception:
            return take()

    world.table.fails_writing = Taken(c=JavaError("never"))
    assert ends(world.rewrite()) == [LANDED, STALE, SKIPPED]


def test_what_is_remembered_spares_the_listing(world: World) -> None:
    read_partition(world.table.log(), world.groups[0].partition, world.memory)
    world.table.commit(add("more"))
    world.table.listings = 0
    assert ends(world.rewrite()) == [LANDED] * 3
    assert world.table.listings == 0


def test_a_request_without_job_and_token_is_refused_before_anything_is_written(world: World) -> None:
    with pytest.raises(InvalidInput, match="names no job"):
        world.rewrite("{}")
    assert world.table.counts == 0


def test_a_table_that_became_unsafe_is_refused_before_anything_is_written(world: World) -> None:
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": ["clustering"]}
    world.table.commit({"protocol": PROTOCOL | features})
    with pytest.raises(Unsupported, match="clustering"):
        world.rewrite()
    assert world.table.counts == 0


def test_another_table_at_the_same_place_is_not_touched(world: World) -> None:
    with pytest.raises(OtherTable, match="created again"):
        world.rewrite(table_uuid="t-2")
    assert world.table.counts == 0
    assert ends(world.rewrite(table_uuid="t-1")) == [LANDED] * 3


def test_a_write_that_failed_leaves_no_part_of_a_file(world: World) -> None:
    world.table.fails_writing = {"c": JavaError("SparkException", message="Connection reset")}
    with pytest.raises(RetryableError, match="Connection reset"):
        world.rewrite()
    assert world.table.disk == {}


def test_on_a_full_disk_what_is_written_lands_and_no_part_of_a_file_stays(world: World) -> None:
    world.table.fails_writing = {"c": JavaError("SparkException", message="No space left on device")}
    outcome = world.rewrite()
    failed = [group for group in outcome.groups if group.status is GroupStatus.FAILED]
    assert [str(group.error).count("No space left on device") for group in failed] == [1]
    landed = {file.path for group in outcome.groups for file in group.outputs}
    assert landed == set(world.table.disk)


@pytest.mark.parametrize(("free", "is_written"), [(None, True), (100 * MIB + 750, True), (100 * MIB + 749, False)])
def test_a_disk_without_room_for_the_outputs_and_the_reserve_is_not_written_to(
    world: World, free: int | None, is_written: bool
) -> None:
    """Six inputs of 100 bytes may take 750."""
    world.table.free = free
    world.settings = TransactionSettings(write_threads=1, reserved_disk_bytes=100 * MIB)
    if is_written:
        assert ends(world.rewrite()) == [LANDED] * 3
    else:
        with pytest.raises(RetryableError, match="nothing was written"):
            world.rewrite()
        assert world.table.counts == 0


@pytest.mark.parametrize("fails", [False, True])
def test_the_session_is_given_back_without_the_attempts_prefix(world: World, fails: bool) -> None:
    seen: list[dict[str, str]] = []
    world.at["files_written"] = lambda: seen.append(dict(world.table.conf))
    if fails:
        world.may_commit = _lost
        with pytest.raises(LeaseLost):
            world.rewrite()
    else:
        world.rewrite()
    assert [list(conf) for conf in seen] == [[NAME_PREFIX]]
    assert world.table.conf == {}


def test_groups_that_were_all_taken_before_the_commit_are_stale_and_nothing_is_committed(world: World) -> None:
    world.at[FILES_WRITTEN] = lambda: world.table.commit(remove("a"), remove("c"), remove("e"))
    before = world.table.version
    outcome = world.rewrite()
    assert (ends(outcome), outcome.version) == ([STALE] * 3, None)
    assert world.points == [FILES_WRITTEN]
    assert world.table.version == before + 1, "only the other writer's commit"


def test_copying_can_be_stopped_once(world: World) -> None:
    """The self-test does so where copies do not work; nothing was copied before the classes were used."""
    executor = TransactionExecutor(
        FakeScala(world.table), FakeSessions(world.table), world.memory, SnapshotCache(), world.settings
    )
    executor._classes._are_usable = True
    assert [executor.stop_copying(), executor.stop_copying()] == [True, False]
