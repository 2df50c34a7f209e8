"""Sort advice on TPC-H's lineitem: the advised column is the one with which a reader opens the fewest bytes.

Measured on tables that are sorted by each candidate for this: deltalake writes them, and Arrow prunes their files by
the statistics in the log.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.support.duckdb_extensions import load_extension
from tests.support.live_decider import LiveDecider

SCALE = 0.01
"""60,000 rows."""

FILES = 16

Range = tuple[str, Any, Any]
"""Column, first and last wanted value."""

Recorded = Sequence[tuple[int, Sequence[Range]]]
"""How often, and the ranges that all have to hold."""

SHIPPED, ORDER, PART = "l_shipdate", "l_orderkey", "l_partkey"
TPCH: Recorded = (
    (1, [(SHIPPED, "1992-01-01", "1998-09-02")]),  # Q1
    (1, [(SHIPPED, "1995-03-16", "1998-12-31")]),  # Q3
    (1, [(SHIPPED, "1994-01-01", "1994-12-31")]),  # Q6
    (1, [(SHIPPED, "1995-01-01", "1996-12-31")]),  # Q7
    (1, [("l_receiptdate", "1994-01-01", "1994-12-31")]),  # Q12
    (1, [(SHIPPED, "1995-09-01", "1995-09-30")]),  # Q14
    (1, [(SHIPPED, "1996-01-01", "1996-03-31")]),  # Q15
    (1, [(SHIPPED, "1994-01-01", "1994-12-31")]),  # Q20
)
"""The conditions of TPC-H's queries on columns of lineitem with minima and maxima, with their validation values."""

ITEMS: Recorded = (*((3, [(ORDER, key, key)]) for key in range(1, 60_000, 6_001)), *TPCH)
PARTS: Recorded = (*((5, [(PART, key, key + 20)]) for key in range(1, 2_000, 250)), *TPCH)
DATES: Recorded = (
    *((6, [("l_receiptdate", f"199{year}-03-01", f"199{year}-03-20")]) for year in range(3, 8)),
    *((2, [("l_commitdate", f"199{year}-08-01", f"199{year}-08-20")]) for year in range(3, 8)),
    *((1, [(SHIPPED, f"199{year}-05-01", f"199{year}-05-20"), (PART, 1, 900)]) for year in range(3, 8)),
)
"""Three dates that depend on each other."""


def expression(ranges: Sequence[Range], *, is_hidden: bool) -> Any:
    """Return a filter as Iceberg writes it; hidden: as in its scan reports."""
    made: Any = None
    for column, low, high in ranges:
        kinds = [("eq", low)] if low == high else [("gt-eq", low), ("lt-eq", high)]
        for kind, value in kinds:
            shown = ("(date)" if isinstance(value, str) else "(4-digit-int)") if is_hidden else value
            one = {"type": kind, "term": column, "value": shown}
            made = one if made is None else {"type": "and", "left": made, "right": one}
    return made


@pytest.fixture(scope="module")
def lineitem() -> pa.Table:
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1})
    load_extension(connection, "tpch")
    connection.execute(f"CALL dbgen(sf = {SCALE})")
    return connection.execute("SELECT * FROM lineitem ORDER BY hash(l_orderkey, l_linenumber)").to_arrow_table()


