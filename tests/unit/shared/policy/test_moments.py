"""Moments in filters: what they are, and which partition values they are compared with."""

from datetime import UTC, datetime

import pytest

from shared.partitions import partition_key
from shared.policy.moments import Moment, MovingMoment, changes_ms, moment_of, parse_moment
from shared.policy.partition_filter import (
    describe_moving,
    is_relative,
    lets_in,
    literal_filter,
    next_entry_ms,
    parse_filter,
    permits,
    permitted_from_ms,
)
from shared.policy.properties import read_properties
from shared.table import PartitionColumn, PartitionKey

COLUMNS = (PartitionColumn("dt", "col-1", "string"),)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOW_MS = ms("2026-03-31T13:30:15")


def partition(value: str | None) -> PartitionKey:
    return partition_key(COLUMNS, {"col-1": value})


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("current_date", "date '2026-03-31'"),
        ("CURRENT_DATE()", "date '2026-03-31'"),
        ("current_date - 7 days", "date '2026-03-24'"),
        ("current_date+1 week", "date '2026-04-07'"),
        ("current_date - interval 1 month", "date '2026-02-28'"),
        ("current_date + 11 months", "date '2027-02-28'"),
        ("current_date - 25 months", "date '2024-02-29'"),
        ("current_date - 2 hours", "timestamp '2026-03-30 22:00:00'"),
        ("current_timestamp ( ) - 2 HOURS", "timestamp '2026-03-31 11:30:15'"),
        ("current_timestamp", "timestamp '2026-03-31 13:30:15'"),
        ("date '2026-03-01'", "date '2026-03-01'"),
        ("timestamp '2026-03-01 13:00:00'", "timestamp '2026-03-01 13:00:00'"),
    ],
)
def test_a_filter_says_what_its_moments_are(written: str, literal: str) -> None:
    text = f"dt is not null and dt >= {written} and dt != 'x'"
    assert literal_filter(text, NOW_MS) == f"dt is not null and dt >= {literal} and dt != 'x'"
    assert is_relative(text) is written.lower().startswith("current")
    assert not is_relative(literal_filter(text, NOW_MS))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("current_date * 2", "stopped at"),
        ("current_date - 7", "stopped at"),
        ("current_date - 1 month - 1 day", "stopped at"),
        ("now()", "current_date - 7 days or current_timestamp - 2 hours"),
        ("current_date - 7 fortnights", "expected hours, days, weeks or months instead of 'fortnights'"),
        ("current_date - 36526 days", "expected at most 36525 days"),
        ("current_date - 876601 hours", "expected at most 876600 hours"),
        (f"current_date - {'9' * 500} weeks", "expected at most 5217 weeks"),
        ("current_date - 1201 months", "expected at most 1200 months"),
        ("current_timestamp - 1 month", "expected months beside current_date"),
        ("date '2026-02-30'", "expected a moment such as date '2026-01-31'"),
        ("date '20260131'", "expected a moment such as date '2026-01-31'"),
        ("date '2026-01-31 13:00:00'", "expected a moment such as date '2026-01-31'"),
        ("timestamp 'noon'", "expected a moment such as timestamp '2026-01-31 13:00:00'"),
        ("timestamp '0001-01-01 00:00:00+14:00'", "expected a moment such as timestamp"),
    ],
)
def test_what_is_no_moment_is_refused_with_what_is_expected(written: str, expected: str) -> None:
    layer = read_properties({"lakewright.filter": f"dt >= {written}"})
    assert [one.property for one in layer.issues if one.is_blocking] == ["lakewright.filter"]
    assert expected in layer.issues[0].reason


