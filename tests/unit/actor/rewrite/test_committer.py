"""A commit lands, is refused, or is not known: what is ours is deleted only where no commit can refer to it."""

from collections.abc import Callable

import pytest

from actor.rewrite.commit import CommitResult, Committer
from actor.rewrite.model import Verdict
from actor.worker import RunControl
from shared.errors import Conflict, LakewrightError, LeaseLost, OtherTable, PermanentError, RetryableError
from tests.support.memory_rewrite import Failing, Fault, MemoryStaged, MemoryTable

OUTPUTS = ["out-0", "out-1"]
BUSY = Failing(Fault(Verdict.BUSY))


class World:
    """A table with two written groups, {a, b} and {c}, and a committer."""

    def __init__(self) -> None:
        self.table = MemoryTable()
        self.table.add("a", "b", "c", "d")
        groups = self.table.resolve([self.table.group("a", "b"), self.table.group("c")])
        self.written = list(map(self.table.write, groups))
        self.now_s = 0.0
        self.lease: Callable[[], None] = lambda: None
        control = RunControl(self._ask, lambda: False, lambda _: None)
        self.pauses: list[float] = []
        self.committer: Committer[MemoryStaged] = Committer(
            self.table, control, clock_s=lambda: self.now_s, pause=self._pause
        )

    def _ask(self) -> None:
        self.table.calls.append("lease")
        self.lease()

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def commit(self, within_s: float = 10.0) -> CommitResult[MemoryStaged]:
        return self.committer.commit(self.written, within_s=within_s)

    def once(self, act: Callable[[], object]) -> None:
        """Let others act just before the next commit, and never again."""

        def others() -> None:
            self.table.others = lambda: None
            act()

        self.table.others = others


@pytest.fixture
def world() -> World:
    return World()


def test_what_was_written_replaces_its_inputs_in_one_commit(world: World) -> None:
    landing = world.commit()
    assert (landing.version, landing.committed, landing.conflicts) == (1, tuple(world.written), 0)
    assert world.table.live.keys() == {"d", *OUTPUTS}
    assert world.table.deleted == []


def test_a_group_of_which_others_deleted_rows_lands_as_it_was_made_good_for_its_last_attempt(
    world: World,
) -> None:
    """What was written for an earlier attempt alone is deleted, and the next begins with what was written at first."""
    world.table.make_good = lambda: f"vector-{world.table.attempts}"
    world.table.fails = [BUSY]
    landing = world.commit()
    assert [one.paths for one in landing.committed] == [("out-0", "vector-1"), ("out-1",)]
    assert world.table.deleted == ["vector-0"]
    assert world.table.orphans() == set()


@pytest.mark.parametrize(
    ("verdict", "left"), [(Verdict.REFUSED, set()), (Verdict.UNKNOWN, {*OUTPUTS, "vector-0"}), (Verdict.BUSY, set())]
)
def test_what_was_written_for_an_attempt_alone_stays_only_while_it_may_have_been_made(
    world: World, verdict: Verdict, left: set[str]
) -> None:
    world.table.make_good = lambda: f"vector-{world.table.attempts}"
    world.table.fails = [Failing(Fault(verdict))]
    with pytest.raises(LakewrightError):
        world.commit(within_s=0)
    assert world.table.disk.keys() == left


def test_what_was_written_for_an_attempt_must_be_there_before_the_next(world: World) -> None:
    """It may be taken again, and lies there for as long as outputs do."""
    world.table.make_good, world.table.fails = lambda: "vector", [BUSY]
    world.once(lambda: world.table.disk.pop("vector"))
    with pytest.raises(RetryableError, match=r"1 of 3 files .*vector"):
        world.commit()
    assert world.table.disk == {}


def test_what_was_written_for_an_attempt_stays_for_one_that_takes_it_again(world: World) -> None:
    world.table.make_good, world.table.fails = lambda: "vector", [BUSY]
    assert [one.paths for one in world.commit().committed] == [("out-0", "vector"), ("out-1",)]
    assert world.table.deleted == []


def test_a_lost_lease_deletes_what_was_written_for_the_attempt_alone(world: World) -> None:
    def lost() -> None:
        raise LeaseLost("the job is with another actor")

    world.table.make_good, world.lease = lambda: "vector", lost
    with pytest.raises(LeaseLost):
        world.commit()
    assert world.table.disk == {}


