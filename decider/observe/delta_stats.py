"""Of a file's statistics only the number of rows is wanted; the rest of that text stays unparsed.

Statistics are JSON inside a JSON text and half of a commit's bytes. Every known writer puts numRecords first, so the
number can be read off; only where it is not there the text is parsed.
"""

import json

_ROWS_FIRST = '{"numRecords":'

_MAX_DIGITS = 18
"""Digits of a number that surely fits into 64 bits."""


def rows_in(stats: str) -> int | None:
    """Return numRecords of a statistics text; None where it has none or cannot be read, for statistics are optional."""
    if stats.startswith(_ROWS_FIRST):
        digits = stats[len(_ROWS_FIRST) : stats.find(",", len(_ROWS_FIRST))]
        if len(digits) <= _MAX_DIGITS and digits.isascii() and digits.isdecimal():
            return int(digits)
    return _rows_anywhere(stats)


def _rows_anywhere(stats: str) -> int | None:
    """Parse the text: a column may be called numRecords as well, and only the outermost one counts rows."""
    try:
        parsed = json.loads(stats)
    except (ValueError, RecursionError):
        return None
    rows = parsed.get("numRecords") if isinstance(parsed, dict) else None
    return rows if type(rows) is int and rows >= 0 else None
