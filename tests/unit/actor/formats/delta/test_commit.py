"""A commit lands, is refused, or is not known: what is ours is deleted only where no commit can refer to it."""

import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.commit import CommitResult, Committer
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.write import GroupWriter, WrittenGroup
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_rules import CopyRule
from actor.worker import RunControl
from shared.errors import Conflict, LeaseLost, RetryableError
from shared.formats.delta_orphans import MIN_ORPHAN_AGE_MS
from shared.table import CommitOrigin, FileKey
from tests.support.fake_delta import FakeScala, FakeTable, live_group
from tests.support.fake_delta_table import METADATA, PREFIX, Failure, JavaError, add, remove, vector

ORIGIN = CommitOrigin("j-1", 7)
MARK = json.dumps({"lakewright": {"job": "j-1", "token": 7}})
LOST_ANSWER = JavaError("Py4JNetworkError", "SocketTimeoutException", message="no answer")


class World:
    """A table with two written groups, {a, b} and {c}, and a committer; `asked` counts the questions to the fence."""

    def __init__(self) -> None:
        self.table = FakeTable(user_metadata=MARK)
        self.table.commit(*map(add, "abcd"))
        self.log = self.table.log()
        scala = FakeScala(self.table)
        txn = self.log.transaction()
        shape = self.log.shape(txn.snapshot())
        self.paths = OutputPaths(scala, self.log, txn, shape, PREFIX)
        tasks = ParquetTasks(scala, self.log, self.paths, ParquetClasses())
        writer = GroupWriter(scala, self.log, txn, self.paths, tasks, CopyRule(is_allowed=False))
        self.written = [writer.write(live_group(self.table, "a", "b")), writer.write(live_group(self.table, "c"))]
        self.outputs = [output.file.path for group in self.written for output in group.outputs]
        self.asked = 0
        self.fence: Callable[[], None] = lambda: None
        self.committer = Committer(scala, self.log, shape, ORIGIN, RunControl(self._ask, lambda: False, lambda _: None))

    def _ask(self) -> None:
        self.asked += 1
        self.fence()

    def commit(self, attempts: int = 3) -> CommitResult:
        return self.committer.commit(self.written, attempts=attempts)

    def once(self, act: Callable[[], None]) -> None:
        """Let others act just before the next commit, and never again."""

        def others() -> None:
            self.table.others = lambda: None
            act()

        self.table.others = others


@pytest.fixture
def world() -> World:
    return World()


def names(groups: tuple[WrittenGroup, ...]) -> list[list[str]]:
    return [[one.path for one in group.live.group.files] for group in groups]


def test_what_was_written_replaces_its_inputs_in_one_commit_that_changes_no_data(world: World) -> None:
    landing = world.commit()
    assert (landing.version, names(landing.committed), landing.conflicted, landing.conflicts) == (
        1,
        [["a", "b"], ["c"]],
        (),
        0,
    )
    assert world.table.live() == {"d", *world.outputs}
    bodies = [*world.table.bodies("add", after=0), *world.table.bodies("remove", after=0)]
    assert [body["dataChange"] for body in bodies] == [False] * 5
    assert world.table.deleted == []


def test_the_inputs_are_removed_now_so_that_vacuum_leaves_them_to_readers_for_the_whole_retention(world: World) -> None:
    before_ms = time.time_ns() // 1_000_000
    world.commit()
    after_ms = time.time_ns() // 1_000_000
    removals = world.table.bodies("remove", after=0)
    assert [body["path"] for body in removals] == ["a", "b", "c"]
    assert all(before_ms <= body["deletionTimestamp"] <= after_ms for body in removals)


def test_delta_gets_the_files_that_the_outputs_were_made_from(world: World) -> None:
    world.commit()
    assert world.table.attempts[0].read == ["a", "b", "c"]


def test_the_commits_metrics_are_those_of_what_landed(world: World) -> None:
    world.commit()
    assert (world.table.metrics["numRemovedFiles"], world.table.metrics["numAddedFiles"]) == (3, 2)


def test_the_fence_is_asked_before_every_attempt(world: World) -> None:
    world.table.fails = [Failure(JavaError("X", message="DELTA_MAX_COMMIT_RETRIES_EXCEEDED"))] * 2
    assert world.commit().conflicts == 2
    assert world.asked == 3


def test_a_lost_lease_commits_nothing_and_deletes_the_outputs(world: World) -> None:
    def lost() -> None:
        raise LeaseLost("the job is with another actor")

    world.fence = lost
    with pytest.raises(LeaseLost):
        world.commit()
    assert world.table.version == 0
    assert world.table.deleted == world.outputs


@pytest.mark.parametrize("touch", [remove("b"), add("b", deletionVector=vector(1))])
def test_a_group_that_others_took_before_the_attempt_is_set_aside_and_the_rest_lands(
    world: World, touch: dict[str, object]
) -> None:
    world.table.commit(touch)
    landing = world.commit()
    assert (landing.version, names(landing.committed), landing.conflicts) == (2, [["c"]], 1)
    assert landing.conflicted == (world.written[0].live.group,)
    assert world.table.deleted == world.outputs[:1]
    assert "b" not in {body["path"] for body in world.table.bodies("remove", after=1)}


