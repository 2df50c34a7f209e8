"""Rows as a log implies them, so that no data are read: spread evenly between the bounds of each file.

Within a file, the values of its columns do not depend on each other, so an order by one column is taken to separate
none of the others.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import gcd
from typing import Any

from decider.formats.table_format import TableReader
from decider.whatif.recorded_filters import RecordedFilter, named_columns
from decider.whatif.sort_advice import (
    MAX_CANDIDATES,
    KeyedFiles,
    Row,
    RowSample,
    SampledPartition,
    advise,
    describe_order,
    range_reads,
)
from decider.whatif.trace_reader import TableTrace, comparable_columns, require_sorting
from shared.table import PartitionKey

ROWS = 20_000
"""Rows of a table, by the sizes of its files: as few as its files, and as many as are sorted in a tenth of a second."""

_STRIDES = (0.0, 0.618034, 0.284840, 0.145898, 0.381966, 0.763932, 0.472136)
"""Steps through the values of a file as shares of them, one for each column, so that no two columns rise together."""


_PARTS = 1_000
"""Places between two values of a file, at which values of other files are."""


async def advise_order_by_log(
    log: TableReader, table: TableTrace, filters: Sequence[RecordedFilter], target_bytes: int
) -> dict[str, Any]:
    """Return which order recorded filters argue for, as plain values; raises what reading the log raises."""
    require_sorting(table)
    keyed, left_out = await comparable_columns(log, table, named_columns(tuple(filters))[:MAX_CANDIDATES])
    sample = spread_rows(keyed)
    return describe_order(advise(sample, keyed, filters, target_bytes), sample, len(filters), left_out)


def describe_key(keyed: KeyedFiles, target_bytes: int) -> dict[str, Any]:
    """Return what ranges of a column read, now and in files sorted by it, as plain values."""
    return {
        "column": keyed.column.name,
        "files": len(keyed.files),
        "files_without_range": sum(file.key_range is None for file in keyed.files),
        "ranges": [
            {"share": one.share, "share_read_now": round(one.now, 4), "share_read_sorted": round(one.sorted, 4)}
            for one in range_reads(spread_rows([keyed]), keyed, target_bytes)
        ],
    }


def spread_rows(keyed: Sequence[KeyedFiles]) -> RowSample:
    """Return rows of the live files; `keyed`: the same files by each column. A column without bounds is null."""
    files = keyed[0].files if keyed else ()
    total = sum(file.size_bytes for file in files)
    ranges = [{file.key: file.key_range for file in one.files} for one in keyed]
    rows: defaultdict[PartitionKey, list[Row]] = defaultdict(list)
    sizes: defaultdict[PartitionKey, int] = defaultdict(int)
    for index, file in enumerate(files):
        sizes[file.partition] += file.size_bytes
        count = max(1, ROWS * file.size_bytes // max(1, total))
        columns = [
            _spread(known.get(file.key), count, stride, index) for known, stride in zip(ranges, _STRIDES, strict=False)
        ]
        rows[file.partition] += zip(*columns, strict=True)
    partitions = tuple(SampledPartition(sizes[one], tuple(own)) for one, own in rows.items())
    return RowSample(tuple(one.column for one in keyed), partitions)


def _spread(known: tuple[int, int] | None, count: int, stride: float, file: int) -> list[int | None]:
    """Return so many values between two bounds, evenly, in an order that the stride gives.

    Each file has others and starts elsewhere: else files of the same bounds would have the same few rows, in which one
    column depends on another.
    """
    if known is None:
        return [None] * count
    low, high = known
    step = max(1, int(count * stride))
    while gcd(step, count) > 1:  # So that each value comes once.
        step += 1
    start, between = int(file * stride * count), int((0.5 + file * _STRIDES[1]) % 1 * _PARTS)
    places = ((start + number * step) % count for number in range(count))
    return [low + (high - low + 1) * (_PARTS * place + between) // (_PARTS * count) for place in places]
