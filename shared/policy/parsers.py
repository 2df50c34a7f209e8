"""How values are spelled in table properties: one parser per kind of value, each with its bounds and their reason.

A parser raises ValueError with what it expects; the caller adds the name of the property.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from math import ceil
from typing import Any

from shared.policy.budgets import parse_budgets
from shared.policy.partition_filter import parse_filter
from shared.policy.row_expiry import parse_row_expiry
from shared.policy.row_order import parse_sort_columns
from shared.policy.work_windows import parse_work_windows

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

Parser = Callable[[str], Any]

_SIZE_UNITS = {"": 1, "b": 1, "k": KIB, "kb": KIB, "kib": KIB, "m": MIB, "mb": MIB, "mib": MIB}
_SIZE_UNITS |= {"g": GIB, "gb": GIB, "gib": GIB}
_TIME_UNITS = {"s": 1, "sec": 1, "second": 1, "min": 60, "m": 60, "minute": 60, "h": 3600, "hour": 3600}
_TIME_UNITS |= {"d": 86400, "day": 86400}
_GROUP = re.compile(r"[a-z0-9_-]{1,40}")
_QUANTITY = re.compile(r"(?:interval )?\s*(\d+(?:\.\d+)?)\s*([a-z]*)")


def parse_size(text: str) -> int:
    """Read a size such as `128mb`, `1 GiB` or `1048576` into bytes; kb, mb and gb are powers of 1024, as in Spark."""
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SIZE_UNITS:
        raise ValueError("expected a size such as 128mb, 1GiB or a number of bytes")
    return int(Fraction(match[1]) * _SIZE_UNITS[match[2]])


_US_PER_S = 10**6
_MAX_DURATION_US = 2**63 - 1
"""292,000 years: what an interval of Spark holds, which Delta reads durations as."""
_DURATION = re.compile(r"(?:interval\s+)?((?:\d+(?:\.\d+)?\s*[a-z]+\s*)+)")
_DELTA_INTERVAL = re.compile(r"(?:interval\s+)?((?:\d+\s+[a-z]+(?:\s+|$))+)")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_DELTA_UNITS_US = {"microsecond": 1, "millisecond": 1_000, "second": _US_PER_S, "minute": 60 * _US_PER_S}
_DELTA_UNITS_US |= {"hour": 3_600 * _US_PER_S, "day": 86_400 * _US_PER_S, "week": 7 * 86_400 * _US_PER_S}
_DURATION_UNITS_US = {unit: seconds * _US_PER_S for unit, seconds in _TIME_UNITS.items()}
_DURATION_UNITS_US |= {"ms": 1_000} | _DELTA_UNITS_US


def _duration_us(text: str, form: re.Pattern[str], units_us: Mapping[str, int]) -> Fraction | None:
    """Return the sum of all parts of a duration in microseconds, None if it has another form or an unknown unit."""
    match = form.fullmatch(text.strip().lower())
    parts = _PART.findall(match[1]) if match else []
    known = [(number, unit if unit in units_us else unit.removesuffix("s")) for number, unit in parts]
    if not known or any(unit not in units_us for _, unit in known):
        return None
    total_us = sum((Fraction(number) * units_us[unit] for number, unit in known), Fraction(0))
    if total_us > _MAX_DURATION_US:
        raise ValueError("expected a duration of less than 292,000 years")
    return total_us


def parse_duration(text: str) -> int | None:
    """Read a duration such as `6 h`, `30min` or `interval 2 days` into seconds; `off` is None."""
    if text.strip().lower() == "off":
        return None
    found_us = _duration_us(text, _DURATION, _DURATION_UNITS_US)
    if found_us is None:
        raise ValueError("expected a duration with its unit such as 30s, 15min, 6h, 2 days, or off")
    if found_us < _US_PER_S:
        raise ValueError("expected a duration of at least one second, or off")
    return int(found_us / _US_PER_S)


def duration_or_zero(text: str) -> int:
    """Read a duration that may be zero, such as `36h` or `interval 7 days`, into seconds, rounded up."""
    found_us = _duration_us(text, _DURATION, _DURATION_UNITS_US)
    if found_us is None:
        raise ValueError("expected a duration with its unit such as 36h, 7 days or interval 1 week")
    return ceil(found_us / _US_PER_S)


def interval(text: str) -> int:
    """Read an interval as Delta's properties spell it, such as `interval 1 week 2 days`, into seconds, rounded up.

    It reads nothing else: Delta refuses any other spelling, so another meaning here would be a guess.
    """
    found_us = _duration_us(text, _DELTA_INTERVAL, _DELTA_UNITS_US)
    if found_us is None:
        raise ValueError("expected an interval such as interval 7 days, in weeks or shorter units")
    return ceil(found_us / _US_PER_S)


def hours(text: str) -> int:
    """Read a whole number of hours into seconds."""
    return int(integer(0, 24 * 3_660)(text)) * 3_600


def minutes(text: str) -> int:
    """Read a whole number of minutes into seconds."""
    return int(integer(0, 60 * 24 * 3_660)(text)) * 60


def duration(text: str) -> int:
    """Read a duration that cannot be off, in seconds."""
    found = parse_duration(text)
    if found is None:
        raise ValueError("expected a duration with its unit such as 15min, 6h or 2 days")
    return found


def count_or_off(text: str) -> int | None:
    """Read a number of commits or files, or `off`, which is None."""
    return None if text.strip().lower() == "off" else integer(2, 1_000_000)(text)


def switch(text: str) -> bool:
    """Read on or off; true and false mean the same."""
    lowered = text.strip().lower()
    if lowered not in ("on", "off", "true", "false"):
        raise ValueError("expected on or off")
    return lowered in ("on", "true")


def parse_ms(text: str) -> int:
    """Read a time such as `60s`, `1.5 min` or `250ms` into milliseconds; 0s is one, too."""
    match = _QUANTITY.fullmatch(text.strip().lower())
    unit = match[2] if match else ""
    span_s = _TIME_UNITS.get(unit, _TIME_UNITS.get(unit.removesuffix("s")))
    span_ms = 1 if unit == "ms" else 1_000 * (span_s or 0)
    if match is None or not span_ms or (Fraction(match[1]) * span_ms).denominator != 1:
        raise ValueError("expected a time with its unit such as 250ms, 30s, 15min or 6h")
    return int(Fraction(match[1]) * span_ms)


def boolean(text: str) -> bool:
    """Read true or false."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("expected true or false")