def test_lists_hold_no_moments_and_a_column_may_be_called_like_one() -> None:
    with pytest.raises(ValueError, match="stopped at 'dt in"):
        parse_filter("dt in (current_date)")
    with pytest.raises(ValueError, match=r"expected conditions such as dt >= '2026-01-01' and country in \('de'\), st"):
        parse_filter("dt like 'x'")
    assert permits("current_date = 'x'", PartitionKey('{"current_date":"x"}'), (), NOW_MS)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("2026-01-31", "2026-01-31T00:00:00"),
        ("20260131", "2026-01-31T00:00:00"),
        ("2026-01", "2026-01-01T00:00:00"),
        ("2026-01-31-13", "2026-01-31T13:00:00"),
        ("2026-01-31 13", "2026-01-31T13:00:00"),
        ("2026-01-31 13:05:00", "2026-01-31T13:05:00"),
        ("2026-01-31T13:05:00.000001Z", "2026-01-31T13:05:00.000001"),
        ("2026-01-31 13:05:00+02:00", "2026-01-31T11:05:00"),
        ("2026", None),
        ("17", None),
        ("18991231", None),
        ("1769864400", None),
        ("2026-02-30", None),
        ("\uff12\uff10\uff12\uff16\uff10\uff11\uff13\uff11", None),
        ("0001-01-01T00:00+14:00", None),
        ("unknown", None),
        ("__HIVE_DEFAULT_PARTITION__", None),
        ("", None),
    ],
)
def test_a_value_is_the_moment_at_which_its_time_begins_or_satisfies_nothing(value: str, named: str | None) -> None:
    assert moment_of(value) == (None if named is None else datetime.fromisoformat(named))
    if named is None:
        assert not any(
            permits(f"dt {one} current_date", partition(value), COLUMNS, NOW_MS) for one in ("<", "!=", "=", ">")
        )
        assert next_entry_ms("dt < current_date", partition(value), COLUMNS, NOW_MS) is None


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("20260331", "dt = current_date", True),
        ("2026-03-31", "dt >= current_date", True),
        ("2026-03-31", "dt < current_timestamp", True),
        ("2026-03-31-11", "dt < current_timestamp - 2 hours", True),
        ("2026-03-31-12", "dt < current_timestamp - 2 hours", False),
        ("2026-03-31T15:00:00+04:00", "dt < current_timestamp - 2 hours", True),
        ("2026-03-31 00:00:00", "dt == date '2026-03-31'", True),
        ("2026-03-30", "dt <> current_date", True),
        (None, "dt <> current_date", False),
        ("2026-03-30", "region < current_date", False),
    ],
)
def test_moments_compare_as_moments(value: str | None, text: str, expected: bool) -> None:
    assert permits(text, partition(value), COLUMNS, NOW_MS) is expected
    assert permits(literal_filter(text, NOW_MS), partition(value), COLUMNS, 0) is expected


def test_a_partition_enters_at_the_moment_at_which_the_filter_lets_it_in() -> None:
    midnight = ms("2026-04-01T00:00:00")
    today = partition("2026-03-31")
    assert next_entry_ms("dt < current_date", today, COLUMNS, NOW_MS) == midnight
    assert next_entry_ms("dt < current_date", today, COLUMNS, midnight) is None, "it is in"
    assert permitted_from_ms("dt < current_date", today, COLUMNS, NOW_MS) == midnight
    assert permitted_from_ms("dt < current_date", today, COLUMNS, midnight) == midnight
    assert permitted_from_ms("dt >= current_date - 7 days", today, COLUMNS, NOW_MS) == NOW_MS
    assert next_entry_ms("dt >= current_date - 7 days", today, COLUMNS, NOW_MS) is None, "it only leaves"
    assert permitted_from_ms("dt >= current_date", partition("2026-03-30"), COLUMNS, NOW_MS) is None
    assert next_entry_ms("dt != current_date", today, COLUMNS, ms("2026-03-30T12:00:00")) == midnight, "it was in"
    assert next_entry_ms("dt < current_date and dt < '2026-01-01'", today, COLUMNS, NOW_MS) is None
    assert next_entry_ms("dt < '2026-01-01'", today, COLUMNS, NOW_MS) is None
    assert next_entry_ms("dt < date '2026-01-01'", today, COLUMNS, NOW_MS) is None
    assert next_entry_ms(None, today, COLUMNS, NOW_MS) is None
    assert next_entry_ms("dt < current_date and dt is not null", partition(None), COLUMNS, NOW_MS) is None


def test_filters_that_let_partitions_in_are_told_from_those_that_they_only_leave() -> None:
    assert [lets_in(f"dt {one} current_date") for one in ("<", "<=", "=", "!=")] == [True] * 4
    assert [lets_in(f"dt {one} current_date") for one in (">", ">=")] == [False] * 2
    assert not lets_in(None)
    assert not lets_in("dt < '2026-01-01'")
    assert not is_relative(None)


def test_a_note_says_what_a_filter_that_moves_is_now() -> None:
    assert describe_moving("dt >= current_date - 7 days", NOW_MS) == (
        "lakewright.filter = dt >= current_date - 7 days is now dt >= date '2026-03-24'",
    )
    assert describe_moving("dt >= '2026-01-01'", NOW_MS) == describe_moving(None, NOW_MS) == ()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_at_the_ends_of_the_calendar_moments_stay_in_it() -> None:
    last = Moment(at("9999-12-31T23:59:59"), is_day=False)
    end_ms = ms("9999-12-31T23:59:59")
    assert MovingMoment(is_day=True, hours=24).when(end_ms) == last
    assert MovingMoment(is_day=True, months=1).when(10**18) == last
    assert MovingMoment(is_day=False).when(-1).at == at("1970-01-01")
    day = MovingMoment(is_day=True)
    assert changes_ms(day, at("9999-12-31")) == (ms("9999-12-31T00:00:00"),), "it is never passed"
    assert changes_ms(day, at("9999-12-31T01:00:00")) == ()
    assert changes_ms(day, at("1000-01-01")) == (0, 0)
    assert changes_ms(MovingMoment(is_day=True, hours=-48), at("9999-12-31")) == ()
    assert parse_moment("date '9999-12-31'").when(0).at == at("9999-12-31")
