"""Work windows: the times of a week at which jobs of a table may start, by the clocks of a zone.

    Mon-Fri 20:00-06:00 Europe/Berlin; Sat-Sun 00:00-24:00 Europe/Berlin

A window whose end is not after its start ends on the next day. Where clocks are changed, it begins, and ends, at the
first moment at which they show that time or a later one. Zones are read from the machine's time zone data, once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

LIGHT_KINDS = frozenset(
    {"compact", "checkpoint", "rewrite_manifests", "merge_deletes", "convert_deletes", "set_properties"}
)
"""Kinds of jobs that are short, unless they are full rewrites; as in lua/include/admission.lua, tests compare them."""

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTES_PER_DAY = 1_440
MINUTE_MS = 60_000
HORIZON_MS = 14 * MINUTES_PER_DAY * MINUTE_MS
"""Times that the queue knows in advance: without any decider for so long, nothing starts any more."""

MAX_WINDOWS = 20
"""Windows of a table at most: they are all computed for each claim of a job."""

_WINDOW = re.compile(
    r"(?:(?P<first>[a-z]{3})(?:\s*-\s*(?P<last>[a-z]{3}))?\s+)?"
    r"(?P<start>\d{1,2}:\d{2})\s*-\s*(?P<end>\d{1,2}:\d{2})\s+(?P<zone>[A-Za-z0-9_+/-]+)",
    re.IGNORECASE,
)
_EXAMPLE = "Mon-Fri 20:00-06:00 Europe/Berlin"


@dataclass(frozen=True, slots=True)
class WorkWindow:
    """Days on which it begins, 0 for Monday; start and end in minutes of the day, the end up to 24:00; and its zone."""

    days: frozenset[int]
    start_min: int
    end_min: int
    zone: str

    def on(self, day: date) -> tuple[int, int]:
        """Return when the window that begins on a day opens and closes, in milliseconds since 1970."""
        is_next_day = self.end_min <= self.start_min
        closes_on = day + timedelta(days=1) if is_next_day else day
        return _moment_ms(day, self.start_min, self.zone), _moment_ms(closes_on, self.end_min, self.zone)


@lru_cache(maxsize=1_024)
def parse_work_windows(text: str) -> tuple[WorkWindow, ...]:
    """Read windows, separated by semicolons. Raises ValueError with what is wrong, and what is expected."""
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not 1 <= len(parts) <= MAX_WINDOWS:
        raise ValueError(f"expected 1 to {MAX_WINDOWS} windows such as {_EXAMPLE}, separated by semicolons")
    return tuple(map(_window, parts))


def intervals(windows: Sequence[WorkWindow], since_ms: int, until_ms: int) -> tuple[tuple[int, int], ...]:
    """Return when work is allowed in a span: openings and closings, ascending, without overlap and without touching.

    An interval that began before the span or ends after it is whole.
    """
    found: list[tuple[int, int]] = []
    for window in windows:
        zone = _zone(window.zone)
        day = datetime.fromtimestamp(since_ms / 1000, zone).date() - timedelta(days=1)
        last = datetime.fromtimestamp(until_ms / 1000, zone).date()
        while day <= last:
            opens, closes = window.on(day)
            if day.weekday() in window.days and opens < closes and closes > since_ms and opens < until_ms:
                found.append((opens, closes))
            day += timedelta(days=1)
    merged: list[tuple[int, int]] = []
    for opens, closes in sorted(found):
        if merged and opens <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], closes)
        else:
            merged.append((opens, closes))
    return tuple(merged)


@dataclass(frozen=True, slots=True)
class HeldWork:
    """Work that waits for windows, `all` or `heavy` work, and the windows as they are configured."""

    held: str
    windows: str

    @staticmethod
    def of_limit(text: str) -> "HeldWork":
        """Read what `as_limit` wrote."""
        held, _, windows = text.partition(" ")
        return HeldWork(held, windows)

    @staticmethod
    def of_queue(text: str) -> "HeldWork":
        """Read what `in_queue` wrote."""
        held, _, rest = text.partition("|")
        return HeldWork(held, rest.partition("|")[2])

    @property
    def as_limit(self) -> str:
        """Text that names the windows without their times."""
        return f"{self.held} {self.windows}"

    def in_queue(self, now_ms: int) -> str:
        """Return the text that the queue's scripts read, with the times of the next two weeks."""
        times = intervals(parse_work_windows(self.windows), now_ms, now_ms + HORIZON_MS)
        return f"{self.held}|{','.join(f'{opens}-{closes}' for opens, closes in times)}|{self.windows}"


