"""The expression by which Iceberg prunes a scan to partitions; what it lets through is filtered file by file."""

import json
import re
from collections.abc import Collection
from typing import Any

from actor.formats.iceberg.iceberg_scala import IcebergScala
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import SPEC_KEY
from shared.table import PartitionKey

_PRUNABLE = frozenset({"string", "date", "int", "long"})
"""Types of identity partitions that a scan is pruned by; the others are filtered file by file."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
"""How Iceberg's expressions read a date."""

_MAX_FILTERED = 100
"""Partitions that one scan is pruned by; a larger expression costs more than the files that it leaves out."""


def scan_filter(scala: IcebergScala, head: TableHead, partitions: Collection[PartitionKey] | None) -> Any:
    """Return a filter that all files of the partitions pass, None where nothing can be pruned."""
    if partitions is None or len(partitions) > _MAX_FILTERED:
        return None
    expressions = scala.resolve("org.apache.iceberg.expressions.Expressions")
    found = None
    for partition in partitions:
        one = _of_partition(expressions, head, partition)
        if one is None:
            return None
        found = one if found is None else getattr(expressions, "or")(found, one)
    return found


def _of_partition(expressions: Any, head: TableHead, partition: PartitionKey) -> Any:
    values = json.loads(partition)
    spec = head.specs.get(int(values.get(SPEC_KEY, 0)))
    found = None
    for field, source in () if spec is None else zip(spec.fields, head.sources[spec.id], strict=True):
        if field.transform != "identity" or field.type not in _PRUNABLE or source is None:
            continue
        text = values[field.label]
        if field.type == "date" and text is not None and _DATE.fullmatch(text) is None:
            continue  # Beyond the years that have such a text.
        literal = int(text) if field.type in ("int", "long") and text is not None else text
        one = expressions.isNull(source) if text is None else expressions.equal(source, literal)
        found = one if found is None else getattr(expressions, "and")(found, one)
    return found
