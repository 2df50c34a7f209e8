"""Work windows: how they are written, and when they open and close, over both changes of clocks in three zones."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.policy.work_windows import (
    HORIZON_MS,
    LIGHT_KINDS,
    HeldWork,
    QueueWindow,
    holds_all,
    intervals,
    parse_work_windows,
)
from shared.queue.lua_library import source

DAY_MS = 86_400_000
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def shown(text: str, since: str, days: int) -> list[str]:
    """The openings and closings of windows in some days, in UTC, to the minute."""
    found = intervals(parse_work_windows(text), ms(since), ms(since) + days * DAY_MS)
    return [" ".join(datetime.fromtimestamp(at / 1000, UTC).isoformat()[5:16] for at in interval) for interval in found]


@pytest.mark.parametrize(
    ("text", "since", "expected"),
    [
        # A night over the change is an hour shorter or longer, and begins and ends when clocks show it.
        ("Sat 20:00-06:00 Europe/Berlin", "2026-03-28", ["03-28T19:00 03-29T04:00"]),
        ("Sat 20:00-06:00 Europe/Berlin", "2026-10-24", ["10-24T18:00 10-25T05:00"]),
        ("Sat 20:00-06:00 America/New_York", "2026-03-07", ["03-08T01:00 03-08T10:00"]),
        ("Sat 20:00-06:00 America/New_York", "2026-10-31", ["11-01T00:00 11-01T11:00"]),
        # Half an hour only.
        ("Sat 20:00-06:00 Australia/Lord_Howe", "2026-04-04", ["04-04T09:00 04-04T19:30"]),
        ("Sat 20:00-06:00 Australia/Lord_Howe", "2026-10-03", ["10-03T09:30 10-03T19:00"]),
        # Clocks skip 02:30: it begins, or ends, when they do so, at 01:00 UTC.
        ("Sun 02:30-05:00 Europe/Berlin", "2026-03-29", ["03-29T01:00 03-29T03:00"]),
        ("Sun 00:00-02:30 Europe/Berlin", "2026-03-29", ["03-28T23:00 03-29T01:00"]),
        ("Sun 02:10-02:50 Europe/Berlin", "2026-03-29", []),
        ("Sun 02:05-03:00 America/New_York", "2026-03-08", []),
        ("Sun 02:15-04:00 Australia/Lord_Howe", "2026-10-03", ["10-03T15:30 10-03T17:00"]),
        # Clocks show 02:30 twice: the first time counts.
        ("Sun 02:30-05:00 Europe/Berlin", "2026-10-25", ["10-25T00:30 10-25T04:00"]),
        ("Sun 00:00-02:30 Europe/Berlin", "2026-10-25", ["10-24T22:00 10-25T00:30"]),
        ("Sun 01:30-03:00 America/New_York", "2026-11-01", ["11-01T05:30 11-01T08:00"]),
        ("Sun 01:45-03:00 Australia/Lord_Howe", "2026-04-04", ["04-04T14:45 04-04T16:30"]),
    ],
)
def test_windows_follow_the_clocks_of_their_zone(text: str, since: str, expected: list[str]) -> None:
    assert [one for one in shown(text, since, 2) if one[:5] >= since[5:10] or one in expected] == expected


def test_windows_that_overlap_or_touch_are_one_and_days_may_wrap_around_the_week() -> None:
    assert shown("Sat-Sun 00:00-24:00 UTC", "2026-11-28", 2) == ["11-28T00:00 11-30T00:00"]
    assert shown("Sat 10:00-12:00 UTC; sat 11:00-13:00 UTC", "2026-11-28", 1) == ["11-28T10:00 11-28T13:00"]
    assert shown("Sun-Mon 1:00-2:00 UTC", "2026-11-28", 7) == ["11-29T01:00 11-29T02:00", "11-30T01:00 11-30T02:00"]
    assert len(shown("22:00-06:00 Asia/Kathmandu", "2026-11-28", 7)) in (7, 8)


def test_a_window_that_is_open_now_is_whole() -> None:
    assert shown("Fri 20:00-06:00 UTC", "2026-11-28", 1) == ["11-27T20:00 11-28T06:00"]


@given(
    st.sampled_from(ZONES),
    st.integers(0, 1439),
    st.integers(1, 1440),
    st.integers(ms("2026-01-01"), ms("2027-12-31")),
)
def test_away_from_changes_a_moment_is_inside_exactly_if_the_clocks_show_a_time_inside(
    zone: str, start: int, end: int, at_ms: int
) -> None:
    if start == end:
        return
    text = f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02} {zone}"
    here = datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone))
    days = [here + timedelta(days=number) for number in (-2, -1, 0, 1, 2)]
    if len({day.utcoffset() for day in days}) > 1:
        return
    minute = here.hour * 60 + here.minute
    wanted = start <= minute < end if start < end else minute >= start or minute < end

    found = intervals(parse_work_windows(text), at_ms - DAY_MS, at_ms + DAY_MS)
    assert any(opens <= at_ms < closes for opens, closes in found) == wanted
    assert all(opens < closes < later for (opens, closes), (later, _) in pairwise(found))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "expected 1 to 20 windows"),
        ("; ".join(["0:00-1:00 UTC"] * 21), "expected 1 to 20 windows"),
        ("at night", "expected a window such as Mon-Fri"),
        ("Mon-Fri 20:00-06:00", "expected a window such as Mon-Fri"),
        ("Mon-Fry 20:00-06:00 UTC", "Fry is no day; expected Mon, Tue"),
        ("20:00-24:01 UTC", "24:01 is no time of a day"),
        ("24:00-06:00 UTC", "24:00 is no time of a day"),
        ("20:60-06:00 UTC", "20:60 is no time of a day"),
        ("06:00-06:00 UTC", "a whole day is 00:00-24:00"),
        ("20:00-06:00 Europe/Atlantis", "no time zone 'Europe/Atlantis' here; expected one of the IANA's"),
        ("20:00-06:00 /etc/passwd", "no time zone"),
    ],
)
def test_what_is_no_window_is_refused_with_what_is_expected(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=r"expected|a whole day is") as refused:
        parse_work_windows(text)
    assert named in str(refused.value)


def test_the_queue_gets_the_times_of_two_weeks() -> None:
    held = HeldWork("heavy", "Mon-Sun 20:00-06:00 Europe/Berlin; Sat 00:00-24:00 UTC")
    now_ms = ms("2026-11-28")
    text = held.in_queue(now_ms)
    work, times, _ = text.split("|")

    assert (work, HeldWork.of_queue(text), HeldWork.of_limit(held.as_limit)) == ("heavy", held, held)
    last = [tuple(map(int, one.split("-"))) for one in times.split(",")][-1]
    assert last[0] < now_ms + HORIZON_MS <= last[1] + DAY_MS


def test_a_window_in_the_queue_says_whether_it_is_open_and_what_it_holds() -> None:
    held = QueueWindow.decode("heavy|10-20,30-40|0:00-1:00 UTC")
    assert [held.is_open(at_ms) for at_ms in (9, 10, 19, 20, 35, 40)] == [False, True, True, False, True, False]
    assert [held.changes_ms(at_ms) for at_ms in (9, 10, 20, 40)] == [10, 20, 30, None]
    assert not held.holds("compact", 0, 5)
    assert held.holds("compact", 1, 5)
    assert held.holds("vacuum", 0, 5)
    assert not held.holds("vacuum", 0, 10)
    assert not holds_all("heavy|10-20|x", 5)
    assert holds_all("all|10-20|x", 5)
    assert not holds_all("all|10-20|x", 10)
    assert holds_all("all||x", 10)


def test_decider_and_queue_agree_on_what_is_light() -> None:
    stated = re.search(r"LIGHT = \{(.*?)\}", source("include/admission"), re.DOTALL)
    assert stated is not None
    assert set(re.findall(r"(\w+) = true", stated[1])) == LIGHT_KINDS
