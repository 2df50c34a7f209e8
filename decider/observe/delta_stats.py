"""Of a file's statistics only the number of rows is wanted, so their text is found and left unparsed where it can be.

Statistics are JSON inside a JSON text, half of a commit's bytes and most of the time to decode it. Every short cut
here proves itself or steps aside: a line that is not plainly of the usual shape is decoded in full.
"""

import json

CUT = "\x01"
"""Stands for statistics that were cut out; no writer's statistics read like this, for they are JSON."""

_START = '"stats":"{'
_END = '}"'
_ROWS_FIRST = '{"numRecords":'
_ROWS_FIRST_ESCAPED = '{\\"numRecords\\":'
_MAX_DIGITS = 18
"""Digits of a number that surely fits into 64 bits."""


def cut_stats(line: str) -> tuple[str, str] | None:
    r"""Return a line with its first statistics text replaced by `CUT`, and that text, still escaped; None if unsure.

    Quotes inside of a text are escaped, so `"stats":"` is never found within one. The text ends at its first bare
    quote: at `}"` if all quotes before it are escaped, which is plain to see where no backslash is escaped itself.
    The caller must still check that what was cut is the field it meant, and not a namesake in another object.
    """
    start = line.find(_START) + len(_START) - 1
    if start < len(_START):
        return None
    end = line.find(_END, start) + 1
    if not end:
        return None
    text = line[start:end]
    if "\\\\" in text or text.count('"') != text.count('\\"'):
        return None
    return f"{line[:start]}\\u0001{line[end:]}", text


def rows_in_escaped(text: str) -> int | None:
    """Return numRecords of a statistics text that is still escaped as it stood in its line."""
    rows = _rows_first(text, _ROWS_FIRST_ESCAPED)
    if rows is not None:
        return rows
    try:
        return rows_in(json.loads(f'"{text}"'))
    except ValueError:
        return None


def rows_in(stats: str) -> int | None:
    """Return numRecords of a statistics text; None where it has none or cannot be read, for statistics are optional."""
    rows = _rows_first(stats, _ROWS_FIRST)
    return _rows_anywhere(stats) if rows is None else rows


def _rows_first(text: str, opening: str) -> int | None:
    """Return the number that the text opens with, as that of every known writer does."""
    if not text.startswith(opening):
        return None
    digits = text[len(opening) : text.find(",", len(opening))]
    return int(digits) if len(digits) <= _MAX_DIGITS and digits.isascii() and digits.isdecimal() else None


def _rows_anywhere(stats: str) -> int | None:
    """Parse the text: a column may be called numRecords as well, and only the outermost one counts rows."""
    try:
        parsed = json.loads(stats)
    except (ValueError, RecursionError):
        return None
    rows = parsed.get("numRecords") if isinstance(parsed, dict) else None
    return rows if type(rows) is int and rows >= 0 else None
