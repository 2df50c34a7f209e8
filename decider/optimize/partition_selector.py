"""Which cells a person means: partitions are named by their columns as users know them, not as a log spells them.

A selector may leave columns out and then means every partition that agrees with the rest.
"""

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from contextlib import suppress

from shared.errors import InvalidInput
from shared.partitions import WHOLE_TABLE, partition_key, partition_values
from shared.table import PartitionColumn, PartitionKey

Selector = str | Mapping[str, str | None]
"""`dt=2026-01-01/country=null` as labels are written, or {"dt": "2026-01-01", "country": null}."""

WHOLE_TABLE_LABEL = "(whole table)"


def named_values(cell: PartitionKey, columns: Sequence[PartitionColumn]) -> dict[str, str | None]:
    """Return the partition values of a cell by the names that users know; other names stay physical."""
    names = {column.physical: column.name for column in columns}
    return {names.get(physical, physical): value for physical, value in partition_values(cell).items()}


def label(cell: PartitionKey, columns: Sequence[PartitionColumn]) -> str:
    """Return a cell as people write partitions, `dt=2026-01-01/country=null`."""
    values = named_values(cell, columns)
    parts = (f"{name}={'null' if value is None else value}" for name, value in values.items())
    return "/".join(parts) or WHOLE_TABLE_LABEL


def select(
    cells: Iterable[PartitionKey], columns: Sequence[PartitionColumn], wanted: Sequence[Selector]
) -> tuple[PartitionKey, ...]:
    """Return the cells that any of the selectors means, each once; all of them if there is no selector.

    Raises InvalidInput for a column that the table is not partitioned by and for text that is no label.
    """
    every = tuple(cells)
    if not wanted:
        return every
    by_label = {label(cell, columns): cell for cell in every}
    chosen: dict[PartitionKey, None] = {}
    for index, selector in enumerate(wanted):
        exact = by_label.get(selector) if isinstance(selector, str) else None
        if exact is not None:
            chosen[exact] = None
            continue
        values = _values(selector, columns, field=f"partitions.{index}")
        chosen |= {cell: None for cell in every if values.items() <= partition_values(cell).items()}
    return tuple(chosen)


def exact_cell(text: str, columns: Sequence[PartitionColumn]) -> PartitionKey:
    """Return the one cell that a label names, whether the table has it (still) or not.

    Raises InvalidInput if the text leaves a partition column out or names another one.
    """
    values = _values(text, columns, field="partition")
    if len(values) < len(columns):
        allowed = "/".join(f"{column.name}=…" for column in columns)
        raise InvalidInput(f"{text[:80]!r} does not name exactly one partition", field="partition", allowed=allowed)
    return partition_key(columns, values)


async def find_cell(text: str, cells: AsyncIterable[PartitionKey], columns: Sequence[PartitionColumn]) -> PartitionKey:
    """Return the one cell that a label or a key names; `cells` are listed only for a text that is no label of ours.

    A table may have millions of them. Raises InvalidInput as `exact_cell` does.
    """
    with suppress(InvalidInput):
        named = exact_cell(text, columns)
        if label(named, columns) == text:
            return named
    async for cell in cells:
        if text in (cell, label(cell, columns)):
            return cell
    return exact_cell(text, columns)


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
