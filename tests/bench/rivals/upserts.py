"""A stream of upserts into an Iceberg table: rows from a seed, and commits as Flink's and OLake's writers make them.

A sync adds a data file, and an equality delete file for its keys, which hides their older rows. The columns are a few
of TPC-H's lineitem, with a key.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from actor.formats.iceberg.iceberg_scala import IcebergScala
from tests.support.duckdb_extensions import iceberg_connection
from tests.support.iceberg_foreign import field
from tests.support.iceberg_lab import ice_session

COLUMNS = {
    "id": ("BIGINT", pa.int64()),
    "shipdate": ("DATE", pa.date32()),
    "quantity": ("INT", pa.int32()),
    "discount": ("INT", pa.int32()),
    "price": ("BIGINT", pa.int64()),
    "comment": ("STRING", pa.string()),
}
IDS = {name: number for number, name in enumerate(COLUMNS, 1)}
SCHEMA = pa.schema([field(name, kind, IDS) for name, (_, kind) in COLUMNS.items()])
_PLAIN = pa.schema([(name, kind) for name, (_, kind) in COLUMNS.items()])
FIRST_DAY, DAYS = date(1992, 1, 1), 2526
RECENT = 3
"""Power of an even draw: the greater it is, the more updates are of keys that came last."""
_ICEBERG = "org.apache.iceberg"


class Upserts:
    """The rows of each sync from a seed, and those that a table must hold after it."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._syncs: list[pa.Table] = []
        self._newest: dict[int, int] = {}

    def next(self, rows: int, updates: int = 0) -> pa.Table:
        """Return the rows of the next sync, of which so many are new rows of keys that there are."""
        known = len(self._newest)
        ids = set[int]()
        while len(ids) < min(updates, known):
            ids.add(known - 1 - int(known * self._draw.random() ** RECENT))
        self._syncs.append(self._rows([*ids, *range(known, known + rows - len(ids))]))
        first = sum(one.num_rows for one in self._syncs[:-1])
        self._newest.update((one, first + place) for place, one in enumerate(self._syncs[-1]["id"].to_pylist()))
        return self._syncs[-1]

    def expected(self) -> pa.Table:
        """Return the rows that are left, by key."""
        return pa.concat_tables(self._syncs).take([self._newest[one] for one in sorted(self._newest)])

    def _rows(self, ids: Sequence[int]) -> pa.Table:
        draw = self._draw
        columns = (
            [FIRST_DAY + timedelta(draw.randrange(DAYS)) for _ in ids],
            [draw.randint(1, 50) for _ in ids],
            [draw.randint(0, 10) for _ in ids],
            [draw.randrange(90_000, 10_500_000) for _ in ids],
            [f"{draw.getrandbits(216):054x}" for _ in ids],
        )
        return pa.table([pa.array(ids), *columns], schema=SCHEMA)


class UpsertedTable:
    """A table of format version 2 in the catalog `ice`, whose warehouse is `folder`, and its writer."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, properties: Mapping[str, str]) -> None:
        self.session, self.path, self.name = ice_session(spark, folder), folder / "db" / name, f"db.{name}"
        columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
        given = ", ".join(f"'{key}'='{value}'" for key, value in {"format-version": "2", **properties}.items())
        self.session.sql(f"CREATE TABLE ice.{self.name} ({columns}) USING iceberg TBLPROPERTIES ({given})")
        self._scala, self._files = IcebergScala(spark), 0
        tables = self._scala.resolve(f"{_ICEBERG}.hadoop.HadoopTables")
        self._raw: Any = tables(self.session._jsparkSession.sessionState().newHadoopConf()).load(str(self.path))
        self._keys = self._scala._gateway.new_array(self._scala.resolve("int"), 1)
        self._keys[0] = IDS["id"]

    def written(self, rows: pa.Table) -> tuple[Path, Path]:
        """Write the files of a sync: rows, and keys by which older ones are deleted."""
        return self._written(rows), self._written(rows.select(["id"]))

    def load(self, rows: pa.Table) -> None:
        """Append rows whose keys are new, without deletes."""
        self._raw.refresh()
        self._raw.newAppend().appendFile(self._data_file(self._written(rows))).commit()

    def commit(self, data: Path, keys: Path) -> None:
        """Commit them as one snapshot; it reads nothing, so that no rewrite contradicts it."""
        self._raw.refresh()
        deletes = self._scala.resolve(f"{_ICEBERG}.FileMetadata").deleteFileBuilder(self._raw.spec())
        hidden = self._described(deletes.ofEqualityDeletes(self._keys), keys)
        self._raw.newRowDelta().addRows(self._data_file(data)).addDeletes(hidden).commit()

    def counts(self) -> tuple[int, int]:
        """Return the number of data files and of delete files."""
        self._raw.refresh()
        summary = self._raw.currentSnapshot().summary()
        return int(summary.get("total-data-files")), int(summary.get("total-delete-files"))

    def rows(self, *, is_small: bool) -> pa.Table:
        """Return all rows by key, as DuckDB reads a small table: it compares each row with each key that is deleted.

        Spark reads the others, with Iceberg's own library.
        """
        if not is_small:
            return self.session.sql(f"SELECT * FROM ice.{self.name} ORDER BY id").toArrow().cast(_PLAIN)
        newest = str(self._raw.operations().refresh().metadataFileLocation()).removeprefix("file:")
        with iceberg_connection() as connection:
            return connection.sql(f"FROM iceberg_scan('{newest}') ORDER BY id").to_arrow_table()

    def _written(self, rows: pa.Table) -> Path:
        self._files += 1
        path = self.path / "data" / f"sync-{self._files:05d}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(rows, path, compression="zstd")
        return path

    def _data_file(self, path: Path) -> Any:
        return self._described(self._scala.resolve(f"{_ICEBERG}.DataFiles").builder(self._raw.spec()), path)

    def _described(self, builder: Any, path: Path) -> Any:
        """Return a file with its metrics, as a writer has them."""
        file = self._raw.io().newInputFile(str(path))
        config = self._scala.resolve(f"{_ICEBERG}.MetricsConfig").forTable(self._raw)
        metrics = self._scala.resolve(f"{_ICEBERG}.parquet.ParquetUtil").fileMetrics(file, config)
        size = path.stat().st_size
        return (
            builder.withPath(path.as_uri()).withFormat("PARQUET").withFileSizeInBytes(size).withMetrics(metrics).build()
        )
