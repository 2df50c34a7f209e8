"""Advice of an order: the column that reads argue for, if sorting pays; none on little ground."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from decider.advice.analysis import former_values, is_in_force
from decider.advice.order_advice import FilteredReads, OrderReading, analyze_order, judge_order
from decider.state.effective_policy import EffectivePolicy, resolve_unregistered
from decider.store.tables.advice_records import Advice
from decider.store.tables.read_counts import ReportedReads
from decider.whatif.comparison import CostModel
from decider.whatif.recorded_filters import RecordedFilter
from decider.whatif.sort_advice import KeyedFiles
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.policy.properties import as_properties
from shared.refusals import Refusal, RefusalCode
from shared.table import Commit, DataFile, PartitionColumn, TableId, TableMetadata

T, PRICES, HOUR_MS = TableId("t"), CostModel(), 3_600_000
FILES, VALUES = 60, 60_000
Range = tuple[int, int]

EVERYWHERE: Sequence[Range] = [(0, VALUES)] * FILES
APART: Sequence[Range] = [(VALUES * n // FILES, VALUES * (n + 1) // FILES - 1) for n in range(FILES)]


def read(filters: Sequence[RecordedFilter], *, per_hour: float = 20.0, **ranges: Sequence[Range]) -> OrderReading:
    """Return reads of files with these ranges by column, a file a commit."""
    keyed = tuple(
        KeyedFiles(
            PartitionColumn(name, name, "long"),
            tuple(
                DataFile(f"f{n}", 128 * MIB, WHOLE_TABLE, modified_ms=n * HOUR_MS, key_range=one)
                for n, one in enumerate(every)
            ),
        )
        for name, every in ranges.items()
    )
    return OrderReading(FilteredReads(per_hour, tuple(filters)), keyed)


def point(column: str, times: int = 100, *, kind: str = "eq", value: Any = VALUES // 3) -> RecordedFilter:
    return RecordedFilter({"type": kind, "term": column, "value": value}, times)


def history(size: int = MIB, commits: int = FILES, every_ms: int = HOUR_MS, **more: Any) -> TableTrace:
    """Return commits that add files; most of what is live was there before."""
    made = tuple(Commit(n, n * every_ms, "WRITE", (DataFile(f"f{n}", size, WHOLE_TABLE),)) for n in range(commits))
    return TableTrace("memory:///t", 0, commits - 1, TableMetadata("t", (), {}), CommitTrace((), made), 0, 0, 0, **more)


def in_force(*, orders_rows: bool = True, **settings: str) -> EffectivePolicy:
    named = {name.replace("_", "-"): value for name, value in settings.items()}
    found = resolve_unregistered(Policy(), as_properties(named), {})
    traits = replace(found.policy.traits, orders_rows=orders_rows)
    return replace(found, policy=replace(found.policy, traits=traits))


def advised(
    reading: OrderReading, *, trace: TableTrace | None = None, policy: EffectivePolicy | None = None
) -> Advice | None:
    trace = trace or history()
    now_ms = trace.history.commits[-1].timestamp_ms
    return analyze_order(T, trace, policy or in_force(), reading, PRICES, now_ms, lambda _: None)


KEYS = read([point("a")], a=EVERYWHERE)
"""Each file has keys of the whole range, and readers look one of them up."""

TEN = {
    "keys anywhere": (KEYS, "a"),
    "ranges": (read([point("a", kind="lt", value=VALUES // 10)], a=EVERYWHERE), "a"),
    "the column that most reads name": (read([point("a"), point("b", 900)], a=EVERYWHERE, b=EVERYWHERE), "b"),
    "another column than the one that files are apart by": (
        read([point("a", 200), point("b", 900)], a=APART, b=EVERYWHERE),
        "b",
    ),
    "a name that needs quotes": (
        OrderReading(
            FilteredReads(20.0, (point("a b"),)),
            tuple(replace(one, column=PartitionColumn("a b", "a b", "long")) for one in KEYS.keyed),
        ),
        "`a b`",
    ),
    "files are apart already": (read([point("a")], a=APART), None),
    "reads of nearly everything": (read([point("a", kind="gt", value=0)], a=EVERYWHERE), None),
    "so few reads that sorting costs more": (read([point("a")], per_hour=0.001, a=EVERYWHERE), None),
    "only the newer half would gain": (
        read([point("a")], a=[*APART[: FILES // 2], *EVERYWHERE[FILES // 2 :]]),
        None,
    ),
    "no bounds": (read([point("a")]), None),
}


@pytest.mark.parametrize(("reading", "column"), TEN.values(), ids=TEN)
def test_of_ten_histories_the_order_that_is_best_is_advised_and_none_where_none_pays(
    reading: OrderReading, column: str | None
) -> None:
    found = advised(reading)
    assert (None if found is None else found.change) == (None if column is None else {"lakewright.sort-by": column})


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(in_force(sort_by="b"), id="sorted"),
        pytest.param(in_force(zorder_by="b, c"), id="z-order"),
        pytest.param(in_force(clustering_order="time"), id="time"),
        pytest.param(in_force(cluster="cells"), id="clustered"),
        pytest.param(in_force(enabled="false"), id="off"),
        pytest.param(in_force(orders_rows=False), id="a format whose rows are not sorted, as Iceberg's"),
    ],
)
def test_a_table_that_has_an_order_or_cannot_have_one_gets_no_advice(policy: EffectivePolicy) -> None:
    assert advised(KEYS, policy=policy) is None
    assert advised(KEYS) is not None


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(history(commits=49), id="too few commits"),
        pytest.param(history(every_ms=60_000), id="an hour"),
        pytest.param(history(refusal=Refusal(RefusalCode.QBEAST, "t", "no", "none")), id="refused"),
        pytest.param(history(size=100 * 1024 * MIB), id="so much is written that sorting costs more"),
    ],
)
def test_no_order_is_advised_on_little_ground(trace: TableTrace) -> None:
    assert advised(KEYS, trace=trace) is None


def test_the_proof_states_shares_bytes_and_what_sorting_costs() -> None:
    found = advised(KEYS)
    assert found is not None
    proof, order = found.proof, found.proof.order
    assert order is not None
    assert (order.column, order.share_now, order.bytes) == ("a", 1.0, FILES * 128 * MIB)
    assert order.share_sorted == pytest.approx(1 / FILES, rel=0.2)
    hours = FILES - 1
    assert proof.hours == hours
    assert proof.current.cost_s == pytest.approx(20 * hours * order.bytes / 2**30 * 10)
    once = order.bytes * hours / (30 * 24)
    assert proof.advised.bytes_rewritten == pytest.approx(once + 3.5 * FILES * MIB, rel=1e-6)
    assert proof.saved_share == min(1 - proof.advised.cost_s / proof.current.cost_s, proof.half_share) > 0.9
    assert "they read 100% of the bytes, and 2% once full files are sorted by a" in found.message
    assert former_values(found) == {"lakewright.sort-by": "none"}
    assert Advice.decode(found.encode()) == found
    sorted_ = in_force(sort_by="a")
    assert is_in_force(found.change, sorted_.policy)
    assert not is_in_force(found.change, in_force().policy)


def test_of_a_hundred_random_short_histories_no_order_is_advised() -> None:
    dice = random.Random(7)
    for _ in range(100):
        commits = dice.randrange(1, FILES)
        trace = history(dice.choice([1 << 12, MIB, 100 * MIB]), commits, dice.randrange(50, 23 * HOUR_MS // commits))
        ranges = {
            name: [tuple(sorted(dice.randrange(VALUES) for _ in range(2))) for _ in range(FILES)]
            for name in "abc"[: dice.randrange(1, 4)]
        }
        filters = [point(dice.choice([*ranges]), dice.randrange(1, 500), value=dice.randrange(VALUES))]
        assert advised(read(filters, per_hour=dice.uniform(0, 500), **ranges), trace=trace) is None


@pytest.mark.parametrize(
    ("reported", "per_hour"),
    [
        pytest.param(ReportedReads(5.0, ((point("a").expression, 400),), 400, 4.0), 4.0, id="all have filters"),
        pytest.param(ReportedReads(5.0, ((point("a").expression, 100),), 400, 4.0), 1.0, id="a quarter has"),
        pytest.param(ReportedReads(5.0, ((point("a").expression, 900),), 400, 4.0), 4.0, id="filters of a month"),
        pytest.param(ReportedReads(5.0, ((point("a").expression, 49),), 400, 4.0), 0.0, id="too few"),
        pytest.param(ReportedReads(5.0, ((point("a").expression, 400),), 400, 0.0), 0.0, id="of one day"),
        pytest.param(ReportedReads(0.0, ((point("a").expression, 400),)), 0.0, id="long ago"),
        pytest.param(ReportedReads(9.0, (), 900, 9.0), 0.0, id="none has"),
    ],
)
def test_reads_count_with_filters_of_two_days_and_by_the_half_with_fewer(
    reported: ReportedReads, per_hour: float
) -> None:
    assert FilteredReads.of(reported).per_hour == per_hour


@pytest.mark.parametrize(("ranges", "saves"), [(APART, True), (EVERYWHERE, False)], ids=["sorted", "as before"])
def test_an_order_is_judged_by_what_reads_cost_since(ranges: Sequence[Range], saves: bool) -> None:
    found = advised(KEYS)
    assert found is not None
    order = found.proof.order
    assert order is not None
    since, now_ms = history(), FILES * HOUR_MS

    def judged(trace: TableTrace, reading: OrderReading) -> Any:
        return judge_order(found, order, trace, reading, PRICES, now_ms, lambda _: None)

    result = judged(replace(since, bytes_rewritten=1024 * MIB), read([point("a")], a=ranges))
    assert result.predicted_share == found.proof.saved_share
    scanned_s = 20 * FILES * order.bytes / 2**30 * 10
    share = 1 / FILES if saves else 1.0
    assert result.actual_s == pytest.approx(20.0 + scanned_s * share)
    assert result.advised_s < result.former_s
    assert (result.saved_share > 0.9) is saves
    assert judged(history(commits=49), KEYS) is None
    assert judged(since, read([point("a")])) is None
