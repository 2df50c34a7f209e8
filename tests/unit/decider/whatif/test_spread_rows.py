"""Rows that a log implies: within the bounds of their files, as many as these are large, and evenly spread."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from decider.whatif.range_reads import KeyedFiles
from decider.whatif.spread_rows import ROWS, spread_rows
from shared.table import DataFile, PartitionColumn, PartitionKey

DAYS = (PartitionKey('{"day":"1"}'), PartitionKey('{"day":"2"}'))
BOUNDS = st.one_of(st.none(), st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 10**6)))
FILES = st.lists(st.tuples(st.integers(1, 10**9), st.sampled_from(DAYS), BOUNDS, BOUNDS), max_size=20)


@given(FILES)
def test_rows_lie_within_the_bounds_of_their_files(drawn: list[tuple[int, PartitionKey, object, object]]) -> None:
    def keyed(at: int, name: str) -> KeyedFiles:
        files = []
        for number, (size, day, *bounds) in enumerate(drawn):
            low_and_width = bounds[at]
            known = None if low_and_width is None else (low_and_width[0], sum(low_and_width))  # type: ignore[index]
            files.append(DataFile(str(number), size, day, key_range=known))
        return KeyedFiles(PartitionColumn(name, name, "long"), tuple(files))

    sides = [keyed(0, "a"), keyed(1, "b")]
    sample = spread_rows(sides)
    assert not sample.is_sampled
    rows = [row for partition in sample.partitions for row in partition.rows]
    assert len(drawn) <= len(rows) + 1
    assert len(rows) <= ROWS + len(drawn)
    assert sum(partition.bytes for partition in sample.partitions) == sum(size for size, *_ in drawn)
    for at, side in enumerate(sides):
        known = [file.key_range for file in side.files if file.key_range is not None]
        values = [row[at] for row in rows if row[at] is not None]
        assert (not known) == (not values)
        assert all(min(low for low, _ in known) <= value <= max(high for _, high in known) for value in values)


def test_two_columns_of_a_file_are_spread_evenly_and_apart() -> None:
    def keyed(name: str) -> KeyedFiles:
        return KeyedFiles(PartitionColumn(name, name, "long"), (DataFile("f", 1, DAYS[0], key_range=(0, ROWS)),))

    (partition,) = spread_rows([keyed("a"), keyed("b")]).partitions
    for at in (0, 1):
        assert Counter(row[at] for row in partition.rows) == Counter(range(ROWS))
    # Of the lower half by one column, half are in the lower half by the other.
    both = sum(row[0] < ROWS // 2 and row[1] < ROWS // 2 for row in partition.rows)  # type: ignore[operator]
    assert 0.24 < both / ROWS < 0.26
