"""Savings of an order by a column, or of cells of several: the bytes that readers' filters or ranges read with it.

Rows that the log implies are sorted by each candidate and cut into as many files as the table would have, and every
recorded filter is compared with the minima and maxima that these files have, of all columns. Pure.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from operator import itemgetter
from typing import Any

from decider.whatif.recorded_filters import Hidden, RecordedFilter, Span, Wanted, wanted_values
from shared.layout.key_depth import KeyRange
from shared.paths.sql_text import quoted
from shared.table import DataFile, PartitionColumn

MIN_SAVED_SHARE = 0.1
"""Smallest share of the bytes read that an order has to save: rewriting all full files has a price, too."""

MAX_CANDIDATES = 6
"""Columns that are compared: those that filters name most often."""

MAX_PARTS = 256
"""Files that a partition is cut into at most; more files are each read by the same share of the filters."""

MIN_ROWS_PER_PART = 8
"""Fewest rows in a file: the range of fewer says little about the file's."""

MAX_CELL_COLUMNS = 3
"""Columns of cells that are compared: each further one halves how often the others are cut."""

EVEN_SHARE = 0.25
"""Share of the rows on the smaller side from which a cut of a cell counts as even."""

HIDDEN_SHARE = 0.1
"""Share of the rows that a range with hidden bounds is taken to hold; an assumption."""

PLACES = 20
"""Places, from the least value to the greatest, at which hidden values and ranges are: the mean of them counts."""

RANGE_SHARES = (0.001, 0.01, 0.1)
"""Shares of the rows that ranges hold: a look-up, a day of some years, a quarter."""

Row = tuple[int | None, ...]
Conditions = Mapping[int, tuple[Span, ...]]
"""Wanted values by the number of the column."""


@dataclass(frozen=True, slots=True)
class KeyedFiles:
    """The live files of a table, with the range of one column in each that has bounds of it.

    `bounds_change`: properties with which files get bounds, if the table's own leave the column out.
    """

    column: PartitionColumn
    files: tuple[DataFile, ...]
    bounds_change: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class SampledPartition:
    """Rows of one partition, values by column, and the bytes of all its files."""

    bytes: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class RowSample:
    """Rows of a table; values are whole numbers in the order of the values, None for null."""

    columns: tuple[PartitionColumn, ...]
    partitions: tuple[SampledPartition, ...]


@dataclass(frozen=True, slots=True)
class CandidateOrder:
    """A column, or columns of cells as SQL names them, and the mean share of the bytes that filters read with it."""

    column: str
    share_read: float


@dataclass(frozen=True, slots=True)
class SortAdvice:
    """Candidates, the best first; share_read_now: of the files as they are. column: None if no order saves enough."""

    column: str | None
    share_read_now: float
    candidates: tuple[CandidateOrder, ...]


@dataclass(frozen=True, slots=True)
class LiveReads:
    """Mean bytes and number of the live files that filters read."""

    bytes: float
    files: float


@dataclass(frozen=True, slots=True)
class RangeReads:
    """Mean share of the bytes that ranges with this share of the rows read: now, and once the table is sorted."""

    share: float
    now: float
    sorted: float


def range_reads(sample: RowSample, keyed: KeyedFiles, target_bytes: int) -> tuple[RangeReads, ...]:
    """Return what ranges of the sample's only column read; none if no file has bounds of it."""
    values = _values(sample, 0)
    live, done = _live_parts([keyed]), _parts(sample, (0,), target_bytes)
    found = []
    for share in RANGE_SHARES if values else ():
        asked = [(1.0, {0: (_range_at(values, place / (PLACES - 1), share),)}) for place in range(PLACES)]
        found.append(RangeReads(share, _share(live, asked), _share(done, asked)))
    return tuple(found)


def advise(
    sample: RowSample, keyed: Sequence[KeyedFiles], filters: Sequence[RecordedFilter], target_bytes: int
) -> SortAdvice:
    """Return the order that the filters argue for; `keyed`: the live files by each of the sample's columns."""
    asked = _asked(filters, sample)
    now = _share(_live_parts(keyed), asked)
    found = sorted(
        (
            CandidateOrder(column.name, _share(_parts(sample, (at,), target_bytes), asked))
            for at, column in enumerate(sample.columns)
        ),
        key=lambda one: one.share_read,
    )
    best = found[0].column if found and found[0].share_read <= (1 - MIN_SAVED_SHARE) * now else None
    return SortAdvice(best, now, tuple(found))


