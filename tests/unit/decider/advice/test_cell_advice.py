"""Advice to keep a table in cells: where reads filter several columns, and never where one order would do."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from decider.advice.analysis import former_values, is_in_force
from decider.advice.order_advice import FilteredReads, OrderReading, analyze_order
from decider.advice.order_kinds import IN_CELLS, KINDS, needs_owner
from decider.store.tables.advice_records import Advice
from decider.whatif.recorded_filters import RecordedFilter
from decider.whatif.trace_reader import TableTrace
from shared.formats.delta import FORMAT as DELTA
from shared.formats.iceberg.names import FORMAT as ICEBERG
from shared.policy.policy import MIB
from shared.table import PartitionColumn
from tests.unit.decider.advice.test_order_advice import (
    APART,
    EVERYWHERE,
    FILES,
    HOUR_MS,
    PRICES,
    VALUES,
    T,
    history,
    in_force,
    point,
    read,
)

SORTED_ROWS, OTHERS = in_force(), in_force(orders_rows=False)
FEW: Sequence[tuple[int, int]] = [(0, 1)] * FILES
NEWER = [*APART[: FILES // 2], *EVERYWHERE[FILES // 2 :]]
BOTH = [point("a"), point("b")]


@pytest.fixture(autouse=True)
def _fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decider.whatif.spread_rows.ROWS", 2_000)


def table(table_format: str = DELTA, *, is_partitioned: bool = False, trace: TableTrace | None = None) -> TableTrace:
    trace = trace or history()
    columns = (PartitionColumn("day", "day", "date"),) if is_partitioned else ()
    return replace(trace, metadata=replace(trace.metadata, format=table_format, partition_columns=columns))


def every_advice(reading: OrderReading, trace: TableTrace) -> list[Advice]:
    """Return what is advised of each kind of order, the largest saving first."""
    policy = OTHERS if trace.metadata.format == ICEBERG else SORTED_ROWS
    now_ms = trace.history.commits[-1].timestamp_ms
    found = (analyze_order(T, trace, policy, reading, PRICES, now_ms, lambda _: None, kind) for kind in KINDS.values())
    return sorted((one for one in found if one is not None), key=lambda one: -one.proof.saved_s_per_day)


def both(left: RecordedFilter, right: RecordedFilter) -> RecordedFilter:
    return RecordedFilter({"type": "and", "left": left.expression, "right": right.expression}, left.times)


CELLS = {"lakewright.cluster": "cells"}
TWO = read(BOTH, a=EVERYWHERE, b=EVERYWHERE)
TEN = {
    "two columns": (TWO, table(), CELLS, "a, b"),
    "ranges of one and values of the other": (
        read([point("a", kind="lt", value=VALUES // 50), point("b")], a=EVERYWHERE, b=EVERYWHERE),
        table(),
        CELLS,
        "a, b",
    ),
    "three columns": (
        read([*BOTH, point("c")], per_hour=200, a=EVERYWHERE, b=EVERYWHERE, c=EVERYWHERE),
        table(),
        CELLS,
        "a, b, c",
    ),
    "few values of one": (read([point("a"), point("b", value=1)], a=EVERYWHERE, b=FEW), table(), CELLS, "a, b"),
    "two columns of Iceberg": (TWO, table(ICEBERG), {**CELLS, "lakewright.cluster-by": "a, b"}, "a, b"),
    "two columns of Iceberg's partitions": (
        TWO,
        table(ICEBERG, is_partitioned=True),
        {**CELLS, "lakewright.cluster-by": "a, b"},
        "a, b",
    ),
    "one column of Iceberg, which sorts no rows": (
        read([point("a")], a=EVERYWHERE),
        table(ICEBERG),
        {**CELLS, "lakewright.cluster-by": "a"},
        "a",
    ),
    "one column": (read([point("a")], a=EVERYWHERE), table(), {"lakewright.sort-by": "a"}, "a"),
    "a column that most reads name": (
        read([point("a", 5), point("b", 995)], a=EVERYWHERE, b=EVERYWHERE),
        table(),
        {"lakewright.sort-by": "b"},
        "b",
    ),
    "both columns at once, of which one is enough": (
        read([both(*BOTH)], a=EVERYWHERE, b=EVERYWHERE),
        table(),
        {"lakewright.sort-by": "a"},
        "a",
    ),
}


@pytest.mark.parametrize(("reading", "trace", "change", "columns"), TEN.values(), ids=TEN)
def test_of_ten_histories_the_right_order_is_first(
    reading: OrderReading, trace: TableTrace, change: dict[str, str], columns: str
) -> None:
    first = every_advice(reading, trace)[0]
    assert first.proof.order is not None
    assert (first.change, first.proof.order.column) == (change, columns)


@pytest.mark.parametrize(
    ("reading", "trace"),
    [
        pytest.param(TWO, table(is_partitioned=True), id="partitions, which CLUSTER BY does not permit"),
        pytest.param(read(BOTH, a=APART, b=APART), table(), id="files are apart by both"),
        pytest.param(read(BOTH, per_hour=0.001, a=EVERYWHERE, b=EVERYWHERE), table(), id="few reads"),
        pytest.param(TWO, table(trace=history(commits=49)), id="too few commits"),
        pytest.param(TWO, table(trace=history(every_ms=60_000)), id="an hour"),
        pytest.param(TWO, table(trace=history(size=100 * 1024 * MIB)), id="so much is written that cells cost more"),
        pytest.param(
            read(BOTH, a=NEWER, b=NEWER),
            table(),
            id="only the newer half would gain",
        ),
    ],
)
def test_no_cells_are_advised_on_little_ground(reading: OrderReading, trace: TableTrace) -> None:
    assert [one for one in every_advice(reading, trace) if one.proof.order and one.proof.order.in_cells] == []


def test_of_a_hundred_random_short_histories_no_order_is_advised() -> None:
    seed = 13
    print(f"seed {seed}")
    dice = random.Random(seed)
    for _ in range(100):
        commits = dice.randrange(1, FILES)
        trace = table(
            dice.choice((DELTA, ICEBERG)),
            trace=history(dice.choice([1 << 12, MIB, 100 * MIB]), commits, dice.randrange(50, 23 * HOUR_MS // commits)),
        )
        ranges = {
            name: [tuple(sorted(dice.randrange(VALUES) for _ in range(2))) for _ in range(FILES)] for name in "abc"
        }
        filters = [point(name, dice.randrange(1, 500), value=dice.randrange(VALUES)) for name in ranges]
        assert every_advice(read(filters, per_hour=dice.uniform(0, 500), **ranges), trace) == []


def test_the_proof_states_shares_of_bytes_and_what_cells_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decider.whatif.spread_rows.ROWS", 20_000)
    (found, _) = every_advice(TWO, table())
    proof, order = found.proof, found.proof.order
    assert order is not None
    assert (order.in_cells, order.share_now) == (True, 1.0)
    # Of 60 files each value is in one row of cells out of eight or so.
    assert order.share_sorted == pytest.approx(60**-0.5, rel=0.1)
    once = order.bytes * proof.hours / (30 * 24)
    assert proof.advised.bytes_rewritten == pytest.approx(once + 5.9 * FILES * MIB, rel=1e-6)
    assert proof.saved_share == min(1 - proof.advised.cost_s / proof.current.cost_s, proof.half_share)
    assert "Run ALTER TABLE ... CLUSTER BY (a, b), and set lakewright.cluster=cells." in found.message
    assert "once full files are in cells of a, b" in found.message
    assert needs_owner(found)
    assert former_values(found) == {"lakewright.cluster": "off"}
    assert Advice.decode(found.encode()) == found


def test_columns_of_iceberg_are_set_by_a_job() -> None:
    (found,) = every_advice(TWO, table(ICEBERG))
    assert not needs_owner(found)
    assert found.message.startswith("Set lakewright.cluster=cells and lakewright.cluster-by=a, b. ")
    assert former_values(found) == {"lakewright.cluster": "off", "lakewright.cluster-by": "none"}
    assert is_in_force(found.change, in_force(cluster="cells", cluster_by="a, b").policy)


def test_a_column_of_which_a_tenth_of_the_bytes_has_no_bounds_is_not_compared() -> None:
    """Rows of unknown values seemed to be read by no filter, so that an order by them seemed to save everything."""
    known = read([point("a")], a=EVERYWHERE).keyed[0]
    for missing, is_compared in ((FILES // 10, True), (FILES // 10 + 1, False), (FILES, False)):
        files = tuple(replace(file, key_range=None) for file in known.files[:missing]) + known.files[missing:]
        reading = OrderReading.of(FilteredReads(20.0, (point("a"),)), [replace(known, files=files)])
        assert bool(reading.keyed) is is_compared


@pytest.mark.parametrize(("times", "columns"), [(40, "a"), (200, "a, b")])
def test_a_further_column_has_to_save_a_tenth_of_what_fewer_read(times: int, columns: str) -> None:
    """Of 60 files a value of `a` is in one, and in two where files are halved by `b`, too."""
    reading = read([point("a", 1000 - times), point("b", times, value=1)], per_hour=200, a=EVERYWHERE, b=FEW)
    assert every_advice(reading, table(ICEBERG))[0].change["lakewright.cluster-by"] == columns


def test_a_name_is_quoted_as_sql_has_it() -> None:
    keyed = tuple(replace(one, column=PartitionColumn("a b", "a b", "long")) for one in TWO.keyed[:1])
    reading = OrderReading(FilteredReads(20.0, (point("a b"), point("b"))), (*keyed, *TWO.keyed[1:]))
    assert every_advice(reading, table(ICEBERG))[0].change["lakewright.cluster-by"] == "`a b`, b"
    assert IN_CELLS.in_cells
