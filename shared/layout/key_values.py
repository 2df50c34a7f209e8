"""Values of a key as whole numbers in the same order, so that ranges can be counted whatever the type of the column.

Statistics in a log are JSON: numbers, and texts for all else. Long texts are compared by their beginning alone, which
makes ranges touch that do not; a value that is not of its column's type has no number, and its file no range.
"""

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from shared.layout.key_depth import KeyRange

TEXT_BYTES = 32
"""Bytes of a text that are compared; Delta cuts the bounds of texts to 32 characters."""

_WHOLE = ("byte", "short", "integer", "long")
_SIGN = 1 << 63


def key_range(low: object, high: object, type_name: str) -> KeyRange | None:
    """Return the range of a file from its bounds in the log; None where there is none, or it is not of this type."""
    least, greatest = number_of(low, type_name), number_of(high, type_name)
    return None if least is None or greatest is None or greatest < least else (least, greatest)


def number_of(value: object, type_name: str) -> int | None:
    """Return the number of a value in the log; None where there is none, or it is not of this type."""
    convert = _converter(type_name)
    if convert is None or value is None:
        return None
    try:
        return convert(value)
    except (ValueError, TypeError, ArithmeticError, InvalidOperation):
        return None


def is_sortable(type_name: str) -> bool:
    """Return whether files have bounds of columns of this type by which ranges can be compared."""
    return _converter(type_name) is not None


def _converter(type_name: str) -> Callable[[Any], int] | None:
    return _decimal if type_name.startswith("decimal") else _CONVERTERS.get(type_name)


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _decimal(value: Any) -> int:
    return int(Decimal(str(value)).scaleb(DECIMAL_DIGITS, _EXACT).to_integral_value(context=_EXACT))


DECIMAL_DIGITS = 38
"""Digits that a decimal can have, before the point and behind it."""

_EXACT = Context(prec=2 * DECIMAL_DIGITS + 1)


def _float(value: Any) -> int:
    if type(value) not in (int, float, Decimal) or math.isnan(value):
        raise ValueError(f"{value!r} is no number")
    bits: int = struct.unpack(">q", struct.pack(">d", float(value) + 0.0))[0]
    return bits if bits >= 0 else -(bits + _SIGN)


def _text(value: Any) -> int:
    if type(value) is not str:
        raise TypeError(f"{value!r} is no text")
    return int.from_bytes(value.encode(errors="surrogatepass")[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0"))


def _day(value: Any) -> int:
    return date.fromisoformat(value).toordinal()


def _instant(value: Any) -> int:
    found = datetime.fromisoformat(value)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    since = found - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


_CONVERTERS: Mapping[str, Callable[[Any], int]] = {
    **dict.fromkeys(_WHOLE, _whole),
    "float": _float,
    "double": _float,
    "string": _text,
    "date": _day,
    "timestamp": _instant,
    "timestamp_ntz": _instant,
}
