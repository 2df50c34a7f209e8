"""What is read of a Parquet file's footer, before its row groups are copied, decides right and is never a guess."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add
from actor.formats.delta.chunk_bounds import Bounds
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.footers import Footers
from actor.formats.delta.log import TableLog
from actor.formats.parquet.copy_rules import EncodeReason
from actor.formats.parquet.file_columns import DescribedFiles
from actor.formats.parquet.footer_summary import FooterSummary
from actor.jvm.scala import Scala
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
pytestmark = pytest.mark.spark


FIXED = "FIXED_LEN_BYTE_ARRAY"
OBSTACLES: dict[str, dict[str, Any]] = {
    "int96": {"use_deprecated_int96_timestamps": True},
    "nanoseconds": {"version": "2.6"},
    "": {"version": "2.6", "coerce_timestamps": "us", "allow_truncated_timestamps": True},
}


def summaries(lab: DeltaLab, *files: Path) -> list[dict[str, Any]]:
    read = DeltaScala(lab.spark).group.footers(lab.spark._jsc.hadoopConfiguration(), *texts_of(files), 4)
    found: list[dict[str, Any]] = json.loads(read.text())["files"]
    return found


def texts_of(files: Sequence[Path]) -> tuple[str, str]:
    """Paths and sizes of files, as our Java classes take them."""
    return json.dumps([str(file) for file in files]), json.dumps([file.stat().st_size for file in files])


def test_obstacles_are_found_in_the_footer_of_a_file(lab: DeltaLab) -> None:
    rows = pa.table({"t": pa.array([1, 2, 3], pa.timestamp("ns"))})
    for name, options in OBSTACLES.items():
        pq.write_table(rows, lab.directory / f"{name}.parquet", **options)
    whole = (lab.directory / ".parquet").read_bytes()
    made = {name: (lab.directory / f"{name}.parquet").read_bytes() for name in OBSTACLES}
    made |= {"no_footer": whole[:-1], "encryption": whole[:-4] + b"PARE", "data_elsewhere": _elsewhere(lab.directory)}
    files = []
    for name, content in made.items():
        files.append(lab.directory / f"made-{name}.parquet")
        files[-1].write_bytes(content)

    found = summaries(lab, *files)

    assert [one["obstacle"] for one in found] == list(made)
    assert {one["obstacle"] for one in found} - {""} <= set(EncodeReason)


def _elsewhere(folder: Path) -> bytes:
    """A footer that refers to columns in another file, as `_metadata` files do."""
    metadata = pq.ParquetFile(folder / ".parquet").metadata
    metadata.set_file_path("other.parquet")
    metadata.write_metadata_file(folder / "_metadata")
    return (folder / "_metadata").read_bytes()


def test_footers_that_contradict_themselves_are_no_ground_for_a_copy(lab: DeltaLab) -> None:
    whole = lab.directory / "whole.parquet"
    pq.write_table(pa.table({"id": range(10), "list": [[1, 2]] * 10}), whole)
    raw = whole.read_bytes()
    fewer, other_sum = lab.directory / "fewer.parquet", lab.directory / "other-sum.parquet"
    fewer.write_bytes(with_footer(lab, raw, set_nine_rows))
    other_sum.write_bytes(with_footer(lab, raw, lambda footer: footer.setNum_rows(9)))
    broken = lab.directory / "broken.parquet"
    length = int.from_bytes(raw[-8:-4], "little")
    broken.write_bytes(raw[: -8 - length] + b"\x7f" * length + raw[-8:])

    found = [one["obstacle"] for one in summaries(lab, whole, fewer, other_sum, broken)]
    assert found == ["", "damaged", "damaged", "damaged"]


def footer(lab: DeltaLab, raw: bytes) -> Any:
    """The footer of a file in the format's own structures."""
    scala, length = Scala(lab.spark), int.from_bytes(raw[-8:-4], "little")
    given = scala.resolve("java.io.ByteArrayInputStream")(bytearray(raw[-8 - length : -8]))
    return scala.resolve("org.apache.parquet.format.Util").readFileMetaData(given)


