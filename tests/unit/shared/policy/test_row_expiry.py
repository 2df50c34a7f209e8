"""What is over: ages as owners write them, compared with partitions and statistics, never a moment too young."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.policy.row_expiry import ExpiryBound, NoDay, RowExpiry, parse_row_expiry

DAY_S = 86_400
MOMENT = datetime(2026, 3, 10, 11, 59, 59)  # noqa: DTZ001 - in UTC
"""Half a day later it is the tenth everywhere."""


def seconds(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp())


def bound(kind: str, moment: datetime = MOMENT) -> ExpiryBound:
    return ExpiryBound("ts", kind, seconds(moment))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90 days of ts", RowExpiry("ts", 90 * DAY_S)),
        (" 1 Day of `event time` ", RowExpiry("event time", DAY_S)),
        ("13weeks of ts", RowExpiry("ts", 91 * DAY_S)),
        ("36 hours OF ts", RowExpiry("ts", 36 * 3_600)),
        ("90 days of ts, Rows", RowExpiry("ts", 90 * DAY_S, with_rows=True)),
        ("90 days of rows", RowExpiry("rows", 90 * DAY_S)),
        ("36525 days of ts", RowExpiry("ts", 36_525 * DAY_S)),
    ],
)
def test_an_age_is_read_with_its_column(text: str, expected: RowExpiry) -> None:
    assert parse_row_expiry(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *(
            (text, "such as 90 days of ts")
            for text in ("", "90 of ts", "90 days", "3 months of ts", "ts", "-1 days of ts")
        ),
        *((text, "such as 90 days of ts") for text in ("90 days of a.b", "1.5 days of ts", "90 days of ts, row")),
        *((text, "from 1 day to 36525 days") for text in ("0 days of ts", "23 hours of ts", "36526 days of ts")),
    ],
)
def test_what_is_no_age_of_a_column_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_row_expiry(text)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("timestamp", "`ts` < TIMESTAMP '2026-03-10 11:59:59Z'"),
        ("timestamp_ntz", "`ts` < TIMESTAMP_NTZ '2026-03-09 23:59:59'"),
        ("date", "`ts` < DATE '2026-03-09'"),
        ("string", "`ts` < '2026-03-09'"),
        ("integer", "`ts` < 20260309"),
    ],
)
def test_the_bound_is_a_literal_and_of_days_half_a_day_earlier(kind: str, expected: str) -> None:
    rule = RowExpiry("ts", 90 * DAY_S)
    now_ms = (seconds(MOMENT) + 90 * DAY_S) * 1000 + 999
    assert rule.bound(kind, now_ms).condition == expected


@pytest.mark.parametrize(
    ("kind", "value", "moment", "expected"),
    [
        ("date", "2026-03-08", MOMENT, True),
        ("date", "2026-03-09", MOMENT, False),
        ("date", "2026-03-09", MOMENT + timedelta(seconds=1), True),
        ("date", None, MOMENT, False),
        ("date", "20260308", MOMENT, False),
        ("date", "2026-02-30", MOMENT, False),
        ("string", "2026-03-08", MOMENT, True),
        ("string", "20260308", MOMENT, True),
        ("integer", "20260308", MOMENT, True),
        ("long", "20260309", MOMENT, False),
        ("timestamp", "2026-03-09T23:59:58.999999", MOMENT, True),
        ("timestamp", "2026-03-09T23:59:59.000000", MOMENT, False),
        ("timestamp", "2026-03-09", MOMENT, False),
        ("timestamp", "2026-03-01T00:00:00Z", MOMENT, False),
        ("timestamp_ntz", "2026-03-09 23:59:58", MOMENT, True),
        ("timestamp_ntz", "no time at all", MOMENT, False),
    ],
)
def test_a_partition_is_over_once_its_value_is_over_everywhere(
    kind: str, value: str | None, moment: datetime, expected: bool
) -> None:
    assert bound(kind, moment).covers(value) is expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(
            ("string", text)
            for text in ("north", "2026-3-8", "2026-03", "202603-08", "2026-02-30", "1899-12-31", "2026-03-08T00")
        ),
        *(("integer", text) for text in ("1", "20261301", "12345678", "-20260308")),
    ],
)
def test_a_text_or_number_that_is_no_day_is_named(kind: str, value: str) -> None:
    with pytest.raises(NoDay, match=value):
        bound(kind).covers(value)


def statistics(greatest: Any, nulls: Any = 0) -> dict[str, Any]:
    return {"numRecords": 2, "maxValues": {"ts": greatest}, "nullCount": {"ts": nulls}}


@pytest.mark.parametrize(
    ("kind", "greatest", "expected"),
    [
        ("timestamp", "2026-03-10T11:59:58.000Z", True),
        ("timestamp", "2026-03-10T11:59:58.001Z", False),
        ("timestamp", "2026-03-10T12:59:58.000+01:00", True),
        ("timestamp", "2026-03-10T11:59:58.000+01:00", True),
        ("timestamp", "2026-03-10T11:59:58.000-01:00", False),
        ("timestamp", "2026-03-01T00:00:00.000", False),
        ("timestamp", "2026-03-01", False),
        ("timestamp", 1_700_000_000, False),
        ("timestamp", "0001-01-01T00:00:00+18:00", False),
        ("timestamp_ntz", "2026-03-09T23:59:58.000", True),
        ("timestamp_ntz", "2026-03-09T23:59:58.001", False),
        ("timestamp_ntz", "2026-03-01T00:00:00.000Z", False),
        ("date", "2026-03-08", True),
        ("date", "2026-03-09", False),
        ("date", "+10000-01-01", False),
    ],
)
def test_a_file_is_over_by_its_greatest_value_which_may_be_cut_to_a_second(
    kind: str, greatest: Any, expected: bool
) -> None:
    assert bound(kind).covers_all(statistics(greatest), "ts") is expected


@pytest.mark.parametrize(
    "said",
    [
        {},
        statistics("2001-01-01", nulls=1),
        statistics("2001-01-01", nulls=None),
        statistics("2001-01-01", nulls=False),
        statistics(None),
        {"maxValues": {"ts": "2001-01-01"}},
        {"maxValues": [], "nullCount": 0},
        {"maxValues": {"other": "2001-01-01"}, "nullCount": {"ts": 0}},
    ],
)
def test_a_file_whose_statistics_leave_a_doubt_is_not_over(said: dict[str, Any]) -> None:
    assert bound("date").covers_all(statistics("2001-01-01"), "ts")
    assert not bound("date").covers_all(said, "ts"), json.dumps(said)


@pytest.mark.parametrize(
    ("kind", "least", "expected"),
    [
        ("timestamp", "2026-03-10T11:59:58.999Z", True),
        ("timestamp", "2026-03-10T11:59:59.000Z", False),
        ("timestamp", "no time", True),
        ("timestamp", None, True),
        ("date", "2026-03-08", True),
        ("date", "2026-03-09", False),
    ],
)
def test_a_file_may_hold_rows_that_are_over_unless_its_least_value_is_not(
    kind: str, least: Any, expected: bool
) -> None:
    assert bound(kind).may_cover({"minValues": {"ts": least}}, "ts") is expected
    assert bound(kind).may_cover({}, "ts")


TIMES = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1))  # noqa: DTZ001 - in UTC


@given(TIMES, st.integers(-72, 72), st.sampled_from([0, 1, 1_000_000, 3_599_999_999]), st.integers(1, 36_000))
def test_nothing_is_over_that_is_younger_than_asked_anywhere(
    now: datetime, hours: int, more_us: int, days: int
) -> None:
    """The last zone is twelve hours behind UTC, so the day that has ended there is over by the age and half a day."""
    rule = RowExpiry("ts", days * DAY_S)
    now, age = now.replace(microsecond=0), timedelta(days=days)
    value = now - age + timedelta(hours=hours, microseconds=more_us)
    day_end = value.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1, hours=12)
    is_over = {
        "timestamp": value + age < now,
        "timestamp_ntz": value + timedelta(hours=12) + age < now,
        "date": day_end + age <= now,
    }
    for kind, expected in is_over.items():
        found = rule.bound(kind, seconds(now) * 1000)
        text = f"{value.date()}" if kind == "date" else value.isoformat(timespec="microseconds")
        zone = "Z" if kind == "timestamp" else ""
        assert not found.covers_all(statistics(text + zone), "ts") or expected
        assert not found.covers(text) or expected
        if kind == "date":
            assert found.covers(text) is expected
