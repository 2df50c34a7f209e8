"""What the benchmark of reading stands on, without Spark: rows, streams, tables, layouts, knees, and their report."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")
pytest.importorskip("duckdb", reason="DuckDB is among the tools of development")
pytest.importorskip("duckdb_extension_delta", reason="DuckDB's extension is among the tools, too")

from shared.policy.policy import KIB, MIB, Policy
from tests.bench.read import report
from tests.bench.read.levels import commit_sizes, simulate
from tests.bench.read.measuring import Timed, in_turns, overall_ratio
from tests.bench.read.picture import Curve, draw
from tests.bench.read.readers import DataFusionReader, DuckDbReader, PyArrowReader, queries
from tests.bench.read.row_groups import Layout, drawn, layout_of, size_text
from tests.bench.read.rows import ACCOUNTS, COLUMNS, JITTER, ROWS_PER_TICK, RowKind
from tests.bench.read.rules import Deltalake, LeaveAlone
from tests.bench.read.stream import Stream, StreamSpec, make_stream
from tests.bench.read.table import GrownTable, grow
from tests.bench.read.threshold import FILES, ThresholdSpec, knee, make_tables, relative, requests

SPEC = StreamSpec("small", "three days", 3, 66, 8 * KIB, 256 * KIB)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    return make_stream(SPEC, tmp_path_factory.mktemp("stream"), seed=3)


def test_rows_depend_on_their_number_and_the_seed_alone_and_arrive_nearly_in_order() -> None:
    kind = RowKind(extra=2)
    rows = kind.rows(5_000, 100_000, seed=1)
    assert rows.equals(kind.rows(5_000, 100_000, seed=1))
    assert not rows.equals(kind.rows(5_000, 100_000, seed=2))
    assert tuple(rows.column_names) == (*COLUMNS, "c00", "c01")
    late = pc.subtract(rows["arrived"], pc.multiply(rows["id"], ROWS_PER_TICK))
    assert 0 <= pc.min(late).as_py() <= pc.max(late).as_py() < JITTER * ROWS_PER_TICK
    assert pc.max(late).as_py() > JITTER * ROWS_PER_TICK * 0.99
    assert 0.99 * ACCOUNTS < pc.count_distinct(rows["account"]).as_py() <= ACCOUNTS
    assert pc.count_distinct(rows["c00"]).as_py() == 100_000
    assert pc.max(rows["c00"]).as_py() > 1 << 61


def test_a_stream_is_one_row_group_a_commit_in_one_partition_after_another(stream: Stream) -> None:
    assert len(stream.files) == SPEC.commits
    assert len({file.day for file in stream.files}) == SPEC.days
    ends = [index for index in range(SPEC.commits) if stream.is_last_of_day(index)]
    assert ends == [21, 43, SPEC.commits - 1]
    sizes = sorted(file.bytes for file in stream.files)
    assert SPEC.file_bytes / 1.5 < sizes[len(sizes) // 2] < SPEC.file_bytes * 1.5
    assert {pq.read_metadata(stream.folder / file.path).num_row_groups for file in stream.files} == {1}


def test_tables_hold_the_stream_whatever_rule_compacts_them_and_readers_agree(stream: Stream, tmp_path: Path) -> None:
    grown = {rule.name: grow(stream, rule, tmp_path / rule.name) for rule in (LeaveAlone(), Deltalake())}
    assert len(grown["none"].layout.files) == SPEC.commits
    assert grown["none"].layout.bytes == stream.bytes
    assert grown["none"].bytes_rewritten == 0
    assert len(grown["deltalake"].layout.files) < SPEC.commits / 3
    assert grown["deltalake"].bytes_rewritten > stream.bytes / 2
    asked = queries(stream.kind, stream.rows)
    readers = (DuckDbReader(), PyArrowReader(), DataFusionReader())
    for reader in readers:
        for one in grown.values():
            reader.open(one.path)
    for query in asked:
        answers = {reader.answer(one.path, query) for reader in readers for one in grown.values()}
        assert len(answers) == 1, f"{query.name}: {answers}"
        assert None not in next(iter(answers))
    assert DeltaTable(str(tmp_path / "none")).to_pyarrow_table().num_rows == stream.rows


def test_row_groups_get_the_sizes_that_are_compared_and_the_bytes_stay_the_same(tmp_path: Path) -> None:
    spec = ThresholdSpec((32 * KIB, 128 * KIB, 512 * KIB), 1024 * KIB)
    tables = make_tables(spec, tmp_path / "made", seed=1)
    layouts = {table.row_group_bytes: layout_of(table.path) for table in tables}
    assert {size: len(layout.row_groups) for size, layout in layouts.items()} == {
        32 * KIB: 32,
        128 * KIB: 8,
        512 * KIB: 2,
    }
    for size, layout in layouts.items():
        assert layout.mean_row_group_bytes == pytest.approx(size, rel=0.15)
    totals = [layout.bytes for layout in layouts.values()]
    assert max(totals) / min(totals) < 1.08  # Footers and headers of pages.
    asked = queries(spec.kind, tables[0].rows)
    made = {table.row_group_bytes: requests(table.path, asked) for table in tables}
    print(made)
    footers_and_data = 2 * FILES
    assert all(found["full"] >= footers_and_data for found in made.values())
    assert made[128 * KIB]["two columns"] > made[512 * KIB]["two columns"] > footers_and_data


def test_small_row_groups_stay_below_the_full_size_alone_and_no_byte_is_lost() -> None:
    policy = Policy(target_bytes=8 * MIB)
    partition = simulate(1_000, 64, policy, seed=5)
    full = policy.size_levels.full_bytes
    for path, file in partition.files.items():
        groups = partition.row_groups[path]
        assert sum(groups) == file.size_bytes
        assert len(groups) == 1 or file.size_bytes < full
    layout = partition.layout
    assert layout.bytes == sum(layout.row_groups) == sum(commit_sizes(1_000, 64, seed=5))
    assert layout.files[-1] >= full
    assert partition.decoded_bytes <= layout.bytes < partition.copied_bytes
    partition.compact_idle()
    assert len(partition.layout.files) < len(layout.files)
    assert len(partition.layout.row_groups) == len(partition.layout.files)


def test_the_knee_is_where_a_curve_becomes_flat_and_not_where_it_dips() -> None:
    falling = {1: 2.0, 2: 1.5, 4: 1.04, 8: 1.0, 16: 1.01}
    assert knee(falling) == 4
    assert knee({1: 1.0, 2: 1.2, 4: 1.3}) == 1
    assert knee({1: 1.02, 2: 1.4, 4: 1.0}) == 4
    assert knee({1: 1.1, 2: 1.04, 4: 1.0}, tolerance=0.2) == 1


def test_ratios_are_of_the_same_rounds_and_relative_to_the_best_size() -> None:
    times = {("r", "full"): {"a": Timed([10.0, 20.0, 30.0], [5.0, 5.0, 5.0]), "b": Timed([5.0, 10.0, 60.0], [1.0])}}
    assert overall_ratio(times, "a", "b") == 2.0
    assert overall_ratio(times, "a", "b", "r") == 2.0
    assert times["r", "full"]["a"].cpu_ratio(times["r", "full"]["b"]) == 5.0
    assert relative(times, {"a": 1, "b": 8}, cpu=False) == {("r", "full"): {1: 2.0, 8: 1.0}}
    assert relative(times, {"a": 1, "b": 8}, cpu=True) == {("r", "full"): {1: 5.0, 8: 1.0}}


def test_each_table_is_as_often_first_as_last() -> None:
    names = ["a", "b", "c"]
    orders = [in_turns(names, number) for number in range(6)]
    assert all(sorted(order) == names for order in orders)
    assert (
        sorted(order[0] for order in orders) == sorted(order[-1] for order in orders) == ["a", "a", "b", "b", "c", "c"]
    )


def test_sizes_are_drawn_with_their_number_and_their_share_of_bytes() -> None:
    text = drawn("row groups", [100, 200, 300, 5_000])
    assert text.splitlines()[0] == "row groups: 4, 0.0 MiB"
    assert [line.split("|")[0].split() for line in text.splitlines()[1:]] == [
        ["64", "B", "up", "2"],
        ["256", "B", "up", "1"],
        ["1", "KiB", "up", "0"],
        ["4", "KiB", "up", "1"],
    ]
    assert "89.3% of bytes" in text
    assert [size_text(size) for size in (5, 64 * KIB, 4096 * KIB)] == ["5 B", "64 KiB", "4 MiB"]
    assert Layout((10,), (1, 1, 2, 6)).half_in_bytes == 6


def test_figures_are_reported_as_tables_and_a_picture() -> None:
    layouts = {"lakewright": Layout((1_060,), (1_000,)), "optimize": Layout((1_000,), (990,))}
    grown = {name: GrownTable(Path(name), name.title(), one, 5, 1.0, 3, 1) for name, one in layouts.items()}
    times = {("Spark", "full"): {"lakewright": Timed([10.4], [1.0]), "optimize": Timed([10.0], [1.0])}}
    assert "| Lakewright | 1 | 1 | 1000 B | 1000 B | 0.0 MiB | 1.060 | 0 MiB | 3 / 1 | 1 s |" in report.layouts(
        grown, "optimize"
    )
    assert "| Spark, full | 10 (1.04, 1.00) | 10 (1.00, 1.00) |" in report.reading(
        times, {"a": "A", "b": "B"}, "optimize"
    )
    met = report.goals(times, grown, "lakewright", "optimize")
    assert [line.split()[0] for line in met] == ["met", "met", "MISS"]
    curves = {("Spark", "full"): {KIB: 2.0, 4 * KIB: 1.0}}
    assert "| Spark, full | 2.00 | 1.00 | 4 KiB |" in report.curves("CPU", curves)
    svg = draw("t", [Curve("Spark", {KIB: 9.0, 4 * KIB: 1.0}, 0, is_dashed=True)], floor_bytes=2 * KIB)
    root: Any = ET.fromstring(svg)  # noqa: S314 - our own text
    assert len(root.findall(".//{http://www.w3.org/2000/svg}polyline")) == 1
