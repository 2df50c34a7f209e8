"""Partitions: the values of a file's partition, under its spec, as a key that people can read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from json import JSONEncoder
from struct import pack, unpack
from typing import Any
from uuid import UUID

from shared.formats.iceberg.names import SPEC_KEY
from shared.table import PartitionKey

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = 12
_KEYS = JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class SpecField:
    """One field of a partition spec: `transform` and `type` (of its values) as Iceberg's metadata spell them."""

    name: str
    transform: str
    type: str

    @property
    def is_void(self) -> bool:
        """True if its value is always null: what format version 1 leaves of a removed field."""
        return self.transform == "void"

    @property
    def label(self) -> str:
        """Its name in keys of partitions; no field is labeled as the number of a spec."""
        return f"#{self.name}" if self.name.lstrip("#") == SPEC_KEY[1:] and self.name[0] == "#" else self.name


_WITH_TWO_ZEROS = frozenset({"float", "double"})
"""Types with equal values of different texts."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A partition spec."""

    id: int
    fields: tuple[SpecField, ...] = ()

    def key(self, values: Sequence[Any]) -> PartitionKey:
        """Return the key of the partition of a file with these values, in the order of the fields.

        Partitions of different specs have different keys, and so do null and an empty text.
        """
        texts = {
            field.label: partition_text(field, value)
            for field, value in zip(self.fields, values, strict=True)
            if not field.is_void
        }
        if self.id:
            texts[SPEC_KEY] = str(self.id)
        return PartitionKey(_KEYS.encode(texts))

    def remembered_key(self) -> Callable[[tuple[Any, ...]], PartitionKey]:
        """Return `key` for the files of one manifest, most of them of a few partitions: each key is computed once."""
        if any(field.type in _WITH_TWO_ZEROS for field in self.fields):
            return self.key
        known: dict[tuple[Any, ...], PartitionKey] = {}

        def key(values: tuple[Any, ...]) -> PartitionKey:
            if (found := known.get(values)) is None:
                found = known[values] = self.key(values)
            return found

        return key


def partition_text(field: SpecField, value: Any) -> str | None:
    """Return a partition value as Iceberg's readers write it in paths, unescaped; None for null.

    `value` has the type that a manifest stores: dates as days, times as microseconds.
    """
    if value is None:
        return None
    try:
        return _readable(field, value)
    except (OverflowError, ValueError):
        return str(value)  # Beyond the years that Python counts.


def _readable(field: SpecField, value: Any) -> str:
    is_bucket = field.transform.startswith("bucket[")  # A number, whatever the column is.
    return _TEXTS.get(field.transform, _plain if is_bucket else _TEXTS.get(field.type, _plain))(value)


def _year(value: Any) -> str:
    return f"{_EPOCH.year + int(value):04d}"


def _month(value: Any) -> str:
    return f"{_EPOCH.year + int(value) // _MONTHS:04d}-{int(value) % _MONTHS + 1:02d}"


def _hour(value: Any) -> str:
    return (_EPOCH + timedelta(hours=int(value))).strftime("%Y-%m-%d-%H")


def _day(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else (_EPOCH + timedelta(days=int(value))).date().isoformat()


def _timestamp(value: Any) -> str:
    moment = value if isinstance(value, datetime) else _EPOCH + timedelta(microseconds=int(value))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")


def _time(value: Any) -> str:
    moment = value if isinstance(value, time) else (_EPOCH + timedelta(microseconds=int(value))).time()
    return moment.isoformat("microseconds")


def _float(value: Any) -> str:
    """Return what a float of 32 bits is: Java's shortest digits of it, and Avro's 64 bits, are two numbers."""
    return str(unpack("<f", pack("<f", value))[0])


def _uuid(value: Any) -> str:
    return str(UUID(bytes=bytes(value))) if isinstance(value, bytes | bytearray) else str(value)


def _plain(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes() | bytearray():
            return bytes(value).hex()
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)


_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "year": _year,
    "month": _month,
    "day": _day,
    "hour": _hour,
    "date": _day,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamp,
    "uuid": _uuid,
    "float": _float,
}
"""How values of a transform, or of a type, are written."""
