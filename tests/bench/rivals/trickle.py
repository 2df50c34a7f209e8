"""TPC-H's two largest tables, written in a trickle: each round appends the next orders and their items.

lineitem is partitioned by the year of shipping, so that each round leaves a small file in every year; orders is not
partitioned. Rows are those of TPC-H's own generator, by order keys ascending. The files are made once, before anything
is measured, and are the same for every strategy.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.support.duckdb_extensions import load_extension

ORDERS_TASKS = 4
"""Files that a round leaves in orders, as so many writing tasks do."""


@dataclass(frozen=True, slots=True)
class TrickledTable:
    """One table: Delta types by column, partition columns, and the `add` actions of each round."""

    name: str
    columns: Mapping[str, str] = field(hash=False)
    partitioned_by: tuple[str, ...]
    rounds: tuple[tuple[Mapping[str, Any], ...], ...]

    @property
    def bytes(self) -> int:
        """Bytes that all rounds add."""
        return sum(add["size"] for adds in self.rounds for add in adds)

    @property
    def files(self) -> int:
        """Files that all rounds add."""
        return sum(len(adds) for adds in self.rounds)


def make_trickle(folder: Path, *, scale: float, rounds: int) -> list[TrickledTable]:
    """Generate the rows and write all files below `folder`, one folder for each table."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1})
    load_extension(connection, "tpch")
    connection.execute(f"CALL dbgen(sf = {scale})")
    ranks = f"SELECT o_orderkey AS k, ntile({rounds}) OVER (ORDER BY o_orderkey) - 1 AS round FROM orders"
    connection.execute(f"CREATE TABLE rounds AS {ranks}")
    slicings = (
        _Slicing("lineitem", "l_orderkey", "l_shipyear", "year(l_shipdate)"),
        _Slicing("orders", "o_orderkey", "", f"o_orderkey % {ORDERS_TASKS}"),
    )
    return [_table(connection, folder, rounds, one) for one in slicings]


@dataclass(frozen=True, slots=True)
class _Slicing:
    """How a table is cut: by the order key into rounds, by an expression into files; `partition` may be empty."""

    table: str
    key: str
    partition: str
    part: str

    def query(self, number: int) -> str:
        """Return the query for the rows of a round, with the file that each belongs to."""
        rows = f"SELECT t.*, {self.part} AS part FROM {self.table} t JOIN rounds ON {self.key} = k"
        return f"{rows} WHERE round = {number} ORDER BY {self.key}"


def _table(connection: duckdb.DuckDBPyConnection, folder: Path, rounds: int, cut: _Slicing) -> TrickledTable:
    """Write the files of a table."""
    made = []
    schema: pa.Schema = connection.execute(f"SELECT * FROM {cut.table} LIMIT 0").to_arrow_table().schema
    for number in range(rounds):
        rows = connection.execute(cut.query(number)).to_arrow_table()
        adds = []
        for part in sorted(set(rows["part"].to_pylist())):
            own = rows.filter(pc.equal(rows["part"], part)).drop_columns(["part"])
            values = {cut.partition: str(part)} if cut.partition else {}
            adds.append(_file(folder / cut.table, own, number, part, values))
        made.append(tuple(adds))
    columns = {column.name: _delta_type(column.type) for column in schema}
    if cut.partition:
        columns[cut.partition] = "integer"
    return TrickledTable(cut.table, columns, (cut.partition,) if cut.partition else (), tuple(made))


def _file(folder: Path, rows: pa.Table, number: int, part: int, values: Mapping[str, str]) -> dict[str, Any]:
    place = "".join(f"{name}={value}/" for name, value in values.items())
    name = f"{place}part-{number:05d}-{part:05d}.c000.snappy.parquet"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name, compression="snappy")
    return {
        "path": name,
        "partitionValues": dict(values),
        "size": (folder / name).stat().st_size,
        "modificationTime": 1_767_225_600_000,
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows.num_rows}),
    }


def _delta_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    names = {pa.int64(): "long", pa.int32(): "integer", pa.date32(): "date", pa.string(): "string"}
    return names[kind]


QUERIES = {
    "Q1": """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity),
        avg(l_extendedprice), avg(l_discount), count(*) FROM {lineitem} WHERE l_shipdate <= date '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "Q4": """SELECT o_orderpriority, count(*) FROM {orders} WHERE o_orderdate >= date '1993-07-01'
        AND o_orderdate < date '1993-10-01' AND EXISTS (SELECT * FROM {lineitem} WHERE l_orderkey = o_orderkey
        AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "Q6": """SELECT sum(l_extendedprice * l_discount) FROM {lineitem} WHERE l_shipdate >= date '1994-01-01'
        AND l_shipdate < date '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    "Q12": """SELECT l_shipmode, sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END), count(*)
        FROM {orders}, {lineitem} WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
        AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= date '1994-01-01'
        AND l_receiptdate < date '1995-01-01' GROUP BY l_shipmode ORDER BY l_shipmode""",
}
"""By name; the tables are filled in."""
