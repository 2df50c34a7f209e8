"""Rows of an output in the order that its plan names: read from the files, and not from what the rewrite reported."""

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from actor.ports import GroupStatus
from shared.errors import Unsupported
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.row_order import INPUT_ORDER, RowOrder, SortColumn
from shared.table import DataFile
from tests.support.delta_lab import PARTITION_1, DeltaLab
from tests.support.long_suites import beyond

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
pytestmark = pytest.mark.spark


def keyed_table(lab: DeltaLab, name: str, *, files: int, rows: int, partitioned: bool = False, more: str = "") -> str:
    """A table of files of random keys, each file larger than the one before it."""
    location = (lab.directory / name).as_uri()
    by = "PARTITIONED BY (dt)" if partitioned else ""
    lab.sql(f"CREATE TABLE delta.`{location}` (k BIGINT, b STRING, n INT, dt STRING) USING delta {by} {more}")
    for at in range(files):
        keys = f"SELECT CAST(rand({at}) * 1000000 AS BIGINT) AS k, concat('b', id % 7) AS b, CAST(id AS INT) AS n"
        lab.sql(f"INSERT INTO delta.`{location}` {keys}, '2026-01-01' AS dt FROM range({rows + 10 * at}, 0, -1, 1)")
    return location


def values(location: str, files: Sequence[DataFile], column: str) -> list[list[Any]]:
    """The values of a column in each file, in the order of its rows."""
    root = Path(location.removeprefix("file://"))
    return [pq.ParquetFile(root / file.path).read([column])[column].to_pylist() for file in files]


def merged(lab: DeltaLab, location: str, files: Sequence[DataFile], order: RowOrder, **more: Any) -> list[DataFile]:
    before = lab.digest(location)
    group = FileGroup(files[0].partition, tuple(files), RewriteMode.MAJOR, order=order)
    (end,) = lab.rewrite(location, [group], **more).groups
    assert end.status is GroupStatus.COMMITTED
    assert lab.digest(location) == before
    return list(end.outputs)


@pytest.mark.parametrize(
    ("copied", "partitioned"), beyond(1, [(False, True), (True, False), (False, False), (True, True)])
)
def test_the_rows_of_an_output_are_those_of_its_inputs_one_after_the_other(
    lab: DeltaLab, copied: bool, partitioned: bool
) -> None:
    if copied:
        lab = lab.copying()
    location = keyed_table(lab, "t", files=6, rows=40, partitioned=partitioned)
    files = list(lab.files(location, PARTITION_1 if partitioned else WHOLE_TABLE))
    random.Random(7).shuffle(files)
    expected = [key for keys in values(location, files, "k") for key in keys]

    (output,) = merged(lab, location, files, INPUT_ORDER, may_copy=copied)

    assert values(location, [output], "k") == [expected]


@pytest.mark.long("contracts")
def test_the_order_of_inputs_is_kept_around_deleted_rows(lab: DeltaLab) -> None:
    location = keyed_table(lab, "t", files=3, rows=30, more="TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    lab.sql(f"DELETE FROM delta.`{location}` WHERE n % 5 = 0")
    files = list(lab.files(location))[::-1]
    assert all(file.deleted_rows for file in files)
    expected = [n for numbers in values(location, files, "n") for n in numbers if n % 5]

    (output,) = merged(lab, location, files, INPUT_ORDER)

    assert values(location, [output], "n") == [expected]


@pytest.mark.parametrize("partitioned", beyond(1, [True, False]))
def test_rows_are_sorted_by_all_columns_and_the_ranges_of_outputs_are_disjoint(
    lab: DeltaLab, partitioned: bool
) -> None:
    location = keyed_table(lab, "t", files=5, rows=400, partitioned=partitioned)
    files = lab.files(location, PARTITION_1 if partitioned else WHOLE_TABLE)

    outputs = merged(lab, location, files, RowOrder((SortColumn("b"), SortColumn("k", is_descending=True)), outputs=3))

    assert len(outputs) == 3
    rows = [
        [(b, -k) for b, k in zip(names, keys, strict=True)]
        for names, keys in zip(values(location, outputs, "b"), values(location, outputs, "k"), strict=True)
    ]
    assert all(part == sorted(part) for part in rows)
    in_order = sorted(rows)
    assert all(one[-1] <= following[0] for one, following in pairwise(in_order))
    assert min(map(len, rows)) * 5 > sum(map(len, rows)) / 3, "the outputs are of about equal size"


def test_row_groups_are_never_copied_where_rows_have_to_be_sorted(lab: DeltaLab) -> None:
    copying = lab.copying()
    location = keyed_table(copying, "t", files=3, rows=50)
    group = FileGroup(WHOLE_TABLE, copying.files(location), RewriteMode.MAJOR, order=RowOrder((SortColumn("k"),)))
    (end,) = copying.rewrite(location, [group]).groups
    assert (end.is_copied, end.encoded_because) == (False, "row_order")
    (keys,) = values(location, end.outputs, "k")
    assert keys == sorted(keys)


TYPES = {
    "BIGINT": "CAST((rand({seed}) - 0.5) * 1000000 AS BIGINT)",
    "STRING": "concat(repeat('prefix-', 6), CAST(CAST(rand({seed}) * 5000 AS INT) AS STRING))",
    "TIMESTAMP": "timestamp_micros(CAST(rand({seed}) * 2000000 AS BIGINT))",
    "DATE": "date_add(DATE'1969-12-01', CAST(rand({seed}) * 60 AS INT))",
    "DECIMAL(20, 6)": "CAST((rand({seed}) - 0.5) * 10 AS DECIMAL(20, 6))",
    "DOUBLE": "CASE WHEN id % 40 = 0 THEN double('NaN') ELSE (rand({seed}) - 0.5) * 1e-3 END",
}


@pytest.mark.parametrize("kind", beyond(1, TYPES))
def test_sorted_outputs_of_every_type_of_key_are_disjoint_by_their_statistics(lab: DeltaLab, kind: str) -> None:
    """Nulls and values that differ after 32 characters, or by microseconds, are no overlap; nothing stops the sort."""
    location = (lab.directory / "t").as_uri()
    lab.sql(
        f"CREATE TABLE delta.`{location}` (id BIGINT, `a key` {kind}) USING delta TBLPROPERTIES ("
        "'delta.columnMapping.mode' = 'name', 'lakewright.sort-by' = '`A Key` desc')"
    )
    for seed in range(3):
        value = f"CASE WHEN id % 50 = 1 THEN NULL ELSE {TYPES[kind].format(seed=seed)} END"
        lab.sql(f"INSERT INTO delta.`{location}` SELECT id, {value} FROM range(0, 2000, 1, 1)")
    files = lab.engine.read_partition(location, WHOLE_TABLE).files
    assert kind == "DOUBLE" or all(file.key_range is not None for file in files)

    outputs = merged(lab, location, files, RowOrder((SortColumn("a key", is_descending=True),), outputs=3))

    assert len(outputs) == 3
    ranges = sorted(file.key_range for file in outputs if file.key_range is not None)
    assert len(ranges) >= (2 if kind == "DOUBLE" else 3)
    assert all(one[1] <= following[0] for one, following in pairwise(ranges))


def test_an_order_that_names_no_column_stops_the_rewrite_with_the_property_to_correct(lab: DeltaLab) -> None:
    location = keyed_table(lab, "t", files=2, rows=10)
    with pytest.raises(Unsupported, match=r"column 'kk', which it does not have.*lakewright\.sort-by"):
        merged(lab, location, lab.files(location), RowOrder((SortColumn("kk"),)))
