"""How a revision maps the values of its columns to coordinates: from its JSON to what rows are placed by.

A coordinate lies in [0, 1]; `QbeastCube.java` computes it. Names and numbers are read as the library reads them.
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from shared.errors import RefusedFiles
from shared.formats.qbeast.names import REVISION_PREFIX
from shared.refusals import RefusalReason


@dataclass(frozen=True, slots=True)
class Coordinate:
    """How the values of a column are mapped; `kind` is `linear`, `hashing`, `histogram` or `constant`.

    linear: (value - `minimum`) * `scale`, `null` for null. hashing: a hash of the value's text, of `null` for null.
    histogram: the place of the value among `values`. constant: always 0. type: the library's name of the type, empty
    where it does not say it; linear values of times are milliseconds; a day is its midnight in `zone`.
    """

    kind: str
    column: str
    type: str = ""
    minimum: float = 0.0
    scale: float = 0.0
    null: float | str = 0.0
    values: tuple[str, ...] = ()
    zone: str = ""

    @property
    def is_day(self) -> bool:
        """True if its values are days on a line."""
        return self.kind == "linear" and self.type == "DateDataType"

    @property
    def is_instant(self) -> bool:
        """True if its values are instants on a line."""
        return self.kind == "linear" and self.type == "TimestampDataType"

    @property
    def is_spelled(self) -> bool:
        """True if it maps texts of floating-point numbers, which Java 19 and later spell otherwise."""
        return self.kind == "hashing" and self.type in ("DoubleDataType", "FloatDataType")


_CONSTANT = frozenset({"EmptyTransformation", "IdentityToZeroTransformation", "NullToZeroTransformation"})
_TYPES = frozenset(f"{name}DataType" for name in ("Integer", "Long", "Double", "Float", "Decimal", "Timestamp", "Date"))


def coordinates(configuration: Mapping[str, str], revision: int) -> tuple[Coordinate, ...]:
    """Return how a revision maps each of its columns, in their order; `configuration` are the table's properties.

    Raises RefusedFiles for a transformation that is not known, or that lacks a value.
    """
    raw = json.loads(configuration[f"{REVISION_PREFIX}{revision}"])
    columns: Sequence[Mapping[str, Any]] = raw["columnTransformers"]
    found: Sequence[Mapping[str, Any]] = raw.get("transformations") or ()
    if len(found) != len(columns):
        raise _refused(revision, "it has another number of transformations than of columns")
    return tuple(_coordinate(revision, column, one) for column, one in zip(columns, found, strict=True))


def in_zone(found: Sequence[Coordinate], zone: str) -> tuple[Coordinate, ...]:
    """Return coordinates whose days begin in a zone; raises RefusedFiles where there are days, and no zone is named.

    No table says in which zone its writers' days begin. A wrong one moves rows that lie near the border of a cube, and
    the rows of today's blocks would not show it.
    """
    days = [one.column for one in found if one.is_day]
    if days and not zone:
        raise RefusedFiles(
            f"the index maps days ({', '.join(days)}), which begin in the zone of the processes that wrote the table: "
            "name it in lakewright.index-zone, such as UTC",
            reason=RefusalReason.INDEX,
            field="lakewright.index-zone",
        )
    return tuple(replace(one, zone=zone) if one.is_day else one for one in found)


def encode_coordinates(found: Sequence[Coordinate]) -> str:
    """Write coordinates as `QbeastCube.java` reads them."""
    return json.dumps([asdict(one) for one in found])


def _coordinate(revision: int, transformer: Mapping[str, Any], raw: Mapping[str, Any]) -> Coordinate:
    column = str(transformer["columnName"])
    name = str(raw.get("className", "")).rpartition(".")[2].removesuffix("$")
    try:
        if name == "LinearTransformation":
            return _linear(column, raw)
        if name == "HashTransformation":
            return Coordinate("hashing", column, str(transformer.get("dataType", "")), null=str(raw["nullValue"]))
        if name == "StringHistogramTransformation":
            return _histogram(column, raw["histogram"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as problem:
        raise _refused(revision, f"the {name} of {column!r} lacks a value: {problem!r}") from problem
    if name not in _CONSTANT:
        raise _refused(revision, f"the transformation {name!r} of {column!r} is not known")
    return Coordinate("constant", column)


def _linear(column: str, raw: Mapping[str, Any]) -> Coordinate:
    kind = raw["orderedDataType"]
    low, high, null = (_number(kind, raw[name]) for name in ("minNumber", "maxNumber", "nullValue"))
    if not low < high:
        raise ValueError(f"{low} is not less than {high}")
    scale = 1.0 / (high - low)
    if not 0 < scale < math.inf:
        raise ValueError(f"from {low} to {high} is no length")
    return Coordinate("linear", column, kind, low, scale, null)


def _histogram(column: str, values: Sequence[Any]) -> Coordinate:
    if len(values) < 2 or not all(isinstance(value, str) for value in values):  # noqa: PLR2004 - two ends at least
        raise ValueError("expected two texts or more")
    return Coordinate("histogram", column, values=tuple(values))


def _number(kind: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    if kind not in _TYPES:
        raise ValueError(f"the type {kind!r} is not known")
    found = float(value)
    if kind == "FloatDataType":
        (found,) = struct.unpack("f", struct.pack("f", value))
    if not math.isfinite(found):
        raise ValueError(f"{value!r} is not finite")
    return found


def _refused(revision: int, problem: str) -> RefusedFiles:
    return RefusedFiles(
        f"revision {revision} of the index cannot be followed, so its files are not rewritten: {problem}",
        reason=RefusalReason.INDEX,
        field=f"{REVISION_PREFIX}{revision}",
    )
