"""Advice of bounds: where reads that compare a column open files that bounds might spare; none on little ground."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from decider.advice.analysis import former_values
from decider.advice.bounds_advice import analyze_bounds, judge_bounds
from decider.advice.order_advice import FilteredReads, OrderReading
from decider.advice.order_kinds import needs_owner
from decider.store.tables.advice_records import Advice
from decider.whatif.comparison import CostModel
from decider.whatif.recorded_filters import RecordedFilter
from decider.whatif.sort_advice import KeyedFiles
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.table import Commit, DataFile, PartitionColumn, PartitionKey, TableId, TableMetadata

T, PRICES, HOUR_MS = TableId("t"), CostModel(), 3_600_000
FILES, SIZE = 60, 128 * MIB
Range = tuple[int, int]
COUNTED = "delta.dataSkippingNumIndexedCols"
CHANGE = {COUNTED: "40"}
NONE: Sequence[Range | None] = [None] * FILES
ALL: Sequence[Range | None] = [(n, n) for n in range(FILES)]
DAYS = (PartitionColumn("day", "day", "integer"),)


def files(name: str, ranges: Sequence[Range | None], size: int = SIZE, **more: Any) -> KeyedFiles:
    """Return files with these ranges of a column, one a commit, in partitions of six."""
    made = (
        DataFile(f"f{n}", size, PartitionKey(f'{{"day":"{n // 6}"}}'), modified_ms=n * HOUR_MS, key_range=one)
        for n, one in enumerate(ranges)
    )
    return KeyedFiles(PartitionColumn(name, name, "long"), tuple(made), **more)


def equal(column: str, times: int = 100, value: Any = 7) -> RecordedFilter:
    return RecordedFilter({"type": "eq", "term": column, "value": value}, times)


def both(left: RecordedFilter, right: RecordedFilter) -> RecordedFilter:
    return RecordedFilter({"type": "and", "left": left.expression, "right": right.expression}, left.times)


def read(filters: Sequence[RecordedFilter], *columns: KeyedFiles, per_hour: float = 20.0) -> OrderReading:
    return OrderReading.of(FilteredReads(per_hour, tuple(filters)), columns)


def left_out(name: str = "a", ranges: Sequence[Range | None] = NONE, size: int = SIZE) -> KeyedFiles:
    return files(name, ranges, size, bounds_change=CHANGE)


def history(commits: int = FILES, every_ms: int = HOUR_MS) -> TableTrace:
    made = tuple(Commit(n, n * every_ms, "WRITE", (DataFile(f"f{n}", MIB, WHOLE_TABLE),)) for n in range(commits))
    metadata = TableMetadata("t", DAYS, {COUNTED: "4"}, "delta")
    return TableTrace("memory:///t", 0, commits - 1, metadata, CommitTrace((), made), 0, 0, 0)


def advised(reading: OrderReading, trace: TableTrace | None = None) -> Advice | None:
    trace = trace or history()
    return analyze_bounds(T, trace, Policy(), reading, PRICES, trace.history.commits[-1].timestamp_ms)


TEN = {
    "no file has bounds": (read([equal("a")], left_out()), "a"),
    "another column has bounds, and is compared by other reads": (
        read([equal("b", 300), equal("a")], files("b", ALL), left_out()),
        "a",
    ),
    "of two, the one that most reads compare": (read([equal("a"), equal("c", 300)], left_out(), left_out("c")), "c"),
    "reads of one partition": (read([both(equal("a"), equal("day"))], left_out()), "a"),
    "few files have bounds, in each half": (
        read([equal("a")], left_out(ranges=[ALL[n] if n % 20 == 0 else None for n in range(FILES)])),
        "a",
    ),
    "the properties do not leave it out": (read([equal("a")], files("a", NONE)), None),
    "files have bounds": (read([equal("a")], left_out(ranges=ALL)), None),
    "new files have bounds": (read([equal("a")], left_out(ranges=[*NONE[:50], *ALL[50:]])), None),
    "bounds of another column spare nearly all files": (
        read([both(equal("a"), equal("b"))], left_out(), files("b", ALL)),
        None,
    ),
    "few reads compare it": (read([equal("a", 9), equal("b", 91)], left_out(), files("b", ALL)), None),
}


@pytest.mark.parametrize(("reading", "column"), TEN.values(), ids=TEN)
def test_of_ten_histories_bounds_are_advised_where_reads_open_files_without_them(
    reading: OrderReading, column: str | None
) -> None:
    found = advised(reading)
    bounds = None if found is None else found.proof.bounds
    assert (None if bounds is None else bounds.column) == column
    assert found is None or found.change == CHANGE


@pytest.mark.parametrize(
    ("reading", "trace"),
    [
        pytest.param(read([equal("a")], left_out()), history(commits=49), id="too few commits"),
        pytest.param(read([equal("a")], left_out()), history(every_ms=60_000), id="an hour"),
        pytest.param(read([equal("a")], left_out(), per_hour=0.0), history(), id="too few reads, or of one day"),
        pytest.param(read([equal("a")], left_out(), per_hour=0.1), history(), id="reads that cost little"),
        pytest.param(read([equal("a")], left_out(size=1 << 10)), history(), id="small files"),
        pytest.param(read([equal("a")], left_out(ranges=[None], size=1 << 40)), history(), id="a single file"),
        pytest.param(read([equal("a")], left_out(ranges=[])), history(), id="no file"),
    ],
)
def test_no_bounds_are_advised_on_little_ground(reading: OrderReading, trace: TableTrace) -> None:
    assert advised(reading, trace) is None


def test_of_a_hundred_random_short_histories_no_bounds_are_advised() -> None:
    dice = random.Random(11)
    for _ in range(100):
        commits = dice.randrange(2, FILES)
        trace = history(commits, dice.randrange(50, 23 * HOUR_MS // commits))
        columns = [left_out(name, size=dice.randrange(1, 1 << 31)) for name in "abc"[: dice.randrange(1, 4)]]
        filters = [equal(dice.choice(columns).column.name, dice.randrange(1, 500), dice.randrange(FILES))]
        assert advised(read(filters, *columns, per_hour=dice.uniform(0, 500)), trace) is None


def test_the_proof_states_reads_and_files_and_promises_nothing() -> None:
    found = advised(TEN["another column has bounds, and is compared by other reads"][0])
    assert found is not None
    proof, bounds = found.proof, found.proof.bounds
    assert bounds is not None
    assert (bounds.share_of_reads, bounds.files_opened, bounds.files) == (0.25, FILES, FILES)
    hours = FILES - 1
    assert (proof.hours, proof.queries_per_hour) == (hours, 5.0)
    assert proof.current == proof.advised
    assert proof.current.cost_s == pytest.approx(5 * hours * FILES * SIZE / 2**30 * 10)
    assert (proof.saved_share, proof.saved_s_per_day) == (0.0, 0.0)
    assert "25% of the reported reads with filters compare it, 5 an hour; each opens 60 of 60 files" in found.message
    assert "How many of these bounds would spare is not known" in found.message
    assert needs_owner(found)
    assert former_values(found) == {COUNTED: "4"}
    assert Advice.decode(found.encode()) == found


def test_partitions_that_filters_leave_out_are_not_counted() -> None:
    found = advised(TEN["reads of one partition"][0])
    assert found is not None
    assert found.proof.bounds is not None
    assert found.proof.bounds.files_opened == pytest.approx(6)


@pytest.mark.parametrize(
    ("ranges", "saved"),
    [(ALL, 1 - 1 / FILES), (NONE, 0.0), ([*NONE[:30], *ALL[30:]], 0.5)],
    ids=["all", "none", "half"],
)
def test_bounds_are_judged_by_the_files_that_they_spare(ranges: Sequence[Range | None], saved: float) -> None:
    found = advised(TEN["no file has bounds"][0])
    assert found is not None
    bounds = found.proof.bounds
    assert bounds is not None

    def judged(reading: OrderReading, commits: int = FILES) -> Any:
        return judge_bounds(found, bounds, history(commits), reading, PRICES, FILES * HOUR_MS)

    result = judged(read([equal("a"), equal("b")], left_out(ranges=ranges), files("b", ALL)))
    assert (result.saved_share, result.predicted_share) == (pytest.approx(saved), 0.0)
    assert result.former_s == result.advised_s == pytest.approx(10 * FILES * FILES * SIZE / 2**30 * 10)
    assert judged(read([equal("a")], left_out(ranges=ranges)), 49) is None
    assert judged(read([equal("a")], left_out(ranges=ranges), per_hour=0.0)) is None
    assert judged(read([equal("b")], files("b", ALL))) is None
    one = replace(left_out(ranges=ranges), column=PartitionColumn("a", "c-1", "long"))
    assert judged(read([equal("a")], one)) is not None
