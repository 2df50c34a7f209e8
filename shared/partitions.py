"""Partition values become a partition's key here, and only here: two spellings of one value must name one partition.

The Delta protocol ("Partition Value Serialization") lets writers spell null as `""` or as null and a timestamp in
two layouts with any number of fractional digits. Keys use the physical column names, because those are what every
file action of a column-mapped table carries.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from shared.errors import InvalidInput
from shared.table import PartitionColumn, PartitionKey

WHOLE_TABLE = PartitionKey("{}")
"""The partition of an unpartitioned table."""

_TIMESTAMP = re.compile(r"(\d{4,})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")


def partition_key(columns: Sequence[PartitionColumn], values: Mapping[str, str | None]) -> PartitionKey:
    """Return the key of the partition that a file with these partition values lies in.

    `values` maps physical (or, on tables without column mapping, plain) names to serialized values.
    Raises InvalidInput if a partition column has no entry: guessing null would put the file in a wrong partition.
    """
    if not columns:
        return WHOLE_TABLE
    canonical: dict[str, str | None] = {}
    for column in columns:
        if column.physical not in values:
            raise InvalidInput(
                f"file action has no value for partition column {column.name!r}; it has {sorted(values)}",
                field="partition_values",
                allowed=column.physical,
            )
        canonical[column.physical] = _canonical(values[column.physical], column.type)
    return PartitionKey(json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def partition_values(partition: PartitionKey) -> dict[str, str | None]:
    """Return the physical column names and canonical values that a key was made of."""
    values: dict[str, str | None] = json.loads(partition)
    return values


def partition_label(partition: PartitionKey) -> str:
    """Return the key as people write partitions, `dt=2026-01-01/country=null`; `(whole table)` if unpartitioned."""
    values = partition_values(partition)
    return "/".join(f"{name}={'null' if value is None else value}" for name, value in values.items()) or "(whole table)"


def _canonical(value: str | None, type_name: str) -> str | None:
    if value is None or value == "":
        return None
    if type_name in ("timestamp", "timestamp_ntz"):
        return _canonical_timestamp(value)
    return value


def _canonical_timestamp(value: str) -> str:
    """Spell a timestamp in UTC with microseconds; a spelling that is not the protocol's is left as it is."""
    match = _TIMESTAMP.fullmatch(value)
    if match is None:
        return value
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    micros = (fraction or "")[:6].ljust(6, "0")
    text = f"{year}-{month}-{day}T{hour}:{minute}:{second}.{micros}"
    if zone in (None, "Z"):
        return text
    try:
        moment = datetime.fromisoformat(text + zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return value  # No day of the calendar, or of a year that Python has no date for.
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds")
