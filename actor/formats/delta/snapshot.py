"""The live files of one partition in a snapshot, listed by Delta itself: one Spark job and one string.

Delta filters the snapshot's state by the text of the partition values, so that only the partition's files cross into
Python. That filter may let too much through, never too little; `shared.partitions.partition_key` then decides, because
several spellings name one value.
"""

from collections.abc import Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_adds
from actor.formats.delta.log import TableLog
from shared.partitions import partition_values
from shared.paths.sql_text import literal
from shared.table import PartitionColumn, PartitionKey


def list_partition(
    log: TableLog, snapshot: Any, columns: tuple[PartitionColumn, ...], partition: PartitionKey
) -> Sequence[LoggedFile]:
    """Return the live files of a partition in a snapshot."""
    found = decode_adds(log.files(snapshot, partition_condition(columns, partition)), columns)
    return [logged for logged in found if logged.file.partition == partition]


def partition_condition(columns: tuple[PartitionColumn, ...], partition: PartitionKey) -> str:
    """Return an SQL condition on `add` fields that holds for every file of the partition, and for few others."""
    values = partition_values(partition)
    return " AND ".join(
        _value_condition(column, values[column.physical]) for column in columns if column.physical in values
    )


def _value_condition(column: PartitionColumn, value: str | None) -> str:
    logged = f"partitionValues[{literal(column.physical)}]"
    if value is None:
        return f"({logged} IS NULL OR {logged} = '')"
    if column.type in ("timestamp", "timestamp_ntz"):
        # One instant has several spellings. Those that cannot be cast are let through: the key decides.
        spelled = f"try_cast({logged} AS {column.type})"
        return f"coalesce({spelled} = try_cast({literal(value)} AS {column.type}), true)"
    return f"{logged} = {literal(value)}"


def paths_condition(paths: list[str]) -> str:
    """Return an SQL condition on `add` fields that holds for files of these paths."""
    return f"path IN ({', '.join(map(literal, paths))})"
