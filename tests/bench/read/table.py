"""A table that grows by a stream's commits under one rule."""

import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from tests.bench.delta.table import PlayedTable
from tests.bench.read.row_groups import Layout, layout_of
from tests.bench.read.rows import rows_from
from tests.bench.read.rules import Lakewright, Rule
from tests.bench.read.stream import Stream, add_action, partition_of

CHECKPOINT_EVERY = 100
"""Commits between checkpoints by the writer, as deltalake does: Spark's snapshots would become slow without."""

_DELTA_TYPES = {pa.int64(): "long", pa.float64(): "double", pa.string(): "string"}
_COLUMNS = {field.name: _DELTA_TYPES[field.type] for field in rows_from(0, 1, seed=0).schema} | {"day": "string"}
"""Delta types of all columns, the partition's included."""


@dataclass(frozen=True, slots=True)
class GrownTable:
    """What a rule left: the files, bytes rewritten, and groups that were copied and encoded (None: not known)."""

    path: Path
    title: str
    layout: Layout
    bytes_rewritten: int
    seconds: float
    copied: int | None = None
    encoded: int | None = None


def grow(stream: Stream, rule: Rule, path: Path) -> GrownTable:
    """Commit the whole stream under a rule, and write a checkpoint, so that all readers find the log in one form."""
    table = PlayedTable(path, {}, _COLUMNS)
    began = time.monotonic()
    rule.begin(table, stream.spec.target_bytes)
    for index, file in enumerate(stream.files):
        add = add_action(file.path, file.bytes, file.stats, {"day": file.day})
        table.bring(stream.folder, [add])
        table.commit([{"add": add}])
        if index % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            DeltaTable(str(path)).create_checkpoint()
        rule.after(index + 1, file)
        if stream.is_last_of_day(index):
            rule.after_day(partition_of(file.day))
    rule.end()
    DeltaTable(str(path)).create_checkpoint()
    ours = rule if isinstance(rule, Lakewright) else None
    return GrownTable(
        path,
        rule.title,
        layout_of(path),
        table.bytes_rewritten,
        time.monotonic() - began,
        ours.copied if ours else None,
        ours.encoded if ours else None,
    )