def live_reads(sample: RowSample, keyed: Sequence[KeyedFiles], filters: Sequence[RecordedFilter]) -> LiveReads:
    """Return what filters read of the live files; arguments as in `advise`."""
    parts, asked = _live_parts(keyed), _asked(filters, sample)
    size = sum(part.bytes for part in parts)
    each = [replace(part, bytes=1.0) for part in parts]
    return LiveReads(size * _share(parts, asked), len(parts) * _share(each, asked))


def advise_cells(
    sample: RowSample, keyed: Sequence[KeyedFiles], filters: Sequence[RecordedFilter], target_bytes: int
) -> SortAdvice:
    """Return the columns of cells that the filters argue for; each further one has to save as much as the first."""
    asked = _asked(filters, sample)
    now = least = _share(_live_parts(keyed), asked)
    found: list[CandidateOrder] = []
    best = None
    for count in range(1, min(MAX_CELL_COLUMNS, len(sample.columns)) + 1):
        for columns in combinations(range(len(sample.columns)), count):
            names = ", ".join(column_text(sample.columns[at].name) for at in columns)
            found.append(CandidateOrder(names, _share(_parts(sample, columns, target_bytes), asked)))
        fewest = min(found, key=lambda one: one.share_read)
        if fewest.share_read <= (1 - MIN_SAVED_SHARE) * least:
            best, least = fewest.column, fewest.share_read
    return SortAdvice(best, now, tuple(sorted(found, key=lambda one: one.share_read)))


def column_text(name: str) -> str:
    """Return a column as a property names it."""
    return name if name.isidentifier() else quoted(name)


def describe_order(advice: SortAdvice, sample: RowSample, filters: int, left_out: Sequence[str]) -> dict[str, Any]:
    """Return advice as plain values; `filters`: how many there are, left_out: columns without comparable bounds."""
    return {
        "column": advice.column,
        "properties": {"lakewright.sort-by": column_text(advice.column)} if advice.column else {},
        "share_read_now": round(advice.share_read_now, 4),
        "candidates": [{"column": one.column, "share_read": round(one.share_read, 4)} for one in advice.candidates],
        "filters": filters,
        "rows": sum(len(partition.rows) for partition in sample.partitions),
        "left_out": list(left_out),
    }


@dataclass(frozen=True, slots=True)
class _Part:
    """A file: its bytes, and the range of each column in it, None where that is not known."""

    bytes: float
    ranges: tuple[KeyRange | None, ...]
    is_complete: bool
    """True if a column without a range has no values but null, so that no comparison wants the file."""

    def is_read(self, conditions: Conditions) -> bool:
        return all(self._has(self.ranges[at], spans) for at, spans in conditions.items())

    def _has(self, known: KeyRange | None, spans: tuple[Span, ...]) -> bool:
        if known is None:
            return not self.is_complete
        return any((low is None or low <= known[1]) and (high is None or high >= known[0]) for low, high in spans)


def _share(parts: Sequence[_Part], asked: Sequence[tuple[float, Conditions]]) -> float:
    """Return the mean share of the bytes that filters read."""
    total, times = sum(part.bytes for part in parts), sum(weight for weight, _ in asked)
    read = sum(weight * sum(part.bytes for part in parts if part.is_read(wanted)) for weight, wanted in asked)
    return read / (total * times) if total and times else 0.0


def _asked(filters: Sequence[RecordedFilter], sample: RowSample) -> list[tuple[float, Conditions]]:
    return [(times, conditions) for one in filters for times, conditions in _conditions(one, sample)]


