"""The revision that new rows are indexed by: the newest one, or the next one where values leave its space.

A revision's space is fixed, and cubes of two revisions have nothing to do with each other. So the next space is wider
than it had to be: values that grow with time would otherwise make a revision of each batch.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import RefusedFiles
from shared.formats.qbeast.names import LAST_REVISION, NOT_INDEXED, REVISION_PREFIX
from shared.refusals import RefusalReason

_TRANSFORM = "io.qbeast.core.transform."
_LINEAR, _HASH = f"{_TRANSFORM}LinearTransformation", f"{_TRANSFORM}HashTransformation"
_IDENTITY, _NULL = f"{_TRANSFORM}IdentityToZeroTransformation", f"{_TRANSFORM}NullToZeroTransformation$"

_SPELLED_WITH_POINT = frozenset({"DoubleDataType", "FloatDataType", "DecimalDataType"})
"""Types whose bounds the library reads only if they are spelled with a point."""

_WHOLE_LIMITS = {"IntegerDataType": (-(2**31), 2**31 - 1)}
_LONG_LIMITS = (-(2**63), 2**63 - 1)

_TYPES = {
    "integer": "IntegerDataType",
    "long": "LongDataType",
    "double": "DoubleDataType",
    "float": "FloatDataType",
    "decimal": "DecimalDataType",
    "string": "StringDataType",
    "timestamp": "TimestampDataType",
    "date": "DateDataType",
}
"""The library's names of the types that it can index, by Delta's."""

Number = int | float


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Least and greatest value of a column; of times in milliseconds."""

    low: Number
    high: Number