def test_the_lease_is_asked_last_before_every_attempt_so_that_it_is_fresh(world: World) -> None:
    """What takes long does not lie between the look at the newest version and the commit."""
    world.table.fails = [BUSY, BUSY]
    assert world.commit().conflicts == 2
    attempt = ["sizes", "begin", "lease", "commit"]
    assert world.table.calls == [*attempt, "find", *attempt, "find", *attempt]


def test_a_lost_lease_commits_nothing_and_deletes_the_outputs(world: World) -> None:
    def lost() -> None:
        raise LeaseLost("the job is with another actor")

    world.lease = lost
    with pytest.raises(LeaseLost):
        world.commit()
    assert (world.table.attempts, world.table.deleted) == (0, OUTPUTS)


def test_a_group_that_others_took_before_the_attempt_is_set_aside_and_the_rest_lands(world: World) -> None:
    world.table.remove("b")
    landing = world.commit()
    assert (landing.version, landing.committed, landing.conflicts) == (2, (world.written[1],), 1)
    assert world.table.deleted == OUTPUTS[:1]
    assert world.table.live.keys() == {"a", "d", "out-1"}


def test_a_group_that_others_took_during_the_attempt_is_set_aside_at_the_next_and_is_one_conflict(world: World) -> None:
    world.once(lambda: world.table.remove("a"))
    landing = world.commit()
    assert (landing.version, landing.committed, landing.conflicts) == (2, (world.written[1],), 1)
    assert world.table.deleted == OUTPUTS[:1]


def test_if_others_took_every_group_nothing_is_committed_and_every_output_is_deleted(world: World) -> None:
    world.table.remove("a", "c")
    landing = world.commit()
    assert (landing.version, landing.committed, landing.conflicts) == (None, (), 1)
    assert world.table.deleted == OUTPUTS
    assert world.table.calls == ["sizes", "begin"], "without anything to commit the lease is not asked"


@pytest.mark.parametrize(
    "error", [Conflict("metadata changed", kind="x"), OtherTable("another", field="x"), ConnectionError("down")]
)
def test_an_attempt_that_cannot_begin_deletes_the_outputs_because_none_is_open(world: World, error: Exception) -> None:
    world.once(lambda: setattr(world.table, "fits", error))
    world.table.fails = [BUSY]
    with pytest.raises(type(error)):
        world.commit()
    assert (world.table.attempts, world.table.deleted) == (1, OUTPUTS)


def test_a_refused_commit_deletes_the_outputs_and_is_not_tried_again(world: World) -> None:
    world.table.fails = [Failing(Fault(Verdict.REFUSED, text="forbidden"))]
    with pytest.raises(PermanentError, match="forbidden"):
        world.commit()
    assert (world.table.attempts, world.table.deleted) == (1, OUTPUTS)


@pytest.mark.parametrize("verdict", [Verdict.BUSY, Verdict.TAKEN, Verdict.CHANGED])
def test_after_the_last_attempt_the_outputs_are_deleted_and_the_conflict_is_raised(
    world: World, verdict: Verdict
) -> None:
    world.table.fails = [Failing(Fault(verdict))] * 200
    with pytest.raises(Conflict, match=r"the store; tried 12 times in 11 s$") as caught:
        world.commit()
    assert caught.value.kind == verdict
    assert (world.table.attempts, world.table.deleted) == (12, OUTPUTS)
    assert [world.pauses[at] for at in (0, 1, 2, 6, 7, -1)] == [0.02, 0.04, 0.08, 1.28, 2, 2]


def test_after_an_unknown_outcome_nothing_is_deleted_and_nothing_tried_again(world: World) -> None:
    world.table.fails = [Failing(Fault(Verdict.UNKNOWN, text="no answer"))]
    with pytest.raises(RetryableError, match=r"unknown \(Fault: no answer\).*not show job j, token 1.*to a vacuum"):
        world.commit()
    assert (world.table.attempts, world.table.deleted) == (1, [])