def _conditions(one: RecordedFilter, sample: RowSample) -> list[tuple[float, Conditions]]:
    """Return the conditions of a filter with their weight; several where values are hidden."""
    numbers = {column.name: at for at, column in enumerate(sample.columns)}
    wanted = wanted_values(one.expression, {column.name: column for column in sample.columns})
    hidden = [name for name, values in wanted.items() if isinstance(values, Hidden)]
    places = PLACES if hidden else 1
    values = {name: _values(sample, numbers[name]) for name in hidden}
    return [
        (
            one.times / places,
            {numbers[name]: _spans(its, values.get(name, []), at, numbers[name]) for name, its in wanted.items()},
        )
        for at in range(places)
    ]


def _values(sample: RowSample, column: int) -> list[int]:
    known = (row[column] for partition in sample.partitions for row in partition.rows)
    return sorted(value for value in known if value is not None)


def _spans(wanted: Wanted, values: Sequence[int], place: int, column: int) -> tuple[Span, ...]:
    """Return wanted values; hidden ones at a place that differs between columns, lest these seem to go together."""
    if not isinstance(wanted, Hidden):
        return wanted
    if not values:
        return ()
    start = (place * 7 + column * 3) % PLACES / PLACES
    if wanted.points:
        shares = [(start + number / wanted.points) % 1 for number in range(wanted.points)]
        return tuple((value, value) for value in (_at(values, share) for share in shares))
    return (_range_at(values, start, HIDDEN_SHARE),)


def _range_at(values: Sequence[int], place: float, share: float) -> Span:
    """Return the range that holds a share of the values, at a place from the least (0) to the greatest (1)."""
    begin = place * (1 - share)
    return _at(values, begin), _at(values, begin + share)


def _at(values: Sequence[int], share: float) -> int:
    return values[min(int(share * len(values)), len(values) - 1)]


def _parts(sample: RowSample, columns: Sequence[int], target_bytes: int) -> list[_Part]:
    """Return the files that partitions would have: sorted by one column, or cells of several."""
    parts = []
    for partition in sample.partitions:
        most = min(MAX_PARTS, len(partition.rows) // MIN_ROWS_PER_PART)
        count = max(1, min(round(partition.bytes / target_bytes), most))
        rows = list(map(_with_places, partition.rows))
        for own in _cut(rows, columns, count):
            ranges = tuple(map(_range, zip(*own, strict=True)))
            parts.append(_Part(partition.bytes * len(own) / len(rows), ranges, is_complete=True))
    return parts


_NULL = -(1 << 512)
"""The place of null: before all values."""


def _with_places(row: Row) -> tuple[int, ...]:
    return tuple(_NULL if value is None else value for value in row) if None in row else row  # type: ignore[return-value]


def _cut(rows: list[tuple[int, ...]], columns: Sequence[int], count: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield the rows of each of so many files, cut at the columns in turn: cells leave one out that has no even cut."""
    if count == 1:
        yield rows
        return
    middle = count // 2 * len(rows) // count
    for turn, column in enumerate(columns if len(columns) > 1 else ()):
        rows.sort(key=itemgetter(column))
        at = _nearest_cut([row[column] for row in rows], middle)
        if EVEN_SHARE * len(rows) <= at <= (1 - EVEN_SHARE) * len(rows):
            columns = (*columns[turn + 1 :], *columns[: turn + 1])
            break
    else:
        rows.sort(key=itemgetter(columns[0]))
        at = middle
    below = max(1, min(count - 1, round(count * at / len(rows))))
    yield from _cut(rows[:at], columns, below)
    yield from _cut(rows[at:], columns, count - below)


def _nearest_cut(values: Sequence[int], middle: int) -> int:
    """Return where, nearest to the middle, two neighbors differ; an end if none do."""
    ends = bisect_left(values, values[middle]), bisect_right(values, values[middle])
    return min(ends, key=lambda end: abs(end - middle))


def _range(values: Sequence[int]) -> KeyRange | None:
    known = [value for value in values if value != _NULL]
    return (min(known), max(known)) if known else None


def _live_parts(keyed: Sequence[KeyedFiles]) -> list[_Part]:
    """Return the live files with their ranges by all columns; every snapshot has the same files, in the same order."""
    by_key = [{file.key: file.key_range for file in one.files} for one in keyed]
    files = keyed[0].files if keyed else ()
    return [
        _Part(file.size_bytes, tuple(ranges.get(file.key) for ranges in by_key), is_complete=False) for file in files
    ]
