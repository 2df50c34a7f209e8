"""Sort advice: the column whose order spares the recorded filters most bytes, and none where no order spares enough."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from decider.whatif.recorded_filters import RecordedFilter
from decider.whatif.sort_advice import HIDDEN_SHARE, KeyedFiles, RowSample, SampledPartition, SortAdvice, advise
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, PartitionColumn

A, B, C = (PartitionColumn(name, name, "long") for name in "abc")
FILES, ROWS = 16, 4_000
"""Of 100 bytes each, as many as the target has."""


def drawn(seed: int = 1) -> list[tuple[int, int, int]]:
    """Return rows whose `b` follows `a`, and whose `c` depends on nothing."""
    dice = random.Random(seed)
    values = [dice.randrange(10_000) for _ in range(ROWS)]
    return [(value, value + dice.randrange(100), dice.randrange(10_000)) for value in values]


def found(
    filters: Sequence[RecordedFilter],
    rows: Sequence[tuple[int | None, ...]],
    *,
    columns: Sequence[PartitionColumn] = (A, B, C),
    ranges: Sequence[tuple[int, int] | None] = ((0, 10_100),) * FILES,
) -> SortAdvice:
    keyed = tuple(
        KeyedFiles(column, tuple(DataFile(f"f{at}", 100, WHOLE_TABLE, key_range=one) for at, one in enumerate(ranges)))
        for column in columns
    )
    sample = RowSample(tuple(columns), (SampledPartition(FILES * 100, tuple(rows)),))
    return advise(sample, keyed, filters, 100)


def point(column: str, value: Any, times: int = 1) -> RecordedFilter:
    return RecordedFilter({"type": "eq", "term": column, "value": value}, times)


def test_the_column_that_most_filters_name_is_advised_with_what_it_reads() -> None:
    filters = [point("a", 5_000, 9), point("c", 5_000)]
    advice = found(filters, drawn())
    assert (advice.column, advice.share_read_now) == ("a", 1.0)
    assert advice.candidates[0].column == "a"
    # One file of sixteen for nine of ten filters, and all of them for the tenth.
    assert advice.candidates[0].share_read == pytest.approx(0.9 / FILES + 0.1, abs=0.06)
    assert found([point("a", 5_000), point("c", 5_000, 9)], drawn()).column == "c"


def test_a_column_that_separates_the_values_of_others_wins_over_each_of_them() -> None:
    dice = random.Random(2)
    rows = [(value + dice.randrange(1_500), value, value + dice.randrange(1_500)) for value, _, _ in drawn()]
    filters = [point("a", n, 2) for n in range(1_000, 10_000, 1_000)] + [
        point("c", n) for n in range(1_500, 9_000, 500)
    ]
    by = {one.column: one.share_read for one in found(filters, rows).candidates}
    assert max(by.values()) < 0.6
    assert found(filters, rows).column == min(by, key=by.__getitem__)


def test_an_order_that_saves_too_little_is_not_advised() -> None:
    everything = RecordedFilter({"type": "gt", "term": "a", "value": 700}, 1)
    advice = found([everything], drawn())
    assert advice.column is None
    assert advice.candidates[0].share_read == pytest.approx(15 / 16)
    assert found([point("a", 1)], [], columns=()) == SortAdvice(None, 0.0, ())


def test_a_table_that_is_sorted_already_gains_nothing() -> None:
    ascending = [(n * 10_100 // FILES, (n + 1) * 10_100 // FILES) for n in range(FILES)]
    advice = found([point("a", 5_000)], drawn(), columns=(A,), ranges=ascending)
    assert advice.column is None
    assert advice.share_read_now == pytest.approx(1 / FILES)


def test_files_without_bounds_are_read_by_every_filter_and_files_of_nulls_by_none() -> None:
    assert found([point("a", 20_000)], drawn(), ranges=[None] * FILES).share_read_now == 1.0
    nulls = [(None, 0, 0)] * (ROWS // 2) + drawn()[: ROWS // 2]
    half = RecordedFilter({"type": "gt-eq", "term": "a", "value": 0}, 1)
    (best, *_) = found([half], nulls).candidates
    assert (best.column, best.share_read) == ("a", 0.5)


def test_hidden_values_are_taken_to_be_anywhere() -> None:
    one = found([point("a", "(4-digit-int)")], drawn())
    assert one.column == "a"
    assert one.candidates[0].share_read == pytest.approx(1 / FILES, abs=0.01)
    some = RecordedFilter({"type": "in", "term": "a", "values": ["(4-digit-int)"] * 4}, 1)
    assert found([some], drawn()).candidates[0].share_read == pytest.approx(4 / FILES, abs=0.03)
    ranged = RecordedFilter({"type": "gt", "term": "a", "value": "(4-digit-int)"}, 1)
    assert found([ranged], drawn()).candidates[0].share_read == pytest.approx(HIDDEN_SHARE + 1 / FILES, abs=0.05)
    assert found([ranged], [(None, 0, 0)] * 50).share_read_now == 0.0


def test_few_rows_make_few_files() -> None:
    assert found([point("a", 3)], [(n, n, n) for n in range(7)]).candidates[0].share_read == 1.0
