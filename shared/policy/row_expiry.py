"""Row expiry: how old the rows of a table may become, by one of its columns, and which of them are over.

    90 days of ts
    90 days of ts, rows

A row is over when its time lies before the moment that the age leaves. A date and a time without a zone are over only
when that is so everywhere on earth, UTC-12 last. What has no time is never over.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

from shared.policy.row_order import SortColumn

MAX_DAYS = 36_525
"""Greatest age: a hundred years."""

LAST_ZONE = timedelta(hours=12)
"""For how long it is still the same day, or the same time, somewhere after that was over in UTC."""

STATISTICS_STEP = timedelta(seconds=1)
"""The coarsest unit to which writers cut the greatest timestamp in a file's statistics."""

_DAY_S = 86_400
_UNITS_S = {"hour": 3_600, "day": _DAY_S, "week": 7 * _DAY_S}
_RULE = re.compile(r"(\d{1,7})\s*([a-z]+?)s?\s+of\s+(?:`([^`]+)`|(\w+))(\s*,\s*rows)?", re.IGNORECASE)
_DAY = re.compile(r"(\d{4})(-?)(\d\d)\2(\d\d)")
_DAY_CHARS = len("2026-01-01")
_FIRST_YEAR = 1900
"""A number of eight digits before this year is no day."""


class NoDay(ValueError):  # noqa: N818 - what was found
    """A value of a partition column of text or numbers that is no day, so that the others may be none either."""


@dataclass(frozen=True, slots=True)
class RowExpiry:
    """The column, by the name that users know, and the age in seconds from which on its rows are over.

    with_rows: files that hold others, too, are written again without them.
    """

    column: str
    age_s: int
    with_rows: bool = False

    def bound(self, kind: str, now_ms: int) -> "ExpiryBound":
        """Return what is over at a time in milliseconds since 1970, in a column of this type of Delta's."""
        return ExpiryBound(self.column, kind, now_ms // 1000 - self.age_s)


@lru_cache(maxsize=256)
def parse_row_expiry(text: str) -> RowExpiry:
    """Read a rule; raises ValueError with what is expected."""
    found = _RULE.fullmatch(text.strip())
    if found is None or found[2].lower() not in _UNITS_S:
        raise ValueError(
            "expected an age in hours, days or weeks and a column, such as 90 days of ts, or 90 days of ts, rows"
        )
    age_s = int(found[1]) * _UNITS_S[found[2].lower()]
    if not _DAY_S <= age_s <= MAX_DAYS * _DAY_S:
        raise ValueError(f"expected an age from 1 day to {MAX_DAYS} days")
    return RowExpiry(found[3] or found[4], age_s, found[5] is not None)


@dataclass(frozen=True, slots=True)
class ExpiryBound:
    """The moment before which values of a column are over, in seconds since 1970; `kind` is its type in Delta."""

    column: str
    kind: str
    moment_s: int

    @property
    def first_kept(self) -> date | datetime:
        """The least value that is not over: a day, or a time without a zone, which for a timestamp is in UTC."""
        moment = datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(seconds=self.moment_s)
        if self.kind == "timestamp":
            return moment
        return moment - LAST_ZONE if self.kind == "timestamp_ntz" else (moment - LAST_ZONE).date()

    @property
    def last_day(self) -> date:
        """The last day that has values which are over, by the clocks of any zone."""
        bound = self.first_kept
        return (bound.date() if isinstance(bound, datetime) else bound) + timedelta(days=1)

    @property
    def condition(self) -> str:
        """The condition in SQL that holds for rows that are over, with the bound as a literal."""
        name, bound = str(SortColumn(self.column)).removesuffix(" ASC"), self.spelled
        if self.kind in ("integer", "long"):
            return f"{name} < {bound.replace('-', '')}"
        return f"{name} < '{bound}'" if self.kind == "string" else f"{name} < {self.kind.upper()} '{bound}'"

    @property
    def spelled(self) -> str:
        """The first value that is kept as engines read it from a text, with a zone where its type has one."""
        bound = self.first_kept
        if not isinstance(bound, datetime):
            return bound.isoformat()
        return bound.isoformat(sep=" ") + ("Z" if self.kind == "timestamp" else "")

    def covers(self, value: str | None) -> bool:
        """Return whether the canonical value of a partition is over; null is not.

        Raises NoDay for a text or number that is no day. A timestamp may have been written in any zone.
        """
        if value is None:
            return False
        if self.kind in ("timestamp", "timestamp_ntz"):
            found = _time(value, has_zone=False)
            return found is not None and found < ExpiryBound(self.column, "timestamp_ntz", self.moment_s).first_kept
        day = _day(value, is_plain=self.kind in ("string", "integer", "long"))
        return day is not None and day < self.first_kept

    def covers_all(self, statistics: Mapping[str, Any], name: str) -> bool:
        """Return whether all rows of a file are over by its statistics in the log, where the column has this name.

        Only where they say that no value is null, and what the greatest one is at most.
        """
        nulls, greatest = (_statistic(statistics, section, name) for section in ("nullCount", "maxValues"))
        if type(nulls) is not int or nulls != 0:
            return False
        found = self._read(greatest)
        if isinstance(found, datetime):
            return found + STATISTICS_STEP <= self.first_kept
        return found is not None and found < self.first_kept

    def may_cover(self, statistics: Mapping[str, Any], name: str) -> bool:
        """Return whether a row of a file may be over by its statistics in the log, which may say nothing."""
        least = self._read(_statistic(statistics, "minValues", name))
        return least is None or least < self.first_kept

    def _read(self, value: object) -> date | datetime | None:
        if not isinstance(value, str):
            return None
        return _day(value, is_plain=False) if self.kind == "date" else _time(value, has_zone=self.kind == "timestamp")


def _statistic(statistics: Mapping[str, Any], section: str, name: str) -> object:
    values = statistics.get(section)
    return values.get(name) if isinstance(values, Mapping) else None


def _day(text: str, *, is_plain: bool) -> date | None:
    """Return the day that a text names, None if it names none; of a column of texts or numbers, NoDay is raised."""
    found = _DAY.fullmatch(text)
    try:
        if found is not None and (found[2] or is_plain):
            day = date(int(found[1]), int(found[3]), int(found[4]))
            if not is_plain or day.year >= _FIRST_YEAR:
                return day
    except ValueError:
        pass  # A day that no calendar has.
    if is_plain:
        raise NoDay(text)
    return None


def _time(text: str, *, has_zone: bool) -> datetime | None:
    """Return a time, in UTC where it has a zone; None for any other text, and for years that Python has no date for."""
    try:
        found = datetime.fromisoformat(text)
        if len(text) <= _DAY_CHARS or (found.tzinfo is not None) is not has_zone:
            return None
        return found.astimezone(UTC).replace(tzinfo=None) if has_zone else found
    except (ValueError, OverflowError):
        return None
