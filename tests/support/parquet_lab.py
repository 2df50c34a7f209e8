"""Random Delta tables whose files several writers wrote, in every way that Parquet allows: for differential tests."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

WRITERS = ("spark", "pyarrow", "deltalake", "duckdb")
CODECS = ("snappy", "zstd", "gzip", "lz4", "none")
_FIRST_DAY = datetime(1583, 1, 1, tzinfo=UTC)


def _instant(dice: random.Random) -> datetime:
    return _FIRST_DAY + timedelta(days=dice.randrange(300_000), microseconds=dice.randrange(86_400_000_000))


def _text(dice: random.Random) -> str:
    return "".join(dice.choice("abcü€𝄞 '\\") for _ in range(dice.choice([0, 3, 40])))


PALETTE: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "flag": (pa.bool_(), lambda dice: dice.random() < 0.5),
    "tiny": (pa.int8(), lambda dice: dice.randrange(-128, 128)),
    "short": (pa.int16(), lambda dice: dice.randrange(-(2**15), 2**15)),
    "whole": (pa.int32(), lambda dice: dice.randrange(-(2**31), 2**31)),
    "single": (pa.float32(), lambda dice: dice.choice([0.0, -0.0, 1.5, float("nan"), float("-inf")])),
    "real": (pa.float64(), lambda dice: dice.choice([0.0, -0.0, dice.gauss(0, 1e9), float("nan"), float("inf")])),
    "price": (pa.decimal128(9, 2), lambda dice: Decimal(dice.randrange(-(10**9) + 1, 10**9)).scaleb(-2)),
    "amount": (pa.decimal128(18, 4), lambda dice: Decimal(dice.randrange(-(10**18) + 1, 10**18)).scaleb(-4)),
    "sum": (pa.decimal128(38, 10), lambda dice: Decimal(dice.randrange(-(10**37), 10**37)).scaleb(-10)),
    "day": (pa.date32(), lambda dice: date(1583, 1, 1) + timedelta(days=dice.randrange(300_000))),
    "at": (pa.timestamp("us", "UTC"), _instant),
    "wall": (pa.timestamp("us"), lambda dice: _instant(dice).replace(tzinfo=None)),
    "text": (pa.string(), _text),
    "raw": (pa.binary(), lambda dice: dice.randbytes(dice.choice([0, 5, 60]))),
    "list": (pa.list_(pa.int32()), lambda dice: [dice.choice([None, 1, 2]) for _ in range(dice.randrange(4))]),
    "map": (pa.map_(pa.string(), pa.int64()), lambda dice: [(f"k{n}", n) for n in range(dice.randrange(3))]),
    "nested": (
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
        lambda dice: {"a": dice.choice([None, 7]), "b": [{"c": _text(dice)} for _ in range(dice.randrange(3))]},
    ),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one table is made: everything but the rows."""

    writer: str
    columns: tuple[str, ...]
    files: int
    codecs: tuple[str, ...]
    page_version: str
    row_group_rows: int
    uses_int96: bool
    has_bloom_filters: bool
    has_indexes: bool
    logs_statistics: bool

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64()), *((name, PALETTE[name][0]) for name in self.columns)])

    @property
    def is_never_encoded(self) -> bool:
        """True if a timestamp without a zone is stored as INT96, which Spark would write as an integer."""
        return self.writer == "pyarrow" and self.uses_int96 and "wall" in self.columns


def recipe(dice: random.Random) -> Recipe:
    codec = dice.choice(CODECS)
    files = dice.randint(2, 4)
    mixed = dice.random() < 0.15
    return Recipe(
        writer=dice.choice(WRITERS),
        columns=tuple(dice.sample(sorted(PALETTE), dice.randint(1, 6))),
        files=files,
        codecs=tuple(dice.choice(CODECS) if mixed else codec for _ in range(files)),
        page_version=dice.choice(["1.0", "2.0"]),
        row_group_rows=dice.choice([7, 50, 1_000]),
        uses_int96=dice.random() < 0.1,
        has_bloom_filters=dice.random() < 0.5,
        has_indexes=dice.random() < 0.5,
        logs_statistics=dice.random() < 0.8,
    )


def rows(dice: random.Random, made: Recipe, first: int) -> pa.Table:
    """Rows of one file, with nulls in every column but the id."""
    found = [
        {"id": first + n} | {name: None if dice.random() < 0.2 else PALETTE[name][1](dice) for name in made.columns}
        for n in range(dice.randint(1, 120))
    ]
    return pa.Table.from_pylist(found, schema=made.schema)


