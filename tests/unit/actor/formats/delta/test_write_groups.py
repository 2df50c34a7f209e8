"""Groups are written or explained: after a failure nothing of ours stays behind, and nothing live is called stale."""

import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.write import WrittenGroup
from actor.formats.delta.write_groups import WriteContext, WriteResult, write_groups
from shared.errors import Corrupt, LakewrightError, RetryableError
from tests.support.fake_delta import FakeTable, live_group
from tests.support.fake_delta_table import JavaError, add
from tests.support.time_limits import scaled


class Shop:
    """A workshop whose writer does as the test says for each first path, and which keeps what was discarded."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.fails: dict[str, Exception] = {}
        self.taken: set[str] = set()
        self.discarded: list[str] = []
        self.swept: list[list[str]] = []
        self.begun: list[str] = []
        self.should_stop: Callable[[], bool] = lambda: False
        self.has_lost_attempts = False

    def write(self, live: LiveGroup) -> WrittenGroup:
        path = live.group.files[0].path
        self.begun.append(path)
        if path in self.fails:
            raise self.fails[path]
        return WrittenGroup(live, live.inputs, 1)

    def run(self, groups: list[LiveGroup]) -> WriteResult:
        return write_groups(
            WriteContext(
                writer=self,
                threads=self.threads,
                bound=nullcontext,
                should_stop=lambda: self.should_stop(),
                is_live=lambda live: live.group.files[0].path not in self.taken,
                discard=lambda groups: self.discarded.extend(one.live.group.files[0].path for one in groups),
                sweep=lambda kept: self.swept.append([one.live.group.files[0].path for one in kept]),
                has_lost_attempts=lambda: self.has_lost_attempts,
            ),
            groups,
        )


def groups(*paths: str) -> list[LiveGroup]:
    table = FakeTable()
    table.commit(*map(add, paths))
    return [live_group(table, path) for path in paths]


@pytest.mark.parametrize("threads", [1, 2])
def test_all_groups_are_written_in_their_order(threads: int) -> None:
    live = groups("a", "b", "c")
    shop = Shop(threads)
    prepared = shop.run(live)
    assert [one.live for one in prepared.written] == live
    assert (prepared.conflicted, prepared.skipped) == ((), ())
    assert shop.swept == []


def test_a_group_whose_inputs_were_taken_is_stale_and_the_others_that_were_written_stay() -> None:
    shop = Shop()
    shop.fails, shop.taken = {"b": JavaError("FileNotFoundException")}, {"b"}
    live = groups("a", "b", "c")
    prepared = shop.run(live)
    assert [one.live for one in prepared.written] == [live[0]]
    assert prepared.conflicted == (live[1].group,)
    assert prepared.skipped == (live[2].group,), "nothing is begun after a failure"
    assert shop.discarded == []
    assert shop.begun == ["a", "b"]
    assert shop.swept == [["a"]], "what the failed write left is removed, what was written is kept"


def test_a_failure_of_a_group_that_is_still_live_is_raised_and_what_was_written_is_deleted() -> None:
    shop = Shop()
    shop.fails = {"b": JavaError("SparkException", message="lost task")}
    with pytest.raises(RetryableError, match=r"writing 1 files.*lost task; the table is unchanged"):
        shop.run(groups("a", "b"))
    assert shop.discarded == ["a"]


UNREADABLE = "Lost task: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file f"
DAMAGED = "Lost task: io.lakewright.DamagedInput: f has a page that differs from its checksum"
FULL = "Lost task: java.io.IOException: No space left on device"


@pytest.mark.parametrize(("text", "begun"), [(UNREADABLE, "abc"), (DAMAGED, "abc"), (FULL, "ab")])
def test_a_group_that_fails_for_itself_leaves_the_others_alone(text: str, begun: str) -> None:
    """On a full disk no group is begun any more, and what is written lands."""
    shop = Shop()
    shop.fails = {"b": JavaError("SparkException", message=text)}
    live = groups("a", "b", "c")
    prepared = shop.run(live)
    assert "".join(shop.begun) == begun
    assert [one.live.group.files[0].path for one in prepared.written] == [one for one in begun if one != "b"]
    ((group, error),) = prepared.failed
    assert group == live[1].group
    assert isinstance(error, RetryableError)
    assert text in str(error)
    assert (prepared.conflicted, shop.discarded) == ((), [])
    assert shop.swept == [[one for one in begun if one != "b"]]


def test_where_no_group_is_written_the_first_failure_is_raised() -> None:
    shop = Shop()
    shop.fails = {path: JavaError("SparkException", message=f"{UNREADABLE} {path}") for path in "ab"}
    with pytest.raises(RetryableError, match=r"reading file f a; the table is unchanged"):
        shop.run(groups("a", "b"))


def test_what_a_killed_executor_may_have_left_is_removed_although_its_task_was_repeated() -> None:
    shop = Shop()
    shop.has_lost_attempts = True
    prepared = shop.run(groups("a"))
    assert len(prepared.written) == 1
    assert shop.swept == [["a"]]


@pytest.mark.parametrize("error", [Corrupt("rows differ"), RetryableError("no disk")])
def test_an_error_of_our_own_is_never_taken_for_staleness(error: LakewrightError) -> None:
    shop = Shop()
    shop.fails, shop.taken = {"b": error}, {"b"}
    with pytest.raises(type(error)):
        shop.run(groups("a", "b"))
    assert shop.discarded == ["a"]


def test_whether_a_group_is_live_may_fail_to_be_known_and_what_was_written_is_deleted() -> None:
    shop = Shop()
    shop.fails = {"b": JavaError("SparkException")}
    live = groups("a", "b")
    with pytest.raises(OSError, match="store away"):
        write_groups(
            WriteContext(
                shop, 1, nullcontext, lambda: False, _fail, lambda ones: shop.discarded.extend(map(str, ones)), _ignore
            ),
            live,
        )
    assert len(shop.discarded) == 1


def _ignore(_kept: object) -> None:
    pass


def _fail(_live: LiveGroup) -> bool:
    raise OSError("store away")


def test_asked_to_stop_no_further_group_is_begun_and_what_is_written_is_kept() -> None:
    shop = Shop()
    shop.should_stop = lambda: len(shop.begun) >= 1
    live = groups("a", "b", "c")
    prepared = shop.run(live)
    assert [one.live for one in prepared.written] == live[:1]
    assert prepared.skipped == (live[1].group, live[2].group)
    assert shop.discarded == []


def test_groups_are_written_side_by_side() -> None:
    shop = Shop(threads=2)
    both = threading.Barrier(2, timeout=scaled(20))
    write = shop.write
    shop.write = lambda live: (both.wait(), write(live))[1]  # type: ignore[method-assign]
    assert len(shop.run(groups("a", "b")).written) == 2