@dataclass(frozen=True, slots=True)
class RangedColumn:
    """A column whose values must lie within a range; `type` is the library's name."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class NewestRevision:
    """The newest revision as the table's properties have it; of a table that was converted, what will be its first.

    columns: transformer and transformation of each column, as JSON objects; the latter is empty in a first revision.
    """

    last: int
    raw: Mapping[str, Any]
    columns: tuple[tuple[dict[str, Any], dict[str, Any]], ...]

    @staticmethod
    def of(configuration: Mapping[str, str], types: Mapping[str, str]) -> "NewestRevision":
        """Read it from a table's properties; `types`: Delta's name of the type of each column, by its name.

        Raises RefusedFiles for a column that cannot be indexed.
        """
        last = int(configuration[LAST_REVISION])
        raw = json.loads(configuration[f"{REVISION_PREFIX}{last}"])
        transformers = raw["columnTransformers"]
        if last != NOT_INDEXED:
            return NewestRevision(last, raw, tuple(zip(transformers, raw["transformations"], strict=True)))
        kinds = dict(_named_kinds(configuration.get("columnsToIndex", "")))
        names = [str(one["columnName"]) for one in transformers]
        return NewestRevision(last, raw, tuple((_transformer(name, kinds.get(name, ""), types), {}) for name in names))

    @property
    def ranged(self) -> tuple[RangedColumn, ...]:
        """The columns whose values bear on it."""
        return tuple(
            RangedColumn(transformer["columnName"], transformer.get("dataType", ""))
            for transformer, found in self.columns
            if transformer["className"].endswith("LinearTransformer")
        )

    def holding(self, ranges: Mapping[str, ValueRange], created_ms: int) -> dict[str, str]:
        """Return the properties that set the next revision, empty where the newest one has room for all values.

        ranges: of the values of each ranged column, without those that have none.
        """
        names = {one.name for one in self.ranged}
        next_ones = [
            _following(transformer, found, ranges.get(transformer["columnName"]))
            if transformer["columnName"] in names
            else found or {"className": _HASH, "nullValue": 0}
            for transformer, found in self.columns
        ]
        if next_ones == [found for _, found in self.columns]:
            return {}
        number = self.last + 1
        revision = {
            **self.raw,
            "revisionID": number,
            "timestamp": created_ms,
            "columnTransformers": [transformer for transformer, _ in self.columns],
            "transformations": next_ones,
        }
        return {LAST_REVISION: str(number), f"{REVISION_PREFIX}{number}": json.dumps(revision, separators=(",", ":"))}


def _named_kinds(columns: str) -> list[tuple[str, str]]:
    """Return the transformers that `columnsToIndex` names, such as `name:hashing`."""
    pairs = (one.strip().rpartition(":") for one in columns.split(","))
    return [(name, kind) for name, colon, kind in pairs if colon]


def _transformer(name: str, kind: str, types: Mapping[str, str]) -> dict[str, Any]:
    delta_type = types.get(name, "none").partition("(")[0]
    found = _TYPES.get(delta_type)
    usual = "hashing" if found == "StringDataType" else "linear"
    can_be_hashed = found not in ("TimestampDataType", "DateDataType")
    if found is None or not (kind in ("", usual) or (kind == "hashing" and can_be_hashed)):
        raise refused(NOT_INDEXED, f"the column {name!r} of type {delta_type} cannot be indexed as {kind or 'usual'}")
    made = "HashTransformer" if "hashing" in (kind, usual) else "LinearTransformer"
    return {"className": f"{_TRANSFORM}{made}", "columnName": name, "dataType": found}


def _following(transformer: Mapping[str, Any], found: dict[str, Any], values: ValueRange | None) -> dict[str, Any]:
    """Return the transformation of a column by its values that has room for these, too; as it is where it has it."""
    kind = found.get("className", _NULL)
    if kind not in (_LINEAR, _IDENTITY, _NULL):
        return found  # Such as a constant of any values.
    if values is None:
        return found or {"className": _NULL}
    known = None
    if kind == _LINEAR:
        known = ValueRange(found["minNumber"], found["maxNumber"])
    elif kind == _IDENTITY:
        known = _identity(transformer, found)
    if known is not None and known.low <= values.low and values.high <= known.high:
        return found
    data_type = transformer["dataType"]
    low, high = (_spelled(one, data_type) for one in _room(known, values, data_type))
    null = _spelled(found["nullValue"], data_type) if kind == _LINEAR else low
    return {
        "className": _LINEAR,
        "minNumber": low,
        "maxNumber": high,
        "nullValue": null,
        "orderedDataType": data_type,
    }


def _identity(transformer: Mapping[str, Any], found: Mapping[str, Any]) -> ValueRange:
    value = found.get("identityValue")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refused(NOT_INDEXED, f"the only value of {transformer['columnName']!r}, {value!r}, is no number")
    return ValueRange(value, value)


def _room(known: ValueRange | None, values: ValueRange, data_type: str) -> tuple[Number, Number]:
    """Return bounds around values, and around those before; a bound that was left is moved by what there was."""
    low, high = values.low, values.high
    if known is not None:
        spread = known.high - known.low
        low = known.low if known.low <= low else min(low, known.low - spread)
        high = known.high if known.high >= high else max(high, known.high + spread)
    if low == high:  # Of one value, a line is wider.
        high = high + max(1, abs(high))
    if data_type in _SPELLED_WITH_POINT:
        if not (math.isfinite(low) and math.isfinite(high)):
            raise refused(NOT_INDEXED, f"no line is long enough for {values.low} to {values.high}")
        return low, high
    least, greatest = _WHOLE_LIMITS.get(data_type, _LONG_LIMITS)
    low, high = max(low, least), min(high, greatest)
    return (low, high) if low < high else (low - 1, high)


def _spelled(value: Number, data_type: str) -> Number:
    return float(value) if data_type in _SPELLED_WITH_POINT else int(value)


def refused(revision: int, problem: str) -> RefusedFiles:
    """Return the error of files that cannot be indexed."""
    return RefusedFiles(
        f"files that are not indexed cannot be indexed after revision {revision}: {problem}",
        reason=RefusalReason.INDEX,
        field=f"{REVISION_PREFIX}{revision}",
    )
