"""Which commits are rewrites by other optimizers, and when one of them wrote rows again that were gone."""

import random
from dataclasses import replace

import pytest

from shared.index.rewrites import IndexRewritesSeen, rewrites_seen
from shared.index.stats import IndexSideStats, index_stats
from shared.index.status import ForecastStep, IndexForecast
from shared.partitions import WHOLE_TABLE
from shared.table import Commit, CommitOrigin, DataFile, RemovedFile


def commit(version: int, removed: str = "", added: str = "", *, data_change: bool = False, **more: object) -> Commit:
    """Return a commit of files whose names are letters."""
    adds = tuple(DataFile(name, 9, WHOLE_TABLE, rows=1) for name in added)
    gone = tuple(RemovedFile(name) for name in removed)
    made = Commit(version, 0, "WRITE", adds, gone, data_change=data_change)
    return replace(made, **more)  # type: ignore[arg-type]


APPEND = commit(1, added="abc", data_change=True)
OURS = commit(2, "ab", "d", origin=CommitOrigin("j", 1))


def test_rewrites_by_others_are_those_that_change_no_data_and_have_no_origin_of_ours() -> None:
    delete = commit(3, "c", "e", data_change=True)
    theirs, files_only_removed = commit(4, "d", "f"), commit(5, "f")
    found = rewrites_seen([APPEND, OURS, delete, theirs, files_only_removed])
    assert found == IndexRewritesSeen((4,))
    assert rewrites_seen([]) == IndexRewritesSeen()


def test_a_rewrite_of_a_file_that_is_gone_doubled_its_rows_whoever_removed_it_and_whoever_rewrote_it() -> None:
    assert rewrites_seen([APPEND, OURS, commit(3, "bc", "e")]) == IndexRewritesSeen((3,), 3, "b", 2)
    deleted = commit(2, "a", "d", data_change=True)
    assert rewrites_seen([APPEND, deleted, commit(3, "ab", "e")]).gone_version == 2
    # Ours as well: the actor's own check stands before it, and this one does not rest on it.
    late = replace(OURS, version=3)
    assert rewrites_seen([APPEND, commit(2, "ab", "e"), late]) == IndexRewritesSeen((2,), 3, "a", 2)


def test_a_file_that_was_added_again_is_no_doubled_one_and_a_delete_of_a_gone_file_neither() -> None:
    back = commit(3, added="ab", data_change=True, operation="RESTORE")
    assert rewrites_seen([APPEND, OURS, back, commit(4, "ab", "e")]).again_version == -1
    assert rewrites_seen([APPEND, OURS, commit(3, "a", "e", data_change=True)]).again_version == -1
    # In one commit, a file may come again with another deletion vector.
    assert rewrites_seen([APPEND, commit(2, "a", "a"), commit(3, "a", "e")]).again_version == -1


def test_doubled_rows_stay_an_alarm_through_rewrites_and_deletes_until_a_restore_takes_them_back() -> None:
    doubled = [APPEND, OURS, commit(3, "b", "ef")]
    moved = [*doubled, commit(4, "e", "g"), commit(5, "f", "h", data_change=True), commit(6, added="i")]
    assert rewrites_seen(moved).again_version == 3
    restore = commit(7, "ghi", "", data_change=True, operation="RESTORE")
    assert rewrites_seen([*moved, restore]) == IndexRewritesSeen((3, 4))
    half = commit(7, "gh", "ef", data_change=True, operation="RESTORE")
    assert rewrites_seen([*moved, half]).again_version == 3, "it restored a version that has the rows twice"
    # The first one is named, until it is taken back.
    again = commit(4, "a", "k")
    assert rewrites_seen([*doubled, again]).again_version == 3
    both = commit(5, "efk", "", data_change=True, operation="RESTORE")
    assert rewrites_seen([*doubled, again, both, commit(6, "c", "m"), commit(7, "c", "n")]).again_version == 7


class Log:
    """A table whose commits remove and add any files."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.live: list[str] = []
        self.gone: list[str] = []
        self.commits: list[Commit] = []

    def commit(self, removed: list[str], *, is_change: bool) -> None:
        version = len(self.commits)
        made = [f"v{version}-{number}" for number in range(self.rng.randint(1, 3))]
        self.live = [file for file in self.live if file not in removed] + made
        self.gone += [file for file in removed if file not in self.gone]
        adds = tuple(DataFile(name, 9, WHOLE_TABLE, rows=1) for name in made)
        gone = tuple(map(RemovedFile, removed))
        self.commits.append(Commit(version, 0, "WRITE", adds, gone, data_change=is_change))


def test_honest_optimizers_never_raise_an_alarm_and_one_with_an_old_list_always_does() -> None:
    doubled = 0
    for number in range(1_000):
        rng = random.Random(f"rewrites {number}")
        made = Log(rng)
        for _ in range(rng.randint(2, 12)):
            made.commit(rng.sample(made.live, rng.randint(0, len(made.live))), is_change=rng.random() < 0.5)
        assert rewrites_seen(made.commits).again_version == -1
        if made.gone:
            doubled += 1
            path = rng.choice(made.gone)
            made.commit([*rng.sample(made.live, 1), path], is_change=False)
            found = rewrites_seen(made.commits)
            assert (found.again_version, found.again_path) == (len(made.commits) - 1, path)
    assert doubled > 100


def test_the_bytes_of_a_forecast_are_those_of_its_iterations() -> None:
    steps = tuple(ForecastStep(size, 0.0, 1, 0, 1) for size in (3, 4))
    assert IndexForecast("everything", None, steps, is_complete=True).bytes == 7


FILES = ((("", 9), ("A", 1)), (("A", 1_000),), ())


def test_the_figures_are_those_of_the_documents_event() -> None:
    found = index_stats(FILES)
    assert (found.rows, found.cubes, found.blocks) == (1_010, 2, 3)
    assert found.file_levels == (0, 3, -1)
    assert found.mean_block_rows == pytest.approx((10 / 2 + 1_000 + 0) / 3)
    assert index_stats(()) == IndexSideStats(0, 0, 0, 0.0, ())


def test_what_is_written_is_read() -> None:
    huge = index_stats(((("", 10**18),),))
    assert huge.encode() == [10**18, 1, 1, 1e18, "i"]
    for one in (index_stats(FILES), huge, index_stats(())):
        assert IndexSideStats.decode(one.encode()) == one


@pytest.mark.parametrize(
    "raw", [None, {}, [], [1, 1, 1, 1, "0"], [1, 1, 1, 1.0, 0], [1, 1, 1, 1.0, "0", 2], [1, 1, 1, 1.0, "A"]]
)
def test_anything_else_is_nothing(raw: object) -> None:
    assert IndexSideStats.decode(raw) is None
