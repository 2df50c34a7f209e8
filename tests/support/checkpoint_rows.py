"""What a checkpoint of a Delta table holds, whoever wrote it, without what is null or said twice."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ONLY_DELTAS = ("stats_parsed", "partitionValues_parsed", "maxRowIndex")
"""Fields that Delta's job adds: copies of what the others say, for its own data skipping."""


def plain(value: Any) -> Any:
    """An action without what is null, and without the fields that only Delta's job adds."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one is not None and name not in ONLY_DELTAS}
    return value


def lines(actions: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(plain(one), sort_keys=True, default=str) for one in actions)


def checkpoint_rows(table: Path) -> list[str]:
    """The actions of the newest checkpoint of one file, each that is not null."""
    newest = max((table / "_delta_log").glob("*.checkpoint.parquet"))
    rows = pq.read_table(newest).to_pylist(maps_as_pydicts="strict")
    return lines([{name: one for name, one in row.items() if one is not None} for row in rows])
