"""Groups are written or explained: after a failure no file of ours stays, and nothing live is left out."""

import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.commit import StagedGroup
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.write_groups import StagingContext, write_groups
from shared.errors import Corrupt
from shared.layout.planner import FileGroup
from tests.support.time_limits import scaled
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import group, live


class Shop:
    """A writer that fails as the test says for each first path, and a table that has lost the paths `taken`."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.fails: dict[str, Exception] = {}
        self.taken: set[str] = set()
        self.begun: list[str] = []
        self.discarded: list[str] = []
        self.should_stop: Callable[[], bool] = lambda: False

    def write(self, live: InputGroup) -> StagedGroup:
        path = live.inputs[0].path
        self.begun.append(path)
        if path in self.fails:
            raise self.fails[path]
        return StagedGroup(live, (live.inputs[0].file,), 100)

    def run(self, *paths: str) -> tuple[list[str], list[str]]:
        """Return the first paths of the groups that were written, and of those that were not begun."""
        context = StagingContext(
            writer=self,
            threads=self.threads,
            bound=nullcontext,
            should_stop=lambda: self.should_stop(),
            is_live=lambda live: live.inputs[0].path not in self.taken,
            discard=lambda groups: self.discarded.extend(one.live.inputs[0].path for one in groups),
        )
        written, skipped = write_groups(context, [InputGroup(group(live(path)), (live(path),)) for path in paths])
        return [one.live.inputs[0].path for one in written], list(map(_first, skipped))


def _first(skipped: FileGroup) -> str:
    return skipped.files[0].path


@pytest.mark.parametrize("threads", [1, 2])
def test_all_groups_are_written_in_their_order(threads: int) -> None:
    assert Shop(threads).run("a", "b", "c") == (["a", "b", "c"], [])


def test_groups_are_written_side_by_side() -> None:
    shop = Shop(threads=2)
    both, write = threading.Barrier(2, timeout=scaled(20)), shop.write
    shop.write = lambda live: (both.wait(), write(live))[1]  # type: ignore[method-assign]
    assert shop.run("a", "b") == (["a", "b"], [])


def test_a_group_whose_inputs_were_taken_is_left_out_and_what_was_not_begun_is_skipped() -> None:
    shop = Shop()
    shop.fails, shop.taken = {"b": OSError("no such file")}, {"b"}
    assert shop.run("a", "b", "c") == (["a"], ["c"])
    assert shop.discarded == []


def test_a_failure_of_a_group_that_is_still_live_is_raised_and_what_was_written_is_deleted() -> None:
    shop = Shop()
    shop.fails = {"b": OSError("the executor died")}
    with pytest.raises(OSError, match="the executor died"):
        shop.run("a", "b", "c")
    assert (shop.begun, shop.discarded) == (["a", "b"], ["a"])


def test_what_other_threads_wrote_is_deleted_too() -> None:
    shop = Shop(threads=2)
    shop.fails = {"a": OSError("the executor died")}
    both, write = threading.Barrier(2, timeout=scaled(20)), shop.write
    shop.write = lambda live: (both.wait(), write(live))[1]  # type: ignore[method-assign]
    with pytest.raises(OSError, match="the executor died"):
        shop.run("a", "b")
    assert shop.discarded == ["b"]


def test_an_error_of_our_own_is_never_taken_for_staleness() -> None:
    shop = Shop()
    shop.fails, shop.taken = {"b": Corrupt("rows differ")}, {"b"}
    with pytest.raises(Corrupt):
        shop.run("a", "b")
    assert shop.discarded == ["a"]


def test_asked_to_stop_no_further_group_is_begun_and_what_is_written_is_kept() -> None:
    shop = Shop()
    shop.should_stop = lambda: bool(shop.begun)
    assert shop.run("a", "b", "c") == (["a"], ["b", "c"])
    assert shop.discarded == []
