"""Moments that a filter compares partition values with, in UTC: fixed ones, and those that move with the time.

    date '2026-01-31'    timestamp '2026-01-31 13:00:00'
    current_date - 7 days    current_timestamp() - interval 2 hours

A moving moment never goes back while time goes on, so a comparison with it changes at two moments at most.
"""

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

MAX_DAYS = 36_525
"""Greatest distance of a moving moment from now: a hundred years."""

LITERAL = r"(?:date|timestamp)\s*'[^']*'"
"""A fixed moment, as SQL spells it."""

MOVING = r"current_(?:date|timestamp)\b(?:\s*\(\s*\))?(?:\s*[+-]\s*(?:interval\s+)?\d+\s*[a-z]+\b)?"
"""A moving moment; `parse_moment` knows the units."""

EXPECTED = "moments such as current_date - 7 days or current_timestamp - 2 hours"

_MOVING = re.compile(
    r"current_(?P<base>date|timestamp)[\s()]*(?:(?P<sign>[+-])\s*(?:interval\s+)?(?P<count>\d+)\s*(?P<unit>[a-z]+))?",
    re.IGNORECASE,
)
_HOURS = {"hour": 1, "day": 24, "week": 168}
_MONTHS_PER_YEAR = 12
_MAX_MONTHS = 1_200
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - all moments are in UTC
_LAST = datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001
_LAST_S = int((_LAST - _EPOCH).total_seconds())
_DAY_S = 86_400
_MARGIN_DAYS = 4
"""Days by which months that were added and taken away again may be wrong, and one."""

_DAY_CHARS = len("2026-01-31")
_PLAIN_DAY = re.compile(r"[0-9]{8}")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_FIRST_YEAR = 1900
"""A number of eight digits before this year is no day."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A fixed moment, in UTC, as a time without a zone; `is_day` if it is written as a day."""

    at: datetime
    is_day: bool

    def __str__(self) -> str:
        if self.is_day:
            return f"date '{self.at.date().isoformat()}'"
        return f"timestamp '{self.at.isoformat(sep=' ')}'"

    def when(self, now_ms: int) -> "Moment":  # noqa: ARG002 - as of a moving one
        """Return the moment itself."""
        return self


@dataclass(frozen=True, slots=True)
class MovingMoment:
    """The begin of the present day, or the present second, and a distance from it; months only from the day."""

    is_day: bool
    hours: int = 0
    months: int = 0

    def when(self, now_ms: int) -> Moment:
        """Return which moment it is at a time in ms since 1970; beyond the calendar, the calendar's last."""
        second = min(max(0, now_ms // 1000), _LAST_S)
        now = _EPOCH + timedelta(seconds=second - second % _DAY_S if self.is_day else second)
        try:
            found = _add_months(now, self.months) + timedelta(hours=self.hours)
        except (OverflowError, ValueError):
            return Moment(_LAST, is_day=False)
        return Moment(found, self.is_day and self.hours % 24 == 0)


@lru_cache(maxsize=4_096)
def changes_ms(moving: MovingMoment, value: datetime) -> tuple[int, ...]:
    """Return when a moving moment reaches a fixed one, and when it passes it, in ms from 1970 on, where it does."""
    found = (_first_ms(moving, lambda at: at >= value, value), _first_ms(moving, lambda at: at > value, value))
    return tuple(at_ms for at_ms in found if at_ms is not None)


def _first_ms(moving: MovingMoment, holds: Callable[[datetime], bool], value: datetime) -> int | None:
    """Return the first time from 1970 on at which a condition holds, which depends on whether `value` is reached."""
    step_s, margin = (_DAY_S, _MARGIN_DAYS) if moving.is_day else (1, 1)
    try:
        near = _add_months(value - timedelta(hours=moving.hours), -moving.months)
    except (OverflowError, ValueError):
        return None
    middle = int((near - _EPOCH).total_seconds()) // step_s
    steps = range(max(0, middle - margin), max(0, min(middle + margin, _LAST_S // step_s)) + 1)
    found = bisect_left(steps, x=True, key=lambda step: holds(moving.when(step * step_s * 1000).at))
    return None if found == len(steps) else steps[found] * step_s * 1000


def parse_moment(text: str) -> Moment | MovingMoment:
    """Read what `LITERAL` or `MOVING` matches; raises ValueError with what is expected."""
    found = _MOVING.fullmatch(text)
    if found is None:
        return _fixed(text)
    is_day = found["base"].lower() == "date"
    if found["unit"] is None:
        return MovingMoment(is_day)
    unit, count = found["unit"].lower().removesuffix("s"), found["count"]
    if unit not in _HOURS and unit != "month":
        raise ValueError(f"expected hours, days, weeks or months instead of {found['unit']!r} in {text!r}")
    if unit == "month" and not is_day:
        # At the end of a longer month it would go back each midnight, to the begin of the same last day.
        raise ValueError(f"expected months beside current_date, and hours, days or weeks in {text!r}")
    greatest = _MAX_MONTHS if unit == "month" else MAX_DAYS * 24 // _HOURS[unit]
    if len(count) > len(str(greatest)) or int(count) > greatest:
        raise ValueError(f"expected at most {greatest} {unit}s in {text!r}")
    signed = int(found["sign"] + count)
    return MovingMoment(is_day, months=signed) if unit == "month" else MovingMoment(is_day, signed * _HOURS[unit])


@lru_cache(maxsize=4_096)
def moment_of(value: str) -> datetime | None:
    """Return the moment at which the time begins that a partition value names, in UTC; None if it names none.

    Such as 2026-01-31, 20260131, 2026-01, 2026-01-31-13 or 2026-01-31 13:00:00, which is in UTC without a zone.
    """
    text = f"{value}-01" if _MONTH.fullmatch(value) else value
    is_plain = text.isdecimal()
    if not (_PLAIN_DAY.fullmatch(text) if is_plain else len(text) >= _DAY_CHARS):
        return None
    try:
        found = datetime.fromisoformat(text)
        offset = found.utcoffset() or timedelta()
        found = found.replace(tzinfo=None) - offset
    except (ValueError, OverflowError):
        return None
    return None if is_plain and found.year < _FIRST_YEAR else found


def _fixed(text: str) -> Moment:
    word, _, rest = text.partition("'")
    is_day, value = word.strip().lower() == "date", rest.removesuffix("'")
    found = moment_of(value)
    if found is None or (is_day and (len(value) > _DAY_CHARS or value.isdecimal())):
        example = "date '2026-01-31'" if is_day else "timestamp '2026-01-31 13:00:00'"
        raise ValueError(f"expected a moment such as {example} instead of {text!r}")
    return Moment(found, is_day)


def _add_months(at: datetime, months: int) -> datetime:
    """Return the same day some months later; of a shorter month, the last."""
    if not months:
        return at
    month = at.year * _MONTHS_PER_YEAR + at.month - 1 + months
    year, month = month // _MONTHS_PER_YEAR, month % _MONTHS_PER_YEAR + 1
    return at.replace(year=year, month=month, day=min(at.day, monthrange(year, month)[1]))
