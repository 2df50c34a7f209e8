"""Bytes that writers add, by day."""

from dataclasses import replace

import pytest

from decider.state.ingested_bytes import DAY_MS, IngestedDays, ingested_after, ingested_per_day
from shared.policy.budgets import AMPLIFICATION_DAYS
from shared.table import Commit, CommitOrigin, DataFile, PartitionKey

TODAY = 20_000
NOW_MS = TODAY * DAY_MS + 7


def commit(*sizes_bytes: int, at_ms: int = NOW_MS) -> Commit:
    added = tuple(DataFile(str(size), size, PartitionKey("{}")) for size in sizes_bytes)
    return Commit(1, at_ms, "WRITE", added)


def test_commits_of_a_day_are_added_up() -> None:
    days = ingested_after((), commit(3, 4), NOW_MS)
    assert ingested_after(days, commit(5), NOW_MS) == ((TODAY, 12),)
    assert ingested_after(days, commit(5, at_ms=NOW_MS - DAY_MS), NOW_MS) == ((TODAY - 1, 5), (TODAY, 7))


@pytest.mark.parametrize(
    "made",
    [replace(commit(5), data_change=False), replace(commit(5), origin=CommitOrigin("j", 1)), commit()],
    ids=["a rewrite", "rows that we removed", "no file"],
)
def test_only_what_writers_add_counts(made: Commit) -> None:
    assert ingested_after(((TODAY, 1),), made, NOW_MS) == ((TODAY, 1),)


@pytest.mark.parametrize(
    ("at_ms", "day"),
    [(NOW_MS - DAY_MS, TODAY - 1), (NOW_MS + 900 * DAY_MS, TODAY), (0, TODAY)],
    ids=["earlier", "a clock that is ahead", "not known"],
)
def test_a_day_is_the_commits_and_never_later_than_the_deciders(at_ms: int, day: int) -> None:
    assert ingested_after((), commit(5, at_ms=at_ms), NOW_MS) == ((day, 5),)


def test_days_are_kept_for_as_long_as_they_count() -> None:
    oldest = TODAY - AMPLIFICATION_DAYS + 1
    days: IngestedDays = ((oldest - 1, 1), (oldest, 2))
    assert ingested_after(days, commit(5), NOW_MS) == ((oldest, 2), (TODAY, 5))
    late = commit(5, at_ms=(oldest - 1) * DAY_MS)
    assert ingested_after((), late, NOW_MS) == ()


def test_a_clock_that_is_set_back_keeps_the_newest_days() -> None:
    days: IngestedDays = ((TODAY + 1, 1),)
    assert ingested_after(days, commit(5), NOW_MS) == ((TODAY, 5), (TODAY + 1, 1))


@pytest.mark.parametrize(
    ("days", "mean"),
    [
        ((), 0),
        (((TODAY, 9),), 0),
        (((TODAY - 1, 8), (TODAY, 9)), 8),
        (((TODAY - 4, 6), (TODAY - 1, 2), (TODAY, 9)), 2),
        (((TODAY - AMPLIFICATION_DAYS, 900), (TODAY - 2, 6)), 3),
    ],
)
def test_the_mean_per_day_is_of_whole_days(days: IngestedDays, mean: int) -> None:
    assert ingested_per_day(days, NOW_MS) == mean
