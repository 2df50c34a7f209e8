"""Groups are written or explained: after a failure nothing of ours stays behind, and nothing live is called stale."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from actor.rewrite.commit import Committer
from actor.rewrite.model import Blame
from actor.rewrite.write import Workshop, WriteResult
from actor.worker import RunControl
from shared.errors import Corrupt, Difference, LakewrightError, RefusedFiles, RetryableError
from tests.support.memory_rewrite import Fault, MemoryFile, MemoryGroup, MemoryStaged, MemoryTable
from tests.support.time_limits import scaled


class Shop:
    """A table of files, each a group of its own, whose writes fail as the test says for each path."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.table = MemoryTable()
        self.table.add("a", "b", "c")
        self.should_stop: Callable[[], bool] = lambda: False

    @property
    def groups(self) -> list[MemoryGroup]:
        return self.table.resolve([self.table.group(path) for path in self.table.live])

    def run(self, groups: list[MemoryGroup] | None = None) -> WriteResult[MemoryStaged]:
        control = RunControl(lambda: None, lambda: False, lambda _: None)
        committer: Committer[MemoryStaged] = Committer(self.table, control)
        table = self.table
        shop = Workshop(
            table.location, table, table, table.failures, committer, self.threads, lambda: self.should_stop()
        )
        return shop.write_groups(self.groups if groups is None else groups)

    def together(self) -> None:
        """Let two groups be begun before either is written."""
        both, write = threading.Barrier(2, timeout=scaled(20)), self.table.write
        self.table.write = lambda live: (both.wait(), write(live))[1]  # type: ignore[method-assign]


def paths(result: WriteResult[MemoryStaged]) -> list[str]:
    return [one.live.group.files[0].path for one in result.written]


@pytest.mark.parametrize("threads", [1, 2])
def test_all_groups_are_written_in_their_order(threads: int) -> None:
    shop = Shop(threads)
    result = shop.run()
    assert (paths(result), result.skipped, result.failed) == (["a", "b", "c"], (), ())
    assert shop.table.deleted == []


def test_groups_are_written_side_by_side() -> None:
    shop = Shop(threads=2)
    groups = shop.groups[:2]
    shop.together()
    assert paths(shop.run(groups)) == ["a", "b"]


def test_a_failure_does_not_interrupt_a_group_that_was_begun() -> None:
    shop, has_failed = Shop(threads=2), threading.Event()
    groups, write = shop.groups[:2], shop.table.write
    shop.table.fails_writing = {"a": Fault(blame=Blame.STORE)}

    def in_order(live: MemoryGroup) -> MemoryStaged:
        if live.group.files[0].path == "b":
            assert has_failed.wait(scaled(20))
        try:
            return write(live)
        finally:
            has_failed.set()

    shop.table.write = in_order  # type: ignore[method-assign]
    shop.together()
    result = shop.run(groups)
    assert (paths(result), len(result.failed)) == (["b"], 1)


def test_a_group_whose_inputs_were_taken_is_stale_and_the_others_that_were_written_stay() -> None:
    shop = Shop()
    groups = shop.groups
    shop.table.fails_writing = {"b": Fault(text="no such file")}
    shop.table.remove("b")
    result = shop.run(groups)
    assert (paths(result), result.failed) == (["a"], ())
    assert result.skipped == (groups[2].group,), "nothing is begun after a failure"
    assert shop.table.begun == ["a", "b"]
    assert shop.table.deleted == ["part-of-b"], "what the failed write left is removed, what was written is kept"


def test_a_failure_of_a_group_that_is_still_live_is_raised_and_what_was_written_is_deleted() -> None:
    shop = Shop()
    shop.table.fails_writing = {"b": Fault(text="lost task")}
    with pytest.raises(
        RetryableError, match=r"rewriting 1 files in .* of s3://bucket/t: lost task; the table is unchan"
    ):
        shop.run()
    assert (shop.table.begun, shop.table.disk) == (["a", "b"], {})


def test_what_other_threads_wrote_is_deleted_too() -> None:
    shop = Shop(threads=2)
    groups = shop.groups[:2]
    shop.table.fails_writing = {"a": Fault(text="lost task")}
    shop.together()
    with pytest.raises(RetryableError, match="lost task"):
        shop.run(groups)
    assert shop.table.disk == {}