def test_a_group_that_others_took_during_the_attempt_is_set_aside_at_the_next_and_is_one_conflict(world: World) -> None:
    world.once(lambda: world.table.commit(remove("a")) and None)
    landing = world.commit()
    assert (landing.version, names(landing.committed), landing.conflicts) == (2, [["c"]], 1)
    assert world.table.live() == {"b", "d", world.outputs[1]}


def test_if_others_took_every_group_nothing_is_committed_and_every_output_is_deleted(world: World) -> None:
    world.table.commit(remove("a"), remove("c"))
    landing = world.commit()
    assert (landing.version, landing.committed, len(landing.conflicted)) == (None, (), 2)
    assert world.table.version == 1
    assert world.table.deleted == world.outputs
    assert world.asked == 0, "without anything to commit no one is asked"


def test_appends_of_others_do_not_get_in_the_way(world: World) -> None:
    world.once(lambda: world.table.commit(add("e")) and None)
    assert world.commit().version == 2


def test_a_change_of_the_layout_refuses_the_files_and_deletes_them(world: World) -> None:
    world.once(lambda: world.table.commit({"metaData": METADATA | {"partitionColumns": []}}) and None)
    with pytest.raises(Conflict) as caught:
        world.commit()
    assert caught.value.kind == "MetadataChangedException"
    assert world.table.version == 1
    assert world.table.deleted == world.outputs


def test_a_change_of_foreign_properties_alone_lets_the_files_land_at_the_next_attempt(world: World) -> None:
    world.once(lambda: world.table.commit({"metaData": METADATA | {"configuration": {"owner": "x"}}}) and None)
    assert world.commit().version == 2


def test_a_refused_commit_deletes_the_outputs(world: World) -> None:
    world.table.fails = [Failure(JavaError("ConcurrentAppendException"))]
    with pytest.raises(Conflict) as caught:
        world.commit()
    assert caught.value.kind == "ConcurrentAppendException"
    assert world.table.deleted == world.outputs


def test_after_the_last_attempt_the_outputs_are_deleted_and_the_conflict_is_raised(world: World) -> None:
    world.table.fails = [Failure(JavaError("X", message="DELTA_MAX_COMMIT_RETRIES_EXCEEDED"))] * 3
    with pytest.raises(Conflict):
        world.commit(attempts=3)
    assert len(world.table.attempts) == 3
    assert world.table.deleted == world.outputs


def test_no_attempt_is_a_conflict_and_deletes_the_outputs(world: World) -> None:
    with pytest.raises(Conflict, match="no commit"):
        world.commit(attempts=0)
    assert world.table.deleted == world.outputs


def test_after_an_unknown_outcome_nothing_is_deleted_and_nothing_tried_again(world: World) -> None:
    world.table.fails = [Failure(LOST_ANSWER)]
    with pytest.raises(RetryableError, match=r"unknown.*does not show job j-1, token 7.*left to VACUUM"):
        world.commit()
    assert world.table.deleted == []
    assert len(world.table.attempts) == 1


def test_a_commit_that_landed_although_its_answer_was_lost_is_found_and_not_made_again(world: World) -> None:
    world.table.fails = [Failure(LOST_ANSWER, written=True)]
    landing = world.commit()
    assert (landing.version, len(landing.committed)) == (1, 2)
    assert len(world.table.attempts) == 1
    assert world.table.deleted == []


def test_a_conflict_with_our_own_commit_that_landed_unseen_is_a_success(world: World) -> None:
    """Delta writes, loses the answer, tries again by itself and then meets its own commit as a conflict."""
    world.table.fails = [Failure(JavaError("ConcurrentDeleteDeleteException"), written=True)]
    landing = world.commit()
    assert (landing.version, landing.conflicts) == (1, 0)
    assert world.table.deleted == []


def test_a_commit_that_landed_before_ours_was_tried_is_not_ours(world: World) -> None:
    """Found is only what came after the version that the attempt was made on: an earlier rewrite has the same mark."""
    world.table.commit({"commitInfo": {"userMetadata": MARK}})
    world.table.fails = [Failure(LOST_ANSWER)]
    with pytest.raises(RetryableError, match="does not show job"):
        world.commit()


@pytest.mark.parametrize(
    "actions",
    [
        [remove("a"), remove("b"), remove("c"), add("another-output")],
        [remove("a"), add("out-0"), add("out-1")],
        [],
    ],
)
def test_another_commit_of_the_same_job_and_token_is_not_taken_for_this_one(
    world: World, actions: list[dict[str, object]]
) -> None:
    world.once(lambda: world.table.commit({"commitInfo": {"userMetadata": MARK}}, *actions) and None)
    world.table.fails = [Failure(LOST_ANSWER)]
    if actions:  # Delta would refuse: the inputs are gone. The answer to that is lost, too.
        world.table.attempts = _Refusing(world.table)
    with pytest.raises(RetryableError, match="does not show job"):
        world.commit()
    assert world.table.deleted == []


