"""Cells in the names of data files, because Iceberg's files have no tags, and summaries expire with their snapshots.

A name of ours begins with `cell.`, and a text that stands for a tag (`shared.layout.cells.tags`) with its checksum;
what follows is the name that the writer had chosen. Tables that spread files over folders may put a hash before it. A
column is its field id and the form of its numbers: `n` whole ones, `dS` decimals of scale S, `tB` texts by their first
B bytes. Each number is written as one of units of its form, beside which no cut is, so that it is short: a name has at
most 255 bytes. Any other name is none of ours.
"""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b

from shared.layout.cells.boxes import NAN
from shared.layout.cells.tags import ColumnPath
from shared.layout.key_values import DECIMAL_DIGITS, TEXT_BYTES

MAX_CELL_BYTES = 121
"""Bytes of the columns of a cell: with form, checksum and marks they leave 80 of a name to the writer."""

_NAME = re.compile(r"(?:.*?[^A-Za-z0-9])??cell\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_.-]+)")
_FORM = 1
_CHECK_BYTES = 4
_OPEN, _NAN = 255, 254
_WHOLE, _FIRST_DECIMAL = 0, 64
_WHOLE_BYTES, _DECIMAL_BYTES = 9, 17
"""Bytes of the greatest numbers, with their sign."""


def path_of(field_id: int, kind: str, text_bytes: int) -> ColumnPath:
    """Return how names call a column of a type of `shared.layout.key_values`; texts are compared by so many bytes."""
    if kind == "string":
        return str(field_id), f"t{text_bytes}"
    return str(field_id), f"d{kind.rstrip(')').rpartition(',')[2]}" if kind.startswith("decimal") else "n"


def longest_cell(paths: Sequence[ColumnPath]) -> int:
    """Return how many bytes a cell of these columns may have in a name."""
    return sum(len(_number(int(field), 1)) + 1 + 2 * (1 + _widest(_code(form))) for field, form in paths)


def name_prefix(tag: str) -> str:
    """Return what comes before the name of a file that has this tag, of a cell or of none."""
    body = bytes([_FORM]) + b"".join(_column(*one) for one in json.loads(tag))
    return f"cell.{urlsafe_b64encode(body + _checksum(body)).decode().rstrip('=')}."


def tag_of(path: str) -> str | None:
    """Return the tag that a file's name stands for; None for a name that is none of ours."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    if found is None:
        return None
    try:
        body = urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4))
        known, check = body[:-_CHECK_BYTES], body[-_CHECK_BYTES:]
        if _checksum(known) != check or known[:1] != bytes([_FORM]):
            return None
        return json.dumps(_columns(known[1:]), separators=(",", ":"))
    except (ValueError, IndexError):
        return None


def written_name(path: str) -> str:
    """Return the name that the writer of a file had chosen, empty where no cell is before it."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    return "" if found is None else found[2]


def _columns(rest: bytes) -> list[list[object]]:
    found: list[list[object]] = []
    while rest:
        field, rest = _take(rest, 1)
        code, rest = rest[0], rest[1:]
        low, rest = _take(rest, _unit(code))
        end, rest = _take(rest, _unit(code))
        found.append([[str(field), _form(code)], low, end])
    return found


def _column(path: Sequence[str], low: int | None, end: int | None) -> bytes:
    field, code = int(path[0]), _code(path[1])
    return _number(field, 1) + bytes([code]) + _number(low, _unit(code)) + _number(end, _unit(code))


def _number(number: int | None, unit: int) -> bytes:
    """Write a number as its length and its bytes; None, which is an open side, and NaN as a length alone."""
    if number is None or number == NAN:
        return bytes([_OPEN if number is None else _NAN])
    units, rest = divmod(number, unit)
    if rest:
        raise ValueError(f"{number} is no multiple of {unit}")
    length = units.bit_length() // 8 + 1
    return bytes([length]) + units.to_bytes(length, signed=True)


def _take(text: bytes, unit: int) -> tuple[int | None, bytes]:
    length, rest = text[0], text[1:]
    if length in (_OPEN, _NAN):
        return (None if length == _OPEN else NAN), rest
    if not 0 < length <= len(rest):
        raise ValueError("the name was cut")
    return int.from_bytes(rest[:length], signed=True) * unit, rest[length:]


def _code(form: str) -> int:
    return _WHOLE if form == "n" else int(form[1:]) + (_FIRST_DECIMAL if form[0] == "d" else 0)


def _form(code: int) -> str:
    if code == _WHOLE:
        return "n"
    return f"d{code - _FIRST_DECIMAL}" if code >= _FIRST_DECIMAL else f"t{code}"


def _unit(code: int) -> int:
    if code == _WHOLE:
        return 1
    if code >= _FIRST_DECIMAL:
        return int(10 ** max(0, DECIMAL_DIGITS - code + _FIRST_DECIMAL))
    return 1 << 8 * max(0, TEXT_BYTES - code)


def _widest(code: int) -> int:
    if code == _WHOLE:
        return _WHOLE_BYTES
    return _DECIMAL_BYTES if code >= _FIRST_DECIMAL else code + 1


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=_CHECK_BYTES).digest()