@pytest.mark.parametrize(("blame", "begun"), [(Blame.FILES, "abc"), (Blame.STORE, "ab")])
def test_a_group_that_fails_for_itself_leaves_the_others_alone(blame: Blame, begun: str) -> None:
    """On a full disk no group is begun any more, and what is written lands."""
    shop = Shop()
    shop.table.fails_writing = {"b": Fault(blame=blame, text="for itself")}
    result = shop.run()
    assert "".join(shop.table.begun) == begun
    assert paths(result) == [one for one in begun if one != "b"]
    ((group, error),) = result.failed
    assert group.files[0].path == "b"
    assert isinstance(error, RetryableError)
    assert shop.table.deleted == ["part-of-b"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_group_that_is_refused_fails_alone_and_all_others_are_written(threads: int) -> None:
    shop, refusal = Shop(threads), Difference("v differs", columns=("v",))
    shop.table.fails_writing = {"a": refusal}
    result = shop.run()
    assert paths(result) == ["b", "c"]
    assert [error for _, error in result.failed] == [refusal]
    assert shop.table.deleted == ["part-of-a"]


def test_where_every_group_is_refused_none_is_raised() -> None:
    shop, refusal = Shop(), Difference("v differs", columns=("v",))
    shop.table.fails_writing = dict.fromkeys("abc", refusal)
    assert [error for _, error in shop.run().failed] == [refusal] * 3


def test_where_no_group_is_written_the_first_failure_is_raised() -> None:
    shop = Shop()
    shop.table.fails_writing = {path: Fault(blame=Blame.FILES, text=f"reading {path}") for path in "abc"}
    with pytest.raises(RetryableError, match="reading a; the table is unchanged"):
        shop.run()


@pytest.mark.parametrize("together", [True, False])
def test_a_path_that_is_live_under_two_vectors_is_refused_and_not_written(together: bool) -> None:
    """A commit, which all groups share, can remove a path only once."""
    shop = Shop()
    one, two, rest = shop.groups
    again = MemoryFile(replace(one.inputs[0].file, dv_id="v1"))
    inputs = (*one.inputs, again) if together else (again, *two.inputs)
    changed = replace(one if together else two, inputs=inputs)
    result = shop.run([changed, rest] if together else [one, changed, rest])
    assert (paths(result), shop.table.begun) == (["c"], ["c"])
    assert len(result.failed) == (1 if together else 2)
    for _, error in result.failed:
        assert isinstance(error, RefusedFiles)
        assert (error.reason, error.files) == ("doubled", ("a",))
        assert "a of s3://bucket/t is live 2 times, with the deletion vectors None, v1" in str(error)


def test_what_a_killed_executor_may_have_left_is_removed_although_its_task_was_repeated() -> None:
    shop = Shop()
    shop.table.lost_attempts = True
    shop.table.disk["begun-by-the-killed"] = 1
    assert len(shop.run().written) == 3
    assert shop.table.deleted == ["begun-by-the-killed"]


@pytest.mark.parametrize("error", [Corrupt("rows differ"), RetryableError("no disk")])
def test_an_error_of_our_own_is_never_taken_for_staleness(error: LakewrightError) -> None:
    shop = Shop()
    groups = shop.groups
    shop.table.fails_writing = {"b": error}
    shop.table.remove("b")
    with pytest.raises(type(error)):
        shop.run(groups)
    assert shop.table.disk == {}


def test_whether_a_group_is_live_may_fail_to_be_known_and_what_was_written_is_deleted() -> None:
    shop = Shop()
    shop.table.fails_writing = {"b": Fault()}
    shop.table.is_live = _away  # type: ignore[method-assign]
    with pytest.raises(OSError, match="store away"):
        shop.run()
    assert shop.table.disk == {}


def _away(_live: MemoryGroup) -> bool:
    raise OSError("store away")


def test_asked_to_stop_no_further_group_is_begun_and_what_is_written_is_kept() -> None:
    shop = Shop()
    shop.should_stop = lambda: len(shop.table.begun) >= 1
    result = shop.run()
    assert (paths(result), [one.files[0].path for one in result.skipped]) == (["a"], ["b", "c"])
    assert shop.table.deleted == []