def size(text: str) -> int:
    """Read the size of a file in bytes."""
    found = parse_size(text)
    # Below 64 KiB a Parquet file is mostly footer; above 16 GiB no engine splits one file well.
    if not 64 * KIB <= found <= 16 * GIB:
        raise ValueError("expected a size from 64 KiB to 16 GiB")
    return found


def size_or_auto(text: str) -> int | None:
    """Read the size of a file in bytes; `auto`, which is None, leaves it to Lakewright."""
    return None if text.strip().lower() == "auto" else size(text)


def job_size(text: str) -> int:
    """Read the bytes of one job."""
    found = parse_size(text)
    # Below 64 KiB no file can be written; above 1 TiB a bound bounds nothing.
    if not 64 * KIB <= found <= 1024 * GIB:
        raise ValueError("expected a size from 64 KiB to 1 TiB")
    return found


def iteration_size(text: str) -> int:
    """Read the bytes of one iteration as a job's; 0 bounds no iteration, and so no job below the default."""
    found = parse_size(text)
    return job_size(str(min(max(found, 64 * KIB), 1024 * GIB))) if found else 16 * GIB


def integer(low: int, high: int) -> Parser:
    """Return the parser of a whole number."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,12}", text.strip()) or not low <= int(text) <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return int(text)

    return parse


def share(low: str, high: str) -> Parser:
    """Return the parser of a decimal number, kept exactly."""

    def parse(text: str) -> Fraction:
        if not re.fullmatch(r"\d{1,3}(\.\d{1,9})?", text.strip()):
            raise ValueError(f"expected a number from {low} to {high}, such as 0.15")
        found = Fraction(text.strip())
        if not Fraction(low) <= found <= Fraction(high):
            raise ValueError(f"expected a number from {low} to {high}")
        return found

    return parse


def share_or_off(low: str, high: str) -> Parser:
    """Return the parser of a decimal number or `off`, which is None."""
    number = share(low, high)
    return lambda text: None if text.strip().lower() == "off" else number(text)


def share_or_auto(low: str, high: str) -> Parser:
    """Return the parser of a decimal number or `auto`, which is None."""
    number = share(low, high)
    return lambda text: None if text.strip().lower() == "auto" else number(text)


_ZONE = re.compile(r"[A-Za-z]+(/[A-Za-z0-9_+-]+)*|[+-]\d\d:\d\d")


def zone_or_none(text: str) -> str:
    """Read the name of a time zone, or its offset from UTC; empty for `none`."""
    if text.strip().lower() == "none":
        return ""
    if not _ZONE.fullmatch(text.strip()):
        raise ValueError("expected a time zone such as UTC, Europe/Berlin or +01:00, or none")
    return text.strip()


sample_or_off = share_or_off("0.0001", "0.99")
"""Read the fraction of the rows that sampling queries read, or `off`, which is None."""


def _kept(word: str, check: Callable[[str], object]) -> Callable[[str], str | None]:
    """Return the parser of a text that is kept as it was written; the word is None."""

    def parse(text: str) -> str | None:
        written = text.strip()
        if written.lower() == word:
            return None
        check(written)
        return written

    return parse


work_windows = _kept("none", parse_work_windows)
budgets = _kept("none", parse_budgets)
row_expiry = _kept("none", parse_row_expiry)
partition_filter = _kept("all", parse_filter)
sort_columns = _kept("none", parse_sort_columns)


def undirected_columns(text: str) -> str | None:
    """Read columns without a direction, such as a key's or a space-filling curve's; `none` is None."""
    found = sort_columns(text)
    if found is not None and any(column.is_descending for column in parse_sort_columns(found)):
        raise ValueError("these columns have no direction: leave out desc")
    return found


def key_column(text: str) -> str | None:
    """Read one column; `none` is None."""
    found = undirected_columns(text)
    if found is not None and len(parse_sort_columns(found)) > 1:
        raise ValueError("expected one column, or none")
    return found


def choice(kind: type[StrEnum], **others: StrEnum) -> Parser:
    """Return the parser of one of a few words, in any case; `others` mean the same as one of them."""

    def parse(text: str) -> StrEnum:
        lowered = text.strip().lower()
        try:
            return others.get(lowered) or kind(lowered)
        except ValueError:
            raise ValueError(f"expected one of {', '.join(kind)}") from None

    return parse


def milliseconds(text: str) -> int | None:
    """Read an interval as Amoro writes it: whole milliseconds, -1 for off; seconds are returned."""
    if text.strip() == "-1":
        return None
    if not re.fullmatch(r"\d{4,15}", text.strip()):
        raise ValueError("expected milliseconds, at least 1000, or -1 for off")
    return int(text) // 1000


def slots_or_off(text: str) -> int | None:
    """Read how many jobs may run at once; `off` is None."""
    if text.strip().lower() == "off":
        return None
    found: int = integer(1, 10_000)(text)
    return found


def quota(text: str) -> Fraction | None:
    """Read a quota: a share of the slots such as 0.1, or a number of slots such as 2; `none` is None.

    A share is kept in whole percents, as the queue takes it.
    """
    lowered = text.strip().lower()
    if lowered in ("none", "off"):
        return None
    found = Fraction(lowered) if re.fullmatch(r"\d{1,5}(\.\d{1,9})?", lowered) else Fraction(0)
    if found.denominator == 1 and 1 <= found <= 10_000:  # noqa: PLR2004 - more slots than any queue has
        return found
    if not Fraction(1, 100) <= found < 1:
        raise ValueError("expected a share of the slots from 0.01 to 0.99, a number of slots from 1 to 10000, or none")
    return Fraction(round(found * 100), 100)


def group(text: str) -> str:
    """Read the name of a group, which is the name of a queue."""
    lowered = text.strip().lower()
    if not _GROUP.fullmatch(lowered):
        raise ValueError("expected the name of a queue (1 to 40 of a-z, 0-9, _ and -)")
    return lowered
