"""Groups with deleted rows are merged column by column without them: what every reader sees stays as it was."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import GroupStatus
from actor.proofread.model import Reading

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

IDS = {"id": 1, "t": 2, "n": 3, "f": 4, "l": 5, "s": 6, "element": 7, "a": 8, "b": 9}
COLUMNS = "id BIGINT, t STRING, n INT, f DOUBLE, l ARRAY<INT>, s STRUCT<a: INT, b: STRING>"


def _schema() -> Any:
    from tests.support.iceberg_foreign import field

    parts = [field("a", pa.int32(), IDS), field("b", pa.string(), IDS)]
    kinds = {
        "id": pa.int64(),
        "t": pa.string(),
        "n": pa.int32(),
        "f": pa.float64(),
        "l": pa.list_(field("element", pa.int32(), IDS)),
        "s": pa.struct(parts),
    }
    return pa.schema([field(name, kind, IDS) for name, kind in kinds.items()])


def _rows(draw: random.Random, count: int) -> list[dict[str, Any]]:
    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.2 else value

    return [
        {
            "id": maybe(draw.randrange(60)),
            "t": maybe(draw.choice(["", "a", "ä\x00", "long " * 9])),
            "n": maybe(draw.randrange(-3, 3)),
            "f": maybe(draw.choice([0.5, -0.0, float("inf"), draw.random()])),
            "l": maybe([maybe(draw.randrange(9)) for _ in range(draw.randrange(4))]),
            "s": maybe({"a": maybe(draw.randrange(9)), "b": maybe("b")}),
        }
        for _ in range(count)
    ]


class Stream:
    """Writes and deletes in one table at random, as others do."""

    def __init__(self, ice: "IcebergLab", draw: random.Random) -> None:
        from tests.support.iceberg_foreign import ForeignWriter

        self.table, self._draw, self._files = "ice.db.t", draw, list[tuple[Path, int]]()
        ice.sql(f"CREATE TABLE {self.table} ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version'='2')")
        self._writer = ForeignWriter(ice, self.table)

    def write(self) -> None:
        rows = _rows(self._draw, self._draw.randrange(1, 50))
        table = pa.Table.from_pylist(rows, _schema())
        self._files.append((self._writer.add(table, row_group_size=self._draw.choice([3, 7, 100])), len(rows)))

    def delete_places(self) -> None:
        """One row may be named twice, and one file of positions names rows of several files."""
        chosen = (self._draw.choice(self._files) for _ in range(self._draw.randrange(1, 9)))
        places = sorted((path.as_uri(), self._draw.randrange(count)) for path, count in chosen)
        self._writer.delete_places(places)

    def delete_values(self) -> None:
        names = self._draw.choice([("id",), ("t",), ("n",), ("id", "t"), ("n", "t")])
        rows = [{name: row[name] for name in names} for row in _rows(self._draw, self._draw.randrange(1, 5))]
        keys = pa.schema([_schema().field(name) for name in names])
        self._writer.delete_values(pa.Table.from_pylist(rows, keys), [IDS[name] for name in names])


def _seen(ice: "IcebergLab", table: str) -> list[str]:
    rows = (row.asDict(recursive=True) for row in ice.sql(f"SELECT * FROM {table}").collect())
    return sorted(repr(tuple(row.values())) for row in rows)


@pytest.mark.parametrize("seed", range(6))
def test_a_merge_leaves_out_what_spark_leaves_out(ice: "IcebergLab", seed: int) -> None:
    from tests.support.iceberg_foreign import hidden_values, read_by_others

    draw = random.Random(seed)
    stream = Stream(ice, draw)
    stream.write()
    for _ in range(12):
        draw.choice([stream.write, stream.delete_places, stream.delete_values])()
    stream.write()
    stream.delete_values()
    seen = _seen(ice, stream.table)
    end = ice.rewrite_all(stream.table)
    assert (end.status, end.rows) == (GroupStatus.COMMITTED, len(seen)), end.error
    assert (end.by_column, end.encoded_because) == (True, "delete_files")
    assert end.proof is not None
    assert (end.proof.reading, len(end.outputs)) == (Reading.ROWS, 1 if seen else 0)
    # Before, DuckDB 1.5 did not: with deletes by value, it hides each row whose key is null.
    assert [_seen(ice, stream.table), *read_by_others(ice, stream.table).values()] == [seen] * 3
    for column in ("id", "t", "n", "f"):
        assert hidden_values(ice, stream.table, column) == []
    assert ice.sql(f"SELECT * FROM {stream.table}.delete_files").count() == 0


def test_a_group_all_of_whose_rows_are_deleted_leaves_no_file(ice: "IcebergLab") -> None:
    from tests.support.iceberg_foreign import ForeignWriter

    ice.sql(f"CREATE TABLE ice.db.t ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version'='2')")
    writer, rows = ForeignWriter(ice, "ice.db.t"), _rows(random.Random(1), 5)
    path = writer.add(pa.Table.from_pylist(rows, _schema()))
    writer.delete_places([(path.as_uri(), place) for place in range(5)])
    end = ice.rewrite_all("ice.db.t")
    assert (end.status, end.rows, end.outputs, end.by_column) == (GroupStatus.COMMITTED, 0, (), True)
    assert end.proof is not None
    assert end.proof.reading is Reading.ROWS
    assert ice.sql("SELECT * FROM ice.db.t").count() == 0


def test_a_position_beyond_the_end_of_a_file_is_left_to_spark(ice: "IcebergLab") -> None:
    from tests.support.iceberg_foreign import ForeignWriter

    ice.sql(f"CREATE TABLE ice.db.t ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version'='2')")
    writer, rows = ForeignWriter(ice, "ice.db.t"), _rows(random.Random(2), 5)
    path = writer.add(pa.Table.from_pylist(rows, _schema()))
    writer.delete_places([(path.as_uri(), 1), (path.as_uri(), 5)])
    seen = _seen(ice, "ice.db.t")
    end = ice.rewrite_all("ice.db.t")
    assert (end.status, end.rows, end.by_column) == (GroupStatus.COMMITTED, 4, False)
    assert _seen(ice, "ice.db.t") == seen
