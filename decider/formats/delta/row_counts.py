"""Reads the number of rows from a file's statistics; the rest of that text stays unparsed.

Statistics are JSON inside a JSON text and half of a commit's bytes. Every known writer puts numRecords first, so the
number is read from there; otherwise the text is parsed.
"""

import json
import re

_ROWS_FIRST = re.compile(r'\{\s*"numRecords"\s*:\s*(\d{1,18})\s*[,}]', re.ASCII)
"""The usual opening; eighteen digits are a number that surely fits into 64 bits."""


def rows_in(stats: str) -> int | None:
    """Return numRecords of a statistics text; None where it has none or cannot be read, for statistics are optional."""
    first = _ROWS_FIRST.match(stats)
    return int(first[1]) if first else _rows_anywhere(stats)


def _rows_anywhere(stats: str) -> int | None:
    """Parse the text: a column may be called numRecords as well, and only the outermost one counts rows."""
    try:
        parsed = json.loads(stats)
    except (ValueError, RecursionError):
        return None
    rows = parsed.get("numRecords") if isinstance(parsed, dict) else None
    return rows if type(rows) is int and rows >= 0 else None