def write(path: Path, rows: pa.Table) -> Path:
    """Write rows in their order into as many files."""
    for at in range(FILES):
        first, last = (number * rows.num_rows // FILES for number in (at, at + 1))
        write_deltalake(path, rows.slice(first, last - first), mode="append")
    return path


def read_share(path: Path, recorded: Recorded) -> float:
    """Return the mean share of a table's bytes in the files that a reader opens for filters."""
    table = DeltaTable(path)
    sizes: Mapping[str, int] = {
        file["path"]: file["size_bytes"] for file in pa.table(table.get_add_actions(flatten=True)).to_pylist()
    }
    dataset, total, times = table.to_pyarrow_dataset(), 0, 0
    for often, ranges in recorded:
        wanted = pc.scalar(True)
        for column, low, high in ranges:
            kind = dataset.schema.field(column).type
            first, last = (pc.scalar(pa.scalar(value).cast(kind)) for value in (low, high))
            wanted = wanted & (pc.field(column) >= first) & (pc.field(column) <= last)
        total += often * sum(sizes[Path(file.path).name] for file in dataset.get_fragments(filter=wanted))
        times += often
    return total / times / sum(sizes.values())


@pytest.fixture(scope="module")
def shuffled(lineitem: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write(tmp_path_factory.mktemp("tables") / "shuffled", lineitem)
    table = DeltaTable(path)
    size = sum(pa.table(table.get_add_actions(flatten=True))["size_bytes"].to_pylist()) // FILES
    table.alter.set_table_properties({"lakewright.target-file-size": str(size)}, raise_if_not_exists=False)
    return path


@pytest.fixture(scope="module")
def sorted_by(lineitem: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sorted")
    columns = (SHIPPED, ORDER, PART, "l_receiptdate", "l_commitdate")
    return {column: write(folder / column, lineitem.sort_by(column)) for column in columns}


@pytest.mark.redis
@pytest.mark.parametrize(
    ("recorded", "best"),
    [(TPCH, SHIPPED), (ITEMS, ORDER), (PARTS, PART), (DATES, "l_receiptdate")],
    ids=["tpch", "items", "parts", "dates"],
)
def test_a_decider_advises_the_same_column_from_reported_reads_without_reading_data(
    decider: LiveDecider, shuffled: Path, recorded: Recorded, best: str
) -> None:
    name = decider.register(shuffled, "lineitem")
    asked = f"/v1/tables/{name}/what-if"
    assert decider.post(asked, {}).json()["sort_advice"] is None
    for is_hidden in (True, False):
        reports = [
            {"table": name, "filter": expression(ranges, is_hidden=is_hidden), "times": often}
            for often, ranges in recorded
        ]
        assert decider.post("/v1/scan-reports", reports).status_code == 202
        advice = decider.post(asked, {}).json()["sort_advice"]
        print(f"\n{advice}")
        assert advice["column"] == best
        assert advice["properties"] == {"lakewright.sort-by": best}


@pytest.mark.parametrize("is_hidden", [False, True], ids=["values", "scan-reports"])
@pytest.mark.parametrize(
    ("recorded", "best"),
    [(TPCH, SHIPPED), (ITEMS, ORDER), (PARTS, PART), (DATES, "l_receiptdate")],
    ids=["tpch", "items", "parts", "dates"],
)
def test_the_column_that_prunes_most_when_it_is_measured_is_advised(
    shuffled: Path, sorted_by: dict[str, Path], tmp_path: Path, recorded: Recorded, best: str, *, is_hidden: bool
) -> None:
    filters = tmp_path / "filters.jsonl"
    lines = [{"filter": expression(ranges, is_hidden=is_hidden), "times": often} for often, ranges in recorded]
    filters.write_text("\n".join(map(json.dumps, lines)))
    ran = CliRunner().invoke(app, ["--json", "what-if", str(shuffled), "--filters", str(filters)])
    assert ran.exit_code == 0, ran.output
    advice = json.loads(ran.stdout)["sort_advice"]
    named = {column for _, ranges in recorded for column, _, _ in ranges}
    measured = {column: read_share(path, recorded) for column, path in sorted_by.items() if column in named}
    predicted = {one["column"]: one["share_read"] for one in advice["candidates"]}
    print(f"\nnow {read_share(shuffled, recorded):.3f}, measured {measured}, predicted {predicted}")
    assert min(measured, key=measured.__getitem__) == best
    assert advice["column"] == best
    assert predicted.keys() == measured.keys()
    if not is_hidden:
        assert all(predicted[column] > share - 0.03 for column, share in measured.items()), "no order promises too much"
        assert advice["share_read_now"] == pytest.approx(read_share(shuffled, recorded), abs=0.01)