def test_a_commit_that_failed_before_the_table_was_asked_deletes_the_outputs_and_is_not_searched(world: World) -> None:
    world.table.fails = [Failing(OSError("no space"), asked=False)]
    world.once(lambda: setattr(world.table, "unreadable", ConnectionError("down")))
    with pytest.raises(LakewrightError):
        world.commit()
    assert world.table.deleted == OUTPUTS
    assert "find" not in world.table.calls


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_commit_that_landed_is_found_whatever_its_answer_was_and_not_made_again(
    world: World, verdict: Verdict
) -> None:
    """Libraries write, lose the answer, try again by themselves and then meet their own commit as a conflict."""
    world.table.fails = [Failing(Fault(verdict), made=True)]
    landing = world.commit()
    assert (landing.version, landing.committed, landing.conflicts) == (1, tuple(world.written), 0)
    assert (world.table.attempts, world.table.deleted) == (1, [])


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("made", [True, False])
def test_a_table_that_cannot_be_read_after_a_failure_leaves_everything_where_it_is(
    world: World, verdict: Verdict, made: bool
) -> None:
    world.table.fails = [Failing(Fault(verdict), made=made)]
    world.once(lambda: setattr(world.table, "unreadable", ConnectionError("down")))
    with pytest.raises(RetryableError, match=r"cannot be read \(ConnectionError: down\); first search for job j"):
        world.commit()
    assert (world.table.attempts, world.table.deleted) == (1, [])


@pytest.mark.parametrize("verdict", [None, *Verdict])
def test_a_commit_that_was_undone_at_once_keeps_its_files_whatever_its_answer(
    world: World, verdict: Verdict | None
) -> None:
    world.table.fails = [] if verdict is None else [Failing(Fault(verdict), made=True)]
    world.table.knows_its_version = False
    world.once(lambda: setattr(world.table, "undone", RetryableError("rolled back since")))
    with pytest.raises(RetryableError, match="rolled back since"):
        world.commit()
    assert (world.table.attempts, world.table.deleted) == (1, [])


def test_a_version_that_the_library_does_not_say_is_searched(world: World) -> None:
    world.table.knows_its_version = False
    assert world.commit().version == 1


def test_a_commit_that_the_table_shows_no_longer_is_reported_and_keeps_its_files(world: World) -> None:
    world.table.knows_its_version = False
    world.table.find = lambda _: None  # type: ignore[method-assign]
    with pytest.raises(RetryableError, match="was made, but the table shows it no longer"):
        world.commit()
    assert world.table.deleted == []


@pytest.mark.parametrize("size", [None, 49, 51])
def test_an_output_that_is_gone_or_cut_before_the_commit_stops_it(world: World, size: int | None) -> None:
    """Someone runs VACUUM without retention: the inputs must not be replaced by files that are not there."""
    del world.table.disk["out-0"]
    if size is not None:
        world.table.disk["out-0"] = size
    with pytest.raises(RetryableError, match=rf"1 of 2 files .*out-0 \({size} of 50 bytes\)"):
        world.commit()
    assert world.table.calls == ["sizes"]
    assert world.table.deleted == OUTPUTS


def test_outputs_are_checked_before_every_attempt(world: World) -> None:
    world.table.fails = [BUSY]
    world.once(lambda: world.table.disk.clear())
    with pytest.raises(RetryableError, match="2 of 2 files"):
        world.commit()
    assert world.table.attempts == 1


@pytest.mark.parametrize(("age_s", "lands"), [(100.0, True), (100.5, False)])
def test_outputs_that_a_vacuum_could_take_for_orphans_are_not_committed(
    world: World, age_s: float, lands: bool
) -> None:
    world.now_s = age_s
    if lands:
        assert world.commit().version == 1
        return
    with pytest.raises(RetryableError, match="a vacuum deletes old files that no commit names"):
        world.commit()
    assert (world.table.calls, world.table.deleted) == ([], OUTPUTS)


def test_outputs_that_grow_too_old_between_two_attempts_are_not_committed(world: World) -> None:
    world.table.fails = [BUSY]
    world.once(lambda: setattr(world, "now_s", 101.0))
    with pytest.raises(RetryableError, match=r"lower lakewright\.max-bytes-per-job"):
        world.commit(within_s=200)
    assert (world.table.attempts, world.table.deleted) == (1, OUTPUTS)


def test_what_cannot_be_deleted_does_not_hide_why_it_was_to_be(world: World) -> None:
    world.table.fails = [Failing(Fault(Verdict.REFUSED, text="forbidden"))]
    world.table.undeletable = OSError("read-only")
    with pytest.raises(PermanentError, match="forbidden"):
        world.commit()


def test_nothing_to_discard_touches_nothing(world: World) -> None:
    world.table.delete = lambda _: pytest.fail("asked")  # type: ignore[method-assign]
    world.committer.discard([])