class _Refusing(list):
    """Makes the next transaction forget what it read and removes, so that the fake's failure comes before conflicts."""

    def __init__(self, table: FakeTable) -> None:
        super().__init__()
        self._table = table

    def append(self, transaction: object) -> None:
        super().append(transaction)
        self._table.others()
        self._table.others = lambda: None
        raise self._table.fails.pop(0).error


def test_a_log_that_cannot_be_read_after_a_failure_leaves_everything_where_it_is(world: World) -> None:
    def break_log() -> None:
        world.table.unreadable = JavaError("IOException")

    world.once(lambda: world.table.commit({"commitInfo": {}}) and break_log())
    world.table.fails = [Failure(JavaError("ConcurrentAppendException"))]
    with pytest.raises(RetryableError, match="its log cannot be read"):
        world.commit()
    assert world.table.deleted == []


def test_an_attempt_that_cannot_begin_deletes_the_outputs_because_none_is_open(world: World) -> None:
    world.log.transaction = _away  # type: ignore[method-assign]
    with pytest.raises(JavaError):
        world.commit()
    assert world.table.deleted == world.outputs


def _away() -> object:
    raise JavaError("IOException")


def test_what_cannot_be_deleted_does_not_hide_why_it_was_to_be(world: World) -> None:
    world.table.fails = [Failure(JavaError("ConcurrentAppendException"))]
    world.log.delete = lambda _keys: _away()  # type: ignore[method-assign]
    with pytest.raises(Conflict):
        world.commit()


def test_nothing_to_discard_touches_nothing(world: World) -> None:
    world.committer.discard([])
    assert world.table.deleted == []


@pytest.mark.parametrize("size", [None, 99, 101])
def test_an_output_that_is_gone_or_cut_before_the_commit_stops_it(world: World, size: int | None) -> None:
    """Someone runs VACUUM without retention: the inputs must not be replaced by files that are not there."""
    del world.table.disk[world.outputs[0]]
    if size is not None:
        world.table.disk[world.outputs[0]] = size
    with pytest.raises(RetryableError, match=f"1 of 2 files .*{world.outputs[0]} \\({size} of 100 bytes\\)"):
        world.commit()
    assert world.table.version == 0
    assert world.table.deleted == world.outputs
    assert world.asked == 0, "the lease is asked last, so that it is fresh when the commit begins"


def test_outputs_are_checked_before_every_attempt(world: World) -> None:
    world.table.fails = [Failure(JavaError("X", message="DELTA_MAX_COMMIT_RETRIES_EXCEEDED"))]
    world.once(lambda: world.table.disk.clear())
    with pytest.raises(RetryableError, match="2 of 2 files"):
        world.commit()
    assert len(world.table.attempts) == 1


def test_a_sweep_deletes_what_the_attempt_wrote_besides_its_outputs_and_nothing_of_others(world: World) -> None:
    prefix = world.paths.prefix
    world.table.disk |= {f"p=a/{prefix}left": 1, f"p=a/{prefix}kept": 1, "p=a/lwothers-left": 1, f"p=b/{prefix}x": 1}
    kept = replace(world.written[0], outputs=(_named(world.written[0], f"p=a/{prefix}kept"),))
    world.committer.sweep(world.paths, [kept])
    assert world.table.deleted == [f"p=a/{prefix}left"]


def test_a_sweep_finds_the_files_in_folders_whose_names_are_escaped() -> None:
    table = FakeTable(user_metadata=MARK)
    table.commit(add("x", p="a b"))
    log, scala = table.log(), FakeScala(table)
    txn = log.transaction()
    paths = OutputPaths(scala, log, txn, log.shape(txn.snapshot()), PREFIX)
    paths.transaction_for({"p": "a b"}, ["x"])
    table.disk |= {f"p=a%20b/{name}": 1 for name in (f"Qx/{paths.prefix}left", f"Qx/{paths.prefix}kept", "Qx/lwothers")}
    assert paths.leftovers({FileKey(f"p=a%2520b/Qx/{paths.prefix}kept")}) == [
        FileKey(f"p=a%2520b/Qx/{paths.prefix}left")
    ]


def _named(group: WrittenGroup, path: str) -> LoggedFile:
    (output,) = group.outputs
    return replace(output, file=replace(output.file, path=path))


def test_outputs_that_a_vacuum_could_take_for_nobodys_are_not_committed(world: World) -> None:
    assert world.committer.max_output_age_s * 2_000 == MIN_ORPHAN_AGE_MS
    world.committer.max_output_age_s = -1.0
    with pytest.raises(RetryableError, match="a vacuum deletes files that no commit names"):
        world.commit()
    assert world.table.live() == {"a", "b", "c", "d"}
    assert world.asked == 0
