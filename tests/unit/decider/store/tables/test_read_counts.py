"""The rate of reported reads: of the last seven days, and of the time since the first report where that is shorter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.store.tables.read_counts import DAY_MS, DAYS, HOUR_MS, SINCE, WEEK_MS, weekly_reads

TODAY = 20_000
NOON = TODAY * DAY_MS + DAY_MS // 2


def counted(by_day: dict[int, int], since_ms: int = 1) -> int:
    fields = {str(day): str(count) for day, count in by_day.items()} | {SINCE: str(since_ms)}
    return weekly_reads({name.encode(): value.encode() for name, value in fields.items()}, NOON)


def test_nothing_reported_is_nothing() -> None:
    assert weekly_reads({}, NOON) == 0


@pytest.mark.parametrize(
    ("by_day", "since_ms", "per_week"),
    [
        ({TODAY: 12}, NOON - 12 * HOUR_MS, 168),
        ({TODAY: 12}, NOON, 12 * 168),  # Just begun: the rate of an hour at least.
        ({TODAY - 1: 50, TODAY: 28}, 1, 84),  # Six and a half days are counted.
        ({TODAY - 6: 78}, 1, 84),
        ({TODAY - 7: 1_000_000}, 1, 0),
    ],
)
def test_reads_count_at_the_rate_of_the_days_that_are_kept(
    by_day: dict[int, int], since_ms: int, per_week: int
) -> None:
    assert counted(by_day, since_ms) == per_week


@given(
    st.dictionaries(st.integers(TODAY - 10, TODAY), st.integers(0, 10**9)),
    st.integers(TODAY - 10, TODAY),
    st.integers(0, WEEK_MS),
)
def test_one_more_read_never_lowers_the_rate(by_day: dict[int, int], day: int, age_ms: int) -> None:
    more = by_day | {day: by_day.get(day, 0) + 1}
    assert counted(more, NOON - age_ms) >= counted(by_day, NOON - age_ms)
    assert counted(by_day, NOON - age_ms) <= sum(by_day.values()) * DAYS * 24