def with_footer(lab: DeltaLab, raw: bytes, change: Callable[[Any], object]) -> bytes:
    """The same pages under a footer that was changed."""
    scala, length = Scala(lab.spark), int.from_bytes(raw[-8:-4], "little")
    metadata, written = footer(lab, raw), scala.resolve("java.io.ByteArrayOutputStream")()
    change(metadata)
    scala.resolve("org.apache.parquet.format.Util").writeFileMetaData(metadata, written)
    made = bytes(written.toByteArray())
    return raw[: -8 - length] + made + len(made).to_bytes(4, "little") + raw[-4:]


def set_nine_rows(metadata: Any) -> None:
    """Count other rows, in the row group and in the file."""
    metadata.setNum_rows(9)
    metadata.getRow_groups().get(0).setNum_rows(9)


def chunk_of(metadata: Any, column: int, row_group: int = 0) -> Any:
    return metadata.getRow_groups().get(row_group).getColumns().get(column).getMeta_data()


def test_files_that_give_one_key_other_values_are_told_apart(lab: DeltaLab) -> None:
    """Spark notes there by which calendar and in which zone a writer meant its instants."""
    files = [lab.directory / f"{zone}.parquet" for zone in ("here", "there")]
    for file in files:
        noted = {"org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": file.stem}
        pq.write_table(pa.table({"id": range(3)}).replace_schema_metadata(noted), file)
    here, there = summaries(lab, *files)
    assert {**here, "key_values": ""} == {**there, "key_values": ""}
    assert here["key_values"] != there["key_values"]


def test_columns_that_hold_no_null_are_known_by_their_ids(lab: DeltaLab) -> None:
    """Rows of Iceberg whose id is null inherit one, which a copy would change."""
    rows = {"full": [1, 2, 3, 4], "late": [1, 2, 3, None], "early": [None, 2, 3, 4], "unsaid": [1, 2, 3, 4]}
    fields = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(n)}) for n, name in enumerate(rows, 1)]
    file = lab.directory / "ids.parquet"
    said = ["full", "late", "early"]
    pq.write_table(pa.table(rows, schema=pa.schema(fields)), file, row_group_size=2, write_statistics=said)
    scala = Scala(lab.spark)
    store = scala.resolve("io.lakewright.parquet.HadoopStore")(lab.spark._jsc.hadoopConfiguration(), "")
    paths, sizes, ids = ([str(file)], [file.stat().st_size], [1, 2, 3, 4])
    lists = [scala.java_list(one) for one in (paths, sizes)]
    found = scala.resolve("io.lakewright.parquet.ParquetColumns").read(store, *lists, 1, scala.java_list(ids))
    assert json.loads(found.text())["files"][0]["full_ids"] == [1]


def plain(stored: Any, physical: str, logical: str) -> Any:
    return int.from_bytes(stored, "big", signed=True) if (physical, logical) == (FIXED, "DECIMAL") else stored


def bounds_by_pyarrow(file: Path) -> dict[str, Bounds]:
    """Return bounds and nulls over all row groups of the columns of which each row group gives both."""
    footer, found = pq.read_metadata(file), dict[str, Bounds]()
    for leaf in range(footer.num_columns):
        stored = footer.schema.column(leaf)
        chunks = [footer.row_group(number).column(leaf) for number in range(footer.num_row_groups)]
        said = [one.statistics for one in chunks]
        bounded = [one for one in said if one is not None and one.has_min_max]
        nulls = [one.null_count for one in said if one is not None and one.has_null_count]
        of_nulls = [one for one in chunks if one.statistics is not None and one.statistics.null_count == one.num_values]
        if len(nulls) < len(chunks) or len(bounded) + len(of_nulls) < len(chunks):
            continue
        logical = json.loads(stored.logical_type.to_json()).get("Type", "").upper()
        least = [plain(one.min_raw, stored.physical_type, logical) for one in bounded]
        greatest = [plain(one.max_raw, stored.physical_type, logical) for one in bounded]
        found[stored.path] = Bounds(min(least, default=None), max(greatest, default=None), sum(nulls))
    return found


