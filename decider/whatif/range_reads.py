"""What-if of a sort key: how many files a range of a column reads now, once small files are merged, and once sorted.

Counted are the bounds of the live files in the log. Merges and sorts are those that Lakewright plans for these files,
carried out on their bounds, so bytes are rewritten for a depth as in production. The rows of a file are assumed to be
spread evenly over its range. A range is read in all partitions, as by a query without a filter on them. Pure.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from shared.layout.key_depth import KeyRange
from shared.layout.planner import FileGroup, Plan, plan_full
from shared.layout.row_order import SortColumn
from shared.layout.sort_planner import plan_sort
from shared.policy import ClusteringOrder, Policy
from shared.table import DataFile, PartitionColumn, PartitionKey

RANGE_SHARES = (0.001, 0.01, 0.1)
"""Shares of the rows that ranges hold: a look-up, a day of some years, a quarter."""

RANGES = 100
"""Ranges of each share, from the least key to the greatest: their mean is what a reader of any range expects."""

MAX_FILES = 2_000
"""Merged files whose sorts are planned at most: some seconds of one core, and the square of them for more files."""

_MIN_POINTS, _ALL_POINTS = 16, 4_096
"""Points at which the rows of one file are taken to be, and of all files at least."""

Planner = Callable[[PartitionKey, Sequence[DataFile], Policy], Plan]


@dataclass(frozen=True, slots=True)
class KeyedFiles:
    """The live files of a table, with the range of one column in each that has bounds of it."""

    column: PartitionColumn
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class RangeReads:
    """Mean number of files that a range with this share of the rows reads: now, merged, and sorted.

    sorted: None where there are too many files to plan their sorts.
    """

    share: float
    now: float
    merged: float
    sorted: float | None


@dataclass(frozen=True, slots=True)
class KeyReads:
    """What a sort by one column would save its readers, and cost.

    files_without_range: live files without bounds of the column, which every range reads and no sort takes.
    bytes_sorted: bytes that are sorted again after the merges, which sort their full outputs without extra work.
    files_sorted and bytes_sorted are None where there are too many files to plan their sorts.
    """

    column: str
    files_now: int
    files_merged: int
    files_sorted: int | None
    files_without_range: int
    bytes_sorted: int | None
    ranges: tuple[RangeReads, ...]


class FileRanges:
    """The ranges of some files, of which those that a range touches are counted without looking at each."""

    def __init__(self, files: Iterable[DataFile]) -> None:
        known = [file.key_range for file in files]
        self.files_without_range = known.count(None)
        self._lows = sorted(one[0] for one in known if one is not None)
        self._highs = sorted(one[1] for one in known if one is not None)

    def files_read(self, wanted: KeyRange) -> int:
        """Return how many files may have rows with keys from the first to the last of a range, both included."""
        low, high = wanted
        ended, begun = bisect_left(self._highs, low), bisect_right(self._lows, high)
        return self.files_without_range + begun - ended

    def mean_files_read(self, wanted: Sequence[KeyRange]) -> float:
        """Return the mean over some ranges."""
        return sum(map(self.files_read, wanted)) / len(wanted)


class EvenRows:
    """The keys of rows that are spread evenly over the ranges of their files, which weigh by their bytes."""

    def __init__(self, files: Iterable[DataFile]) -> None:
        known = [(file.key_range, file.size_bytes) for file in files if file.key_range is not None]
        points = max(_MIN_POINTS, _ALL_POINTS // max(1, len(known)))
        keys = sorted(
            (low + (high - low) * at // (points - 1), size) for (low, high), size in known for at in range(points)
        )
        self._keys = [key for key, _ in keys]
        self._sums = list(accumulate(size for _, size in keys))

    def key(self, share: float) -> int:
        """Return the key below which this share of the rows lies."""
        return self._keys[min(bisect_left(self._sums, share * self._sums[-1]), len(self._keys) - 1)]

    def ranges(self, share: float) -> list[KeyRange]:
        """Return ranges that each hold a share of the rows, from the least key to the greatest."""
        starts = [at * (1 - share) / (RANGES - 1) for at in range(RANGES)]
        return [(self.key(start), self.key(start + share)) for start in starts]

    def split(self, parts: int) -> list[KeyRange]:
        """Return ranges without a common key that hold equally many rows; fewer if there are not as many keys."""
        first, last = self._keys[0], self._keys[-1]
        cuts = sorted({first, *(self.key(at / parts) for at in range(1, parts)), last + 1})
        return [(low, after - 1) for low, after in pairwise(cuts)]


def key_reads(keyed: KeyedFiles, policy: Policy) -> KeyReads:
    """Return what ranges of a column read under a policy, and under the same policy with a sort by this column."""
    name = str(SortColumn(keyed.column.name))
    plain = replace(policy, enabled=True, sort_by=None, zorder_by=None, clustering_order=ClusteringOrder.NONE)
    ordered = replace(plain, sort_by=name, orders_rows=True)
    merged, _ = _carried_out(keyed.files, plain, plan_full)
    done, bytes_sorted = None, None
    if len(merged) <= MAX_FILES:
        begun, _ = _carried_out(keyed.files, ordered, plan_full)
        done, bytes_sorted = _carried_out(begun, ordered, plan_sort)
    now, then, after = FileRanges(keyed.files), FileRanges(merged), None if done is None else FileRanges(done)
    rows = EvenRows(keyed.files)
    return KeyReads(
        column=keyed.column.name,
        files_now=len(keyed.files),
        files_merged=len(merged),
        files_sorted=None if done is None else len(done),
        files_without_range=now.files_without_range,
        bytes_sorted=bytes_sorted,
        ranges=tuple(
            RangeReads(
                share,
                now.mean_files_read(wanted),
                then.mean_files_read(wanted),
                None if after is None else after.mean_files_read(wanted),
            )
            for share, wanted in _wanted(rows, is_empty=now.files_without_range == len(keyed.files))
        ),
    )


def _wanted(rows: EvenRows, *, is_empty: bool) -> Iterable[tuple[float, list[KeyRange]]]:
    """Yield the ranges of each share; none if no file has a range."""
    return () if is_empty else ((share, rows.ranges(share)) for share in RANGE_SHARES)


def _carried_out(files: Iterable[DataFile], policy: Policy, planner: Planner) -> tuple[list[DataFile], int]:
    """Return the files once nothing is left to plan, and the bytes that were rewritten on the way."""
    partitions: defaultdict[PartitionKey, list[DataFile]] = defaultdict(list)
    for file in files:
        partitions[file.partition].append(file)
    done: list[DataFile] = []
    rewritten = 0
    for partition, live in partitions.items():
        left = live
        while groups := planner(partition, left, policy).groups:
            taken = {file.key for group in groups for file in group.files}
            rewritten += sum(group.bytes for group in groups)
            left = [file for file in left if file.key not in taken]
            left += [output for group in groups for output in _outputs(group, policy, rewritten)]
        done += left
    return done, rewritten


def _outputs(group: FileGroup, policy: Policy, run: int) -> list[DataFile]:
    """Return the files that a group becomes; `run` makes their names unlike those of all earlier ones."""
    known = [file.key_range for file in group.files if file.key_range is not None]
    spans: Sequence[KeyRange | None] = [None]
    if len(known) == len(group.files):
        whole = (min(low for low, _ in known), max(high for _, high in known))
        spans = [whole] if group.order is None else EvenRows(group.files).split(group.order.outputs)
    size = policy.size_levels.predicted_bytes(group.bytes) // len(spans)
    first = group.files[0].path
    return [
        DataFile(f"{first}/{run}-{at}", size, group.partition, tags=group.tags, key_range=span)
        for at, span in enumerate(spans)
    ]