@dataclass(frozen=True, slots=True)
class QueueWindow:
    """A work window as the queue holds it: the work that waits for it, and when it opens and closes."""

    held: HeldWork
    times: tuple[tuple[int, int], ...]

    @staticmethod
    def decode(text: str) -> "QueueWindow":
        """Read what `HeldWork.in_queue` wrote."""
        times = (one.split("-") for one in text.split("|")[1].split(",") if one)
        return QueueWindow(HeldWork.of_queue(text), tuple((int(opens), int(closes)) for opens, closes in times))

    def is_open(self, now_ms: int) -> bool:
        """Return whether all work may start."""
        return any(opens <= now_ms < closes for opens, closes in self.times)

    def changes_ms(self, now_ms: int) -> int | None:
        """Return when it closes or, if it is closed, opens; None if that is not known."""
        return min((at for interval in self.times for at in interval if at > now_ms), default=None)

    def holds(self, kind: str, extent: int, now_ms: int) -> bool:
        """Return whether a job of this kind and extent waits, unless it may start at any time."""
        is_light = self.held.held == "heavy" and kind in LIGHT_KINDS and extent == 0
        return not is_light and not self.is_open(now_ms)


def holds_all(window: str, now_ms: int) -> bool:
    """Return whether a table's window, as the queue holds it, is closed to all work now."""
    found = QueueWindow.decode(window)
    return found.held.held == "all" and not found.is_open(now_ms)


def _window(text: str) -> WorkWindow:
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a window such as {_EXAMPLE}, found {text[:60]!r}")
    start, end = _minutes(found["start"], MINUTES_PER_DAY - 1), _minutes(found["end"], MINUTES_PER_DAY)
    if start == end:
        raise ValueError(f"the window {text[:60]!r} ends when it begins; a whole day is 00:00-24:00")
    first = _day(found["first"]) if found["first"] else 0
    last = _day(found["last"]) if found["last"] else first if found["first"] else len(DAYS) - 1
    days = frozenset((first + number) % len(DAYS) for number in range((last - first) % len(DAYS) + 1))
    _zone(found["zone"])
    return WorkWindow(days, start, end, found["zone"])


def _minutes(text: str, greatest: int) -> int:
    hours, minutes = map(int, text.split(":"))
    found = 60 * hours + minutes
    if minutes > 59 or found > greatest:  # noqa: PLR2004 - minutes of an hour
        raise ValueError(f"{text} is no time of a day; expected 00:00 to 23:59, or 24:00 at the end")
    return found


def _day(text: str) -> int:
    if text.lower() not in DAYS:
        raise ValueError(f"{text} is no day; expected {', '.join(day.capitalize() for day in DAYS)}")
    return DAYS.index(text.lower())


@lru_cache(maxsize=128)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as problem:
        raise ValueError(f"no time zone {name!r} here; expected one of the IANA's, such as Europe/Berlin") from problem


def _moment_ms(day: date, minute: int, zone: str) -> int:
    """Return the first moment at which the clocks of a zone show a minute of a day, or a later one."""
    shown = datetime(day.year, day.month, day.day) + timedelta(minutes=minute)  # noqa: DTZ001 - what clocks show
    there = _zone(zone)
    earliest = shown.replace(tzinfo=there, fold=0).astimezone(UTC)
    later = shown.replace(tzinfo=there, fold=1).astimezone(UTC)
    moment = earliest
    if later < earliest:
        # Clocks skip this minute: the one at which they do so.
        moment = later
        while moment.astimezone(there).replace(tzinfo=None) < shown:
            moment += timedelta(minutes=1)
    return round(moment.timestamp()) * 1000
