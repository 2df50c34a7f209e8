"""What the benchmark of a trickle stands on, without Spark: all rows of TPC-H, once, in small files of each round."""

import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from tests.bench.autocomp.queries import QUERIES
from tests.bench.autocomp.simulated import REPLAYS, commits, replayed, simulated_table
from tests.bench.autocomp.trickle import ORDERS_TASKS, make_trickle
from tests.bench.delta.table import PlayedTable
from tests.support.duckdb_extensions import load_extension

ROUNDS = 4


def test_rounds_hold_every_row_once_and_the_items_of_their_own_orders(tmp_path: Path) -> None:
    lineitem, orders = make_trickle(tmp_path, scale=0.002, rounds=ROUNDS)
    assert [len(one.rounds) for one in (lineitem, orders)] == [ROUNDS, ROUNDS]
    assert {len(adds) for adds in orders.rounds} == {ORDERS_TASKS}
    assert {len(adds) for adds in lineitem.rounds} == {7}, "a file for each year of shipping"
    assert lineitem.partitioned_by == ("l_shipyear",)
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1})
    load_extension(connection, "tpch")
    connection.execute("CALL dbgen(sf = 0.002)")
    for one in (lineitem, orders):
        adds = [add for of_round in one.rounds for add in of_round]
        paths = [str(tmp_path / one.name / add["path"]) for add in adds]
        assert len(set(paths)) == len(paths) == one.files
        assert sum(Path(path).stat().st_size for path in paths) == one.bytes
        assert sum(json.loads(add["stats"])["numRecords"] for add in adds) == sum(
            pq.read_metadata(path).num_rows for path in paths
        )
        names = ", ".join(name for name in one.columns if name not in one.partitioned_by)
        read = f"SELECT {names} FROM read_parquet({paths}, hive_partitioning = false)"
        assert connection.execute(f"({read}) EXCEPT ALL (SELECT {names} FROM {one.name})").fetchall() == []
        assert (
            connection.execute(f"SELECT count(*) FROM ({read})").fetchall()
            == connection.execute(f"SELECT count(*) FROM {one.name}").fetchall()
        )
    for of_items, of_orders in zip(lineitem.rounds, orders.rounds, strict=True):
        keys = {key for add in of_orders for key in _keys(tmp_path / "orders" / add["path"], "o_orderkey")}
        items = {key for add in of_items for key in _keys(tmp_path / "lineitem" / add["path"], "l_orderkey")}
        assert items <= keys


def test_a_played_table_of_a_round_is_read_by_the_queries(tmp_path: Path) -> None:
    made = make_trickle(tmp_path / "data", scale=0.002, rounds=ROUNDS)
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1})
    load_extension(connection, "delta")
    names = {}
    for one in made:
        played = PlayedTable(tmp_path / one.name, {}, one.columns, one.partitioned_by)
        for adds in one.rounds:
            played.bring(tmp_path / "data" / one.name, adds)
            played.append(adds)
        assert (played.files, played.live_bytes) == (one.files, one.bytes)
        names[one.name] = f"delta_scan('{played.path}')"
    for name, text in QUERIES.items():
        assert connection.execute(text.format(**names)).fetchall(), name


def _keys(path: Path, column: str) -> list[int]:
    return [*pq.read_table(path, columns=[column])[column].to_pylist()]


def test_a_replay_of_the_trickle_has_its_files_and_leaves_fewer_where_the_tables_rest(tmp_path: Path) -> None:
    made = make_trickle(tmp_path, scale=0.002, rounds=8)
    assert [commits(one).bytes_added for one in made] == [one.bytes for one in made]
    left = {title: sum(done.files_at_end for done in replayed(made, how)) for title, how in REPLAYS.items()}
    assert left["at once, and a day of rest"] < min(left["two commits late, as measured"], left["at once"])
    assert all(f"| {title} | {count} |" in simulated_table(made) for title, count in left.items())
