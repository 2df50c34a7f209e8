"""Selects partitions by column names and values as users know them, not as a log spells them.

A selector that omits columns matches every partition that agrees with the others.
"""

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from contextlib import suppress

from shared.errors import InvalidInput
from shared.partitions import WHOLE_TABLE, partition_key, partition_values
from shared.table import PartitionColumn, PartitionKey

Selector = str | Mapping[str, str | None]
"""`dt=2026-01-01/country=null` as labels are written, or {"dt": "2026-01-01", "country": null}."""

WHOLE_TABLE_LABEL = "(whole table)"


def named_values(partition: PartitionKey, columns: Sequence[PartitionColumn]) -> dict[str, str | None]:
    """Return the partition values of a partition by the names that users know; other names stay physical."""
    names = {column.physical: column.name for column in columns}
    return {names.get(physical, physical): value for physical, value in partition_values(partition).items()}


def label(partition: PartitionKey, columns: Sequence[PartitionColumn]) -> str:
    """Return a partition's label, `dt=2026-01-01/country=null`."""
    values = named_values(partition, columns)
    parts = (f"{name}={'null' if value is None else value}" for name, value in values.items())
    return "/".join(parts) or WHOLE_TABLE_LABEL


def select(
    partitions: Iterable[PartitionKey], columns: Sequence[PartitionColumn], wanted: Sequence[Selector]
) -> tuple[PartitionKey, ...]:
    """Return the partitions that any of the selectors matches, each once; all of them if there is no selector.

    Raises InvalidInput for a column that the table is not partitioned by and for text that is no label.
    """
    every = tuple(partitions)
    if not wanted:
        return every
    by_label = {label(partition, columns): partition for partition in every}
    chosen: dict[PartitionKey, None] = {}
    for index, selector in enumerate(wanted):
        exact = by_label.get(selector) if isinstance(selector, str) else None
        if exact is not None:
            chosen[exact] = None
            continue
        values = _values(selector, columns, field=f"partitions.{index}")
        chosen |= {partition: None for partition in every if values.items() <= partition_values(partition).items()}
    return tuple(chosen)


def exact_partition(text: str, columns: Sequence[PartitionColumn]) -> PartitionKey:
    """Return the one partition that a label names, whether the table has it (still) or not.

    Raises InvalidInput if the text leaves a partition column out or names another one.
    """
    values = _values(text, columns, field="partition")
    if len(values) < len(columns):
        allowed = "/".join(f"{column.name}=…" for column in columns)
        raise InvalidInput(f"{text[:80]!r} does not name exactly one partition", field="partition", allowed=allowed)
    return partition_key(columns, values)


async def find_partition(
    text: str, partitions: AsyncIterable[PartitionKey], columns: Sequence[PartitionColumn]
) -> PartitionKey:
    """Return the one partition that a label or a key names.

    `partitions` are listed only if the text is no label: a table may have millions of them. Raises InvalidInput as
    `exact_partition` does.
    """
    with suppress(InvalidInput):
        named = exact_partition(text, columns)
        if label(named, columns) == text:
            return named
    async for partition in partitions:
        if text in (partition, label(partition, columns)):
            return partition
    return exact_partition(text, columns)


def _values(selector: Selector, columns: Sequence[PartitionColumn], *, field: str) -> dict[str, str | None]:
    """Return the selector as physical names and canonical values."""
    given = _parsed(selector, field=field) if isinstance(selector, str) else selector
    known = {column.name: column for column in columns}
    for name in given:
        if name not in known:
            allowed = ", ".join(known) or "nothing: the table is not partitioned"
            raise InvalidInput(f"{name[:80]!r} is no partition column of this table", field=field, allowed=allowed)
    named = [known[name] for name in given]
    return partition_values(partition_key(named, {known[name].physical: value for name, value in given.items()}))


def _parsed(text: str, *, field: str) -> dict[str, str | None]:
    if text in (WHOLE_TABLE_LABEL, WHOLE_TABLE):
        return {}
    values: dict[str, str | None] = {}
    for part in text.split("/"):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise InvalidInput(
                f"{text[:80]!r} is no partition", field=field, allowed="column=value, joined by '/' for several columns"
            )
        values[name] = None if value in ("", "null", "__HIVE_DEFAULT_PARTITION__") else value
    return values