def logged_file(lab: DeltaLab) -> tuple[TableLog, LoggedFile, Path]:
    """Return a file of a table with a column of each flat type and many row groups, one of which counts no nulls."""
    from tests.support.parquet_lab import PALETTE  # It imports DuckDB, which is not everywhere.

    table = tables.table(lab.directory / "t", files=1)
    schema = pa.schema([(name, kind) for name, (kind, _) in PALETTE.items() if not pa.types.is_nested(kind)])
    dice = random.Random(7)
    rows = [{name: dice.choice([None, PALETTE[name][1](dice)]) for name in schema.names} for _ in range(100)]
    ((name, _), add), *_ = tables.live(table.path).items()
    written = table.path / name
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), written, row_group_size=9, compression="gzip")
    # Some writers give bounds without a count of nulls: "none" would be a guess.
    whole = schema.get_field_index("whole")
    uncounted = with_footer(
        lab, written.read_bytes(), lambda metadata: chunk_of(metadata, whole, 3).getStatistics().unsetNull_count()
    )
    written.write_bytes(uncounted)
    add |= {"size": len(uncounted)}
    with lab.engine._sessions.lease(tag="t") as owned:
        log = TableLog(lab.engine._scala, owned.session, table.location)
    return log, LoggedFile(decode_add(add, ()), json.dumps(add)), written


@pytest.mark.parametrize("is_read", [True, False])
def test_columns_and_bounds_are_those_that_pyarrow_reads(lab: DeltaLab, *, is_read: bool) -> None:
    """Footers that our class does not read, as encrypted ones, are read by parquet-java."""
    log, file, written = logged_file(lab)
    odd = DescribedFiles((FooterSummary(obstacle="encryption"),), {})
    unread = SimpleNamespace(describe=lambda _: odd, read_each=lambda _: None)
    footers = Footers(
        lab.engine._scala, log, FooterReader(lab.engine._scala, log) if is_read else cast("FooterReader", unread)
    )
    storage = footers.storage([file])
    footers.read_each([file])
    (columns,) = storage.schemas
    read, expected = pq.read_metadata(written), bounds_by_pyarrow(written)
    stored = [read.schema.column(leaf) for leaf in range(read.num_columns)]
    assert [(".".join(one.path), one.physical) for one in columns] == [
        (one.path, one.physical_type.replace("BYTE_ARRAY", "BINARY") if one.physical_type != FIXED else FIXED)
        for one in stored
    ]
    assert storage.codec_bytes == {"gzip": file.file.size_bytes}
    found = {".".join(column.path): bounds for column, bounds in footers.bounds(file, columns).items()}
    assert "whole" not in expected
    assert found == {name: bounds for name, bounds in expected.items() if name in found}
    assert expected.keys() - found.keys() <= {"single", "real"}, "not-a-number leaves floats without bounds"


def test_a_footer_is_summarized_as_pyarrow_reads_it(lab: DeltaLab) -> None:
    *_, written = logged_file(lab)
    (found,), read = summaries(lab, written), pq.read_metadata(written)
    chunks = [read.row_group(n).column(leaf) for n in range(read.num_row_groups) for leaf in range(read.num_columns)]
    assert (found["rows"], found["row_groups"]) == (read.num_rows, read.num_row_groups)
    assert (found["created_by"], found["top_level"]) == (read.created_by, read.schema.names)
    assert found["data_bytes"] == sum(one.total_compressed_size for one in chunks)
    assert found["codecs"] == ["gzip"] * read.num_columns