def make(path: Path, made: Recipe, dice: random.Random, spark: Any) -> None:
    """Write the table with the recipe's writer."""
    parts = [rows(dice, made, 1_000 * number) for number in range(made.files)]
    match made.writer:
        case "deltalake":
            _by_deltalake(path, made, parts)
        case "spark":
            _by_spark(path, made, parts, spark)
        case _:
            _by_hand(path, made, parts)


def _by_deltalake(path: Path, made: Recipe, parts: Sequence[pa.Table]) -> None:
    for part, codec in zip(parts, made.codecs, strict=True):
        name = {"none": "UNCOMPRESSED", "lz4": "LZ4_RAW"}.get(codec, codec.upper())
        bloom = deltalake.BloomFilterProperties(set_bloom_filter_enabled=made.has_bloom_filters)
        properties = deltalake.WriterProperties(
            compression=name,
            max_row_group_size=made.row_group_rows,
            default_column_properties=deltalake.ColumnProperties(bloom_filter_properties=bloom),
        )
        deltalake.write_deltalake(str(path), part, mode="append", writer_properties=properties)


def _by_spark(path: Path, made: Recipe, parts: Sequence[pa.Table], spark: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96" if made.uses_int96 else "TIMESTAMP_MICROS")
    session.conf.set("spark.sql.parquet.inferTimestampNTZ.enabled", "true")
    for number, (part, codec) in enumerate(zip(parts, made.codecs, strict=True)):
        given = path.with_name(f"{path.name}-{number}.parquet")
        pq.write_table(part, given)
        options = {
            "compression": {"none": "uncompressed", "lz4": "lz4_raw"}.get(codec, codec),
            "parquet.bloom.filter.enabled": str(made.has_bloom_filters).lower(),
            "parquet.writer.version": f"v{made.page_version[0]}",
            "parquet.block.row.count.limit": str(max(10, made.row_group_rows)),
        }
        frame = session.read.parquet(str(given)).coalesce(1)
        frame.write.format("delta").options(**options).mode("append").save(str(path))
        given.unlink()


def _by_hand(path: Path, made: Recipe, parts: Sequence[pa.Table]) -> None:
    table = deltalake.DeltaTable.create(str(path), made.schema)
    adds = []
    for number, (part, codec) in enumerate(zip(parts, made.codecs, strict=True)):
        file = path / f"part-{number}.parquet"
        (_with_pyarrow if made.writer == "pyarrow" else _with_duckdb)(file, part, codec, made)
        ids = part["id"].to_pylist()
        stats: dict[str, Any] = {"numRecords": part.num_rows}
        if number or made.logs_statistics:
            stats |= {"minValues": {"id": ids[0]}, "maxValues": {"id": ids[-1]}, "nullCount": {"id": 0}}
        add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1}
        add |= {"dataChange": True} | ({"stats": json.dumps(stats)} if number or made.logs_statistics else {})
        adds.append(json.dumps({"add": add}))
    (path / "_delta_log" / f"{table.version() + 1:020d}.json").write_text("\n".join(adds))


def _with_pyarrow(file: Path, part: pa.Table, codec: str, made: Recipe) -> None:
    pq.write_table(
        part,
        file,
        compression=codec,
        data_page_version=made.page_version,
        row_group_size=made.row_group_rows,
        use_deprecated_int96_timestamps=made.uses_int96,
        write_page_index=made.has_indexes,
        bloom_filter_options={"id": True} if made.has_bloom_filters else None,
    )


def _with_duckdb(file: Path, part: pa.Table, codec: str, made: Recipe) -> None:
    options = {
        "compression": {"none": "uncompressed", "lz4": "lz4_raw"}.get(codec, codec),
        "row_group_size": max(2_048, made.row_group_rows),
        "parquet_version": f"v{made.page_version[0]}",
    }
    written = ", ".join(f"{name} '{value}'" for name, value in options.items())
    with duckdb.connect() as connection:
        connection.register("part", part)
        connection.execute(f"COPY part TO '{file}' (FORMAT parquet, {written})")


def copied(path: Path, to: Path) -> Path:
    """Return a copy of a table that others may change."""
    shutil.copytree(path, to)
    return to
