"""What every engine promises of a rewrite, on tables of each format: rows stay, and no file is lost or left.

What the core alone decides has its laws on a table in memory (`tests/unit/actor/rewrite`).
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from actor.attempts import Attempts
from actor.outcomes import live_after
from actor.ports import GroupStatus, RewriteOutcome
from actor.proofread.model import Reading
from shared.errors import Conflict, InvalidInput, LeaseLost, OtherTable, RefusedFiles, RetryableError
from shared.partitions import WHOLE_TABLE
from tests.support.long_suites import beyond
from tests.support.steering import Steering, at_commit, when_written
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.contract.engine.worlds import EngineWorld

pytestmark = pytest.mark.spark

LANDED, STALE, SKIPPED, REFUSED = (
    GroupStatus.COMMITTED,
    GroupStatus.CONFLICTED,
    GroupStatus.SKIPPED,
    GroupStatus.REFUSED,
)


@pytest.fixture(params=["delta", "iceberg"])
def world(request: pytest.FixtureRequest) -> "EngineWorld":
    """A table of eight files."""
    pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")
    from tests.contract.engine.worlds import DeltaWorld, IcebergWorld

    if request.param == "delta":
        return DeltaWorld(request.getfixturevalue("lab"))
    return IcebergWorld(request.getfixturevalue("ice"))


@dataclass(frozen=True)
class Before:
    """What a table was like."""

    rows: list[object]
    named: set[str]

    @classmethod
    def of(cls, world: "EngineWorld") -> "Before":
        return cls(world.rows(), world.named())

    def require_same(self, world: "EngineWorld") -> None:
        """Nothing was committed by us, and no file was left."""
        assert (world.rows(), world.named(), world.orphans()) == (self.rows, self.named, [])


def ends(outcome: RewriteOutcome) -> list[GroupStatus]:
    return [end.status for end in outcome.groups]


MOMENTS = pytest.mark.parametrize("moment", [at_commit, when_written])


def raising(error: Exception) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


def test_exactly_the_planned_files_go_and_one_comes_for_each_group(world: "EngineWorld") -> None:
    rows, files, groups, control = world.rows(), world.files(), world.groups(3), Steering()
    outcome = world.rewrite(groups, control)
    assert [end.group for end in outcome.groups] == groups
    assert ends(outcome) == [LANDED] * 3
    live = {file.path for file in world.files()}
    planned = {file.path for group in groups for file in group.files}
    assert {file.path for file in files} - live == planned
    assert live - {file.path for file in files} == {file.path for end in outcome.groups for file in end.outputs}
    assert len(live) == 8 - 6 + 3
    assert (world.rows(), world.orphans()) == (rows, [])
    assert control.calls == ["files_written", "may_commit", "committed"]


def test_what_a_commit_left_is_known_unless_others_committed_since_the_read(world: "EngineWorld") -> None:
    read = world.engine.read_partition(world.location, WHOLE_TABLE)
    made = world.rewrite(world.groups(2))
    assert made.follows == read.version
    left = live_after(read, made)
    assert left is not None
    again = world.engine.read_partition(world.location, WHOLE_TABLE)
    assert left == replace(again, version=left.version, files=left.files)
    assert again.version >= left.version, "metadata of Iceberg may be written some milliseconds after their snapshot"
    assert {(file.path, file.size_bytes, file.rows, file.dv_id) for file in left.files} == {
        (file.path, file.size_bytes, file.rows, file.dv_id) for file in world.files()
    }
    late = world.rewrite(world.groups(1), when_written(world.append))
    assert late.follows not in (None, left.version)
    assert live_after(left, late) is None


def test_metadata_that_others_changed_since_the_read_are_read_again(world: "EngineWorld") -> None:
    read = world.engine.read_partition(world.location, WHOLE_TABLE)
    outcome = world.rewrite(world.groups(1), when_written(world.set_property))
    assert (ends(outcome), live_after(read, outcome)) == ([LANDED], None)


def test_files_that_only_their_layout_keeps_from_being_copied_are_merged_by_column_and_compared(
    world: "EngineWorld",
) -> None:
    rows = world.rows()
    outcome = world.rewrite(world.groups(2))
    assert [(end.by_column, end.encoded_because) for end in outcome.groups] == [(True, "small_row_groups")] * 2
    assert {end.proof.reading for end in outcome.groups if end.proof} == {Reading.ROWS}
    copied = world.rewrite(world.groups(1), full_bytes=1 << 30)
    assert (copied.groups[0].is_copied, copied.groups[0].by_column) == (True, False)
    assert (world.rows(), world.orphans()) == (rows, [])


@MOMENTS
def test_rows_that_are_appended_meanwhile_stay_and_are_no_conflict(
    world: "EngineWorld", moment: Callable[[Callable[[], object]], Steering]
) -> None:
    rows = world.rows()
    outcome = world.rewrite(world.groups(1), moment(world.append))
    assert (ends(outcome), outcome.conflicts) == ([LANDED], 0)
    assert len(world.rows()) == len(rows) + 20
    assert {str(row) for row in rows} < {str(row) for row in world.rows()}


@MOMENTS
def test_of_three_groups_the_two_that_are_still_live_land_with_the_files_already_written(
    world: "EngineWorld", moment: Callable[[Callable[[], object]], Steering]
) -> None:
    groups = world.groups(3)
    rows: list[object] = []

    def theirs() -> None:
        world.take(groups[0].files[1].path)
        rows.extend(world.rows())

    outcome = world.rewrite(groups, moment(theirs))
    assert (ends(outcome), outcome.conflicts) == ([STALE, LANDED, LANDED], 1)
    assert outcome.groups[0].outputs == ()
    assert (world.rows(), world.orphans()) == (rows, [])


@pytest.mark.parametrize("moment", beyond(1, [at_commit, when_written]))
def test_where_every_group_is_taken_nothing_is_committed_and_no_file_stays(
    world: "EngineWorld", moment: Callable[[Callable[[], object]], Steering]
) -> None:
    group, control = world.groups(1)[0], moment(lambda: world.take(group.files[0].path))
    outcome = world.rewrite([group], control)
    assert (outcome.version, ends(outcome), outcome.conflicts) == (None, [STALE], 1)
    assert "committed" not in control.calls
    assert world.orphans() == []


def test_of_two_rewrites_of_the_same_files_one_lands(world: "EngineWorld") -> None:
    rows, groups = world.rows(), world.groups(1)
    first: list[RewriteOutcome] = []
    late = world.rewrite(groups, at_commit(lambda: first.append(world.rewrite(groups))))
    assert (ends(first[0]), ends(late), late.version) == ([LANDED], [STALE], None)
    assert (world.rows(), world.orphans()) == (rows, [])


def test_a_stale_plan_is_refused_before_any_work(world: "EngineWorld") -> None:
    groups, control = world.groups(1), Steering()
    world.take(groups[0].files[1].path)
    on_disk = world.on_disk()
    outcome = world.rewrite(groups, control)
    assert (outcome.version, ends(outcome), outcome.conflicts, control.calls) == (None, [STALE], 0, [])
    assert world.on_disk() == on_disk


@pytest.mark.parametrize("moment", beyond(1, [at_commit, when_written]))
def test_a_property_of_others_does_not_cost_the_rewrite(
    world: "EngineWorld", moment: Callable[[Callable[[], object]], Steering]
) -> None:
    rows = world.rows()
    assert ends(world.rewrite(world.groups(1), moment(world.set_property))) == [LANDED]
    assert (world.rows(), world.orphans()) == (rows, [])


def test_attempts_are_bounded_and_the_last_refusal_is_reported(
    world: "EngineWorld", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others take one more group before each attempt; what is left when the time is over is given back."""
    again = iter([True] * 5)
    monkeypatch.setattr(Attempts, "again", lambda _: next(again, False))
    world.append(6)
    groups, control = world.groups(7), Steering()
    control.before_commit = iter([lambda group=group: world.take(group.files[0].path) for group in groups])
    with pytest.raises(Conflict):
        world.rewrite(groups, control)
    assert control.calls == ["files_written", *["may_commit"] * 5]
    assert world.orphans() == []


@pytest.mark.parametrize("made", [True, False])
def test_a_commit_without_an_answer_is_searched_and_never_made_twice(
    world: "EngineWorld", made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, groups, control = world.rows(), world.groups(1), Steering()
    calls = world.lose_answer(monkeypatch, made=made)
    if made:
        outcome = world.rewrite(groups, control)
        assert ends(outcome) == [LANDED]
        assert control.calls == ["files_written", "may_commit", "committed"]
        found = world.engine.find_commit(world.location, job="job", token=1, since_version=0)
        assert (outcome.version, world.orphans()) == (found, [])
    else:
        with pytest.raises(RetryableError, match=r"outcome of a commit to .* is unknown .*the answer was lost"):
            world.rewrite(groups, control)
        assert len(world.orphans()) == 1, "it might be referred to"
    assert (calls, world.rows()) == ([1], rows)


def test_a_store_that_is_away_when_the_commit_is_to_begin_leaves_no_file(
    world: "EngineWorld", monkeypatch: pytest.MonkeyPatch
) -> None:
    before, control = Before.of(world), Steering(at={"files_written": lambda: world.fail_to_begin(monkeypatch)})
    groups = world.groups(1)
    with pytest.raises(RetryableError, match="the store is away"):
        world.rewrite(groups, control)
    monkeypatch.undo()
    assert control.calls == ["files_written"]
    before.require_same(world)


@pytest.mark.parametrize("moment", beyond(1, [at_commit, when_written]))
def test_a_lost_lease_commits_nothing_and_leaves_no_file(
    world: "EngineWorld", moment: Callable[[Callable[[], object]], Steering]
) -> None:
    before = Before.of(world)
    with pytest.raises(LeaseLost):
        world.rewrite(world.groups(2), moment(raising(LeaseLost("gone"))))
    before.require_same(world)


def test_asked_to_stop_it_commits_what_is_written_and_starts_nothing_more(world: "EngineWorld") -> None:
    rows, asked = world.rows(), iter([False, True, True])
    outcome = world.rewrite(world.groups(3), Steering(stop=lambda: next(asked)))
    assert sorted(ends(outcome)) == [LANDED, SKIPPED, SKIPPED]
    assert (world.rows(), world.orphans()) == (rows, [])


def test_asked_to_stop_before_it_began_it_does_nothing(world: "EngineWorld") -> None:
    control = Steering(stop=lambda: True)
    outcome = world.rewrite(world.groups(1), control)
    assert (outcome.version, ends(outcome), control.calls) == (None, [SKIPPED], [])


@pytest.mark.parametrize("cancelled", ["job", "another"])
def test_a_cancelled_rewrite_fails_retryably_and_leaves_the_table_alone_and_no_other(
    world: "EngineWorld", cancelled: str
) -> None:
    rows, named, groups = world.rows(), world.named(), world.groups(4)
    with ThreadPoolExecutor(1) as pool:
        rewrite = pool.submit(lambda: world.rewrite(groups, may_copy=False))

        def ended() -> bool:
            world.engine.cancel(cancelled)  # Again and again: it may not have begun yet.
            return rewrite.done()

        until("the rewrite has ended", ended, seconds=120)
    if cancelled == "another":
        assert ends(rewrite.result()) == [LANDED] * 4
    else:
        with pytest.raises(RetryableError):
            rewrite.result()
        assert world.named() == named
    assert world.rows() == rows


def remove(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.parametrize("harm", [remove, cut])
def test_outputs_that_are_gone_or_cut_before_the_commit_are_not_committed(
    world: "EngineWorld", harm: Callable[[Path], None]
) -> None:
    before, groups = Before.of(world), world.groups(2)

    def cleaner() -> None:
        new = world.orphans()
        assert len(new) == 2
        harm(new[0])

    with pytest.raises(RetryableError, match=r"1 of 2 files written .* are missing or truncated before their commit"):
        world.rewrite(groups, when_written(cleaner))
    before.require_same(world)
    assert ends(world.rewrite(groups)) == [LANDED] * 2


def test_a_damaged_input_is_refused_with_its_group_and_the_others_land(world: "EngineWorld") -> None:
    groups = world.groups(2)
    world.damage(groups[0].files[1])
    outcome = world.rewrite(groups)
    assert ends(outcome) == [REFUSED, LANDED]
    assert isinstance(outcome.groups[0].error, RefusedFiles)
    assert {file.path for file in groups[0].files} <= {file.path for file in world.files()}
    assert world.orphans() == []


def test_a_group_whose_files_are_removed_and_vacuumed_under_way_is_stale_and_the_others_land(
    world: "EngineWorld",
) -> None:
    groups, lock, asked = world.groups(2), threading.Lock(), list[int]()

    def stop() -> bool:
        """Asked before each group is written: others act just before the first."""
        with lock:
            if not asked:
                world.take(groups[0].files[0].path)
                world.file_of(groups[0].files[0]).unlink()
            asked.append(1)
        return False

    assert ends(world.rewrite(groups, Steering(stop=stop))) == [STALE, LANDED]
    assert world.orphans() == []


def test_an_input_that_is_missing_in_the_store_fails_retryably_and_is_named(world: "EngineWorld") -> None:
    group, named = world.groups(1)[0], world.named()
    missing = world.file_of(group.files[0])
    missing.unlink()
    with pytest.raises(RetryableError, match=missing.name):
        world.rewrite([group])
    assert (world.named(), world.orphans()) == (named, [])


def test_commits_are_found_by_job_and_token_above_a_version(world: "EngineWorld") -> None:
    first = world.rewrite(world.groups(1), token=1).version
    second = world.rewrite(world.groups(1), token=2).version
    assert first is not None
    assert second is not None

    def find(token: int, since: int, job: str = "job") -> int | None:
        return world.engine.find_commit(world.location, job=job, token=token, since_version=since)

    assert find(1, 0) == find(1, first - 1) == first
    assert find(1, first) is None
    assert find(2, 0) == find(2, first) == second
    assert find(3, 0) is find(1, 0, "other") is find(2, second + 100) is None


def test_another_table_at_the_same_place_is_not_touched(world: "EngineWorld") -> None:
    before, groups = Before.of(world), world.groups(1)
    with pytest.raises(OtherTable, match="created again"):
        world.rewrite(groups, table_uuid="of-another-one")
    with pytest.raises(OtherTable) as caught:
        world.engine.read_partition(world.location, WHOLE_TABLE, table_uuid="of-another-one")
    before.require_same(world)
    identity = world.engine.read_partition(world.location, WHOLE_TABLE).metadata.table_uuid
    assert identity in str(caught.value)
    assert ends(world.rewrite(groups, table_uuid=identity)) == [LANDED]


@pytest.mark.parametrize("user_metadata", beyond(1, ["{}", "", '{"lakewright": {"job": "j"}}']))
def test_a_request_without_job_and_token_is_refused(world: "EngineWorld", user_metadata: str) -> None:
    with pytest.raises(InvalidInput, match="job and token"):
        world.rewrite(world.groups(1), user_metadata=user_metadata)
