"""After a rewrite, removes by an engine that escapes paths in its own way hit our files: no row is there twice."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actor.formats.delta.output_paths import OutputPaths, encoded_folder, hive_folder
from actor.ports import GroupStatus
from shared.errors import PermanentError
from shared.layout.planner import FileGroup, RewriteMode, plan
from shared.partitions import partition_key
from shared.paths.data_paths import is_plain, is_portable
from shared.policy.policy import Policy, PortablePaths
from shared.table import PartitionColumn
from tests.support import delta_tables as tables
from tests.support.delta_lab import PARTITION_1, DeltaLab
from tests.support.long_suites import beyond

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark

STRINGS = ["a b", "Zürich", "a%b", "x:y", "a+b", "日本", "plain", "a=b", "a*b", "<|>`", "tail.", None]
INSTANTS = ["2024-01-01 00:00:00", "2024-01-01 10:11:12.123456", None]


def create(lab: DeltaLab, type_name: str, values: list[str | None], column: str = "p", writer: str = "spark") -> Path:
    """Three files of ten rows for each value of the partition column."""
    path = lab.directory / "t"
    literal = {None: "NULL"} | {v: f"{type_name} '{v}'" if type_name != "string" else f"'{v}'" for v in values if v}
    for part in range(3):
        selects = [
            f"SELECT id + {100 * (3 * n + part)} id, CAST({literal[v]} AS {type_name}) `{column}` FROM range(10)"
            for n, v in enumerate(values)
        ]
        frame = lab.spark.sql(" UNION ALL ".join(selects)).coalesce(1)
        if writer == "spark":
            frame.write.format("delta").mode("append").partitionBy(column).save(str(path))
        else:
            data = pa.Table.from_pylist([row.asDict() for row in frame.collect()])
            deltalake.write_deltalake(str(path), data, mode="append", partition_by=[column])
    return path


def rewrite_all(lab: DeltaLab, path: Path) -> list[str]:
    """Merge all files of each partition; return the new paths."""
    location = f"file://{path}"
    metadata = lab.engine.read_partition(location, partition_key((), {})).metadata
    partitions = {
        partition_key(metadata.partition_columns, add["partitionValues"]) for add in tables.live(path).values()
    }
    groups = [
        FileGroup(partition, lab.files(location, partition), RewriteMode.FULL) for partition in sorted(partitions)
    ]
    outcome = lab.rewrite(location, groups)
    assert {end.status for end in outcome.groups} == {GroupStatus.COMMITTED}
    return [add["path"] for add in tables.added(path, outcome.version or 0)]


def delete(table: Any) -> Callable[[int], bool]:
    table.delete("id % 2 = 0")
    return lambda key: key % 2 == 1


def update(table: Any) -> Callable[[int], bool]:
    table.update(predicate="id % 2 = 0", updates={"id": "id"})
    return lambda _: True


def merge(table: Any) -> Callable[[int], bool]:
    source = pa.table({"key": list(range(0, 100_000, 2))})
    table.merge(source, "t.id = s.key", source_alias="s", target_alias="t").when_matched_delete().execute()
    return lambda key: key % 2 == 1


def overwrite(table: Any) -> Callable[[int], bool]:
    data = pa.table(table.to_pyarrow_table())
    deltalake.write_deltalake(table, data.filter(pa.compute.greater(data["id"], 50)), mode="overwrite")
    return lambda key: key > 50


def ids(lab: DeltaLab, path: Path) -> tuple[list[int], list[int]]:
    """All ids as Spark and as deltalake read them."""
    by_spark = [row.id for row in lab.spark.read.format("delta").load(str(path)).select("id").collect()]
    return sorted(by_spark), sorted(pa.table(deltalake.DeltaTable(str(path)).to_pyarrow_table())["id"].to_pylist())


@pytest.mark.parametrize("writer", beyond(1, ["spark", "deltalake"], "care"))
def test_deltalake_removes_our_files_whatever_the_partition_value(lab: DeltaLab, writer: str) -> None:
    path = create(lab, "string", STRINGS, writer=writer)
    before = ids(lab, path)[0]

    paths = rewrite_all(lab, path)
    assert ids(lab, path) == (before, before)
    assert all(map(is_portable, paths))

    for operation in (delete, merge, update, overwrite):
        copy = Path(shutil.copytree(path, lab.directory / operation.__name__))
        stays = operation(deltalake.DeltaTable(str(copy)))
        expected = [key for key in before if stays(key)]
        assert ids(lab, copy) == (expected, expected), operation.__name__


def test_files_on_harmful_paths_are_rewritten_once_where_the_policy_says_so(lab: DeltaLab) -> None:
    path = create(lab, "string", ["a b", "Zürich", "plain"])
    location, policy = f"file://{path}", Policy(portable_paths=PortablePaths.ALWAYS)

    def planned() -> list[FileGroup]:
        live = tables.live(path).values()
        partitions = {partition_key((PartitionColumn("p", "p", "string"),), add["partitionValues"]) for add in live}
        return [
            group
            for partition in sorted(partitions)
            for group in plan(partition, lab.files(location, partition), policy).groups
        ]

    groups = planned()
    assert [(group.mode, len(group.files)) for group in groups] == [(RewriteMode.PURGE, 1)] * 6
    before = ids(lab, path)[0]
    lab.rewrite(location, groups)

    assert ids(lab, path) == (before, before)
    assert planned() == []
    stays = delete(deltalake.DeltaTable(str(path)))
    assert ids(lab, path)[1] == [key for key in before if stays(key)]


@pytest.mark.parametrize(
    ("type_name", "values"),
    beyond(
        2,
        [
            ("timestamp", INSTANTS),
            ("double", ["1e100", "-0.5", "NaN", "Infinity"]),
            ("timestamp_ntz", INSTANTS),
            ("date", ["0001-01-01", "9999-12-31", None]),
            ("decimal(20,18)", ["0", "1.5", "-2.25"]),
            ("boolean", ["true", "false"]),
            ("binary", ["a b", "ü"]),
        ],
        "care",
    ),
)
def test_values_of_every_type_lie_on_plain_paths(lab: DeltaLab, type_name: str, values: list[str | None]) -> None:
    path = lab.directory / "t"
    listed = ", ".join("NULL" if value is None else f"'{value}'" for value in values)
    for part in range(2):
        lab.spark.sql(
            f"SELECT {part} id, CAST(v AS {type_name}) p FROM (SELECT explode(array({listed})) v)"
        ).write.format("delta").mode("append").partitionBy("p").save(str(path))
    before = lab.digest(str(path))

    paths = rewrite_all(lab, path)

    assert len(paths) == len(values)
    assert all(map(is_portable, paths))
    assert lab.digest(str(path)) == before


@pytest.mark.parametrize("column", ["größe", "a b"])
def test_column_names_lie_on_plain_paths(lab: DeltaLab, column: str) -> None:
    path = lab.directory / "t"
    mapping = {"delta.columnMapping.mode": "name"} if " " in column else {}
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in mapping.items())
    lab.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, `{column}` STRING) USING DELTA PARTITIONED BY (`{column}`) "
        + (f"TBLPROPERTIES ({properties})" if properties else "")
    )
    for part in range(2):
        lab.sql(f"INSERT INTO delta.`{path}` SELECT {part}, 'v'")
    before = lab.digest(str(path))

    assert all(map(is_plain, rewrite_all(lab, path)))
    assert lab.digest(str(path)) == before


def test_folders_stay_hive_style_where_nothing_needs_escaping(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", days=True, files=8)

    outcome = lab.rewrite(table.location, [lab.group(table.location, PARTITION_1)])

    (add,) = tables.added(table.path, outcome.version or 0)
    assert add["path"].startswith("dt=2026-01-01/lw")
    assert "randomizeFilePrefixes" not in lab.engine.read_partition(table.location, PARTITION_1).metadata.configuration
    lab.sql(f"INSERT INTO delta.`{table.path}` VALUES (1, 'v', 2, DATE'2026-01-01')")
    assert all("lw" not in name for name, _ in tables.live(table.path) if name != add["path"])


def test_an_output_on_a_path_that_is_not_plain_is_not_committed(lab: DeltaLab, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create(lab, "string", ["a b"])
    location, on_disk = f"file://{path}", tables.parquet_files(path)
    (column,) = (PartitionColumn("p", "p", "string"),)
    group = lab.group(location, partition_key((column,), {"p": "a b"}), count=3)
    monkeypatch.setattr(OutputPaths, "transaction_for", lambda self, *_: self._transaction())

    with pytest.raises(PermanentError, match=r"'p=a%20b/.*' lies on a path that some engines escape"):
        lab.rewrite(location, [group], may_copy=False)

    assert tables.newest(path) == 2
    assert tables.parquet_files(path) == on_disk


@pytest.mark.parametrize(
    ("type_name", "value", "folder"),
    [
        ("string", "x-1.y_z", "p=x-1.y_z"),
        ("string", "..", "p=.."),
        ("string", None, "p=__HIVE_DEFAULT_PARTITION__"),
        ("string", "", None),
        ("date", "2026-01-01", "p=2026-01-01"),
        ("date", "10000-01-01", None),
        ("string", "a=b", None),
        ("string", "a/b", None),
        ("string", "ü", None),
        ("timestamp", "2026-01-01 00:00:00", None),
        ("timestamp", "2026-01-01T00.00", None),
    ],
)
def test_a_hive_folder_is_used_only_where_it_is_plain(type_name: str, value: str | None, folder: str | None) -> None:
    assert hive_folder((PartitionColumn("p", "p", type_name),), {"p": value}) == folder


TEXT = (PartitionColumn("p", "p", "string"),)


@pytest.mark.parametrize(
    ("value", "inputs", "folder"),
    [
        ("a b", [], "p=a%20b"),
        ("Zürich", [], "p=Z%C3%BCrich"),
        ("a=b/c%d", [], "p=a%3Db%2Fc%25d"),
        (None, [], "p=__HIVE_DEFAULT_PARTITION__"),
        ("2024-01-01T00:00:00.000000Z", ["p=2024-01-01%2010%253A00%253A00/f"], "p=2024-01-01%2010%3A00%3A00"),
        ("a b", ["p=a%2520b/xY/f"], "p=a%20b"),
        ("", [], "p="),
        ("", ["p=/f"], "p="),
        ("", ["p=__HIVE_DEFAULT_PARTITION__/f"], "p=__HIVE_DEFAULT_PARTITION__"),
        ("a b", ["xY/f", "q=1/f", "s3://b/p=x/f"], "p=a%20b"),
        ("ü" * 42, [], "p=" + "%C3%BC" * 42),
        ("ü" * 43, [], None),
    ],
)
def test_other_folders_name_the_value_as_delta_rs_does(
    value: str | None, inputs: list[str], folder: str | None
) -> None:
    assert encoded_folder(TEXT, {"p": value}, inputs) == folder


@pytest.mark.parametrize("column", ["größe", "a b"])
def test_a_column_whose_name_needs_escaping_is_in_no_folder(column: str) -> None:
    assert encoded_folder((PartitionColumn(column, column, "string"),), {column: "v"}, []) is None
    assert encoded_folder((), {}, []) is None


def test_polars_does_not_read_a_column_whose_name_needs_escaping_beside_random_folders_without_us_either(
    lab: DeltaLab,
) -> None:
    """The proof for a difference that `tests/interop/verdicts.py` names: Spark alone has written this table."""
    polars = pytest.importorskip("polars", reason="polars is in the group `dev`")
    path = lab.directory / "t"
    lab.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, `größe` STRING) USING DELTA PARTITIONED BY (`größe`)")
    lab.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a')")
    lab.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.randomizeFilePrefixes' = 'true')")
    lab.sql(f"INSERT INTO delta.`{path}` VALUES (2, 'b')")

    with pytest.raises(polars.exceptions.PolarsError, match="größe"):
        polars.scan_delta(str(path)).collect()


@pytest.mark.parametrize("in_files", ["true", "false"])
def test_an_engine_that_takes_values_from_folders_finds_them(lab: DeltaLab, in_files: str) -> None:
    """Polars does: without the values in the folders it fails, or without them in the files either shows nulls."""
    polars = pytest.importorskip("polars", reason="polars is in the group `dev`")
    path = lab.directory / "t"
    lab.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, p STRING) USING DELTA PARTITIONED BY (p) "
        f"TBLPROPERTIES ('delta.writePartitionColumnsToParquet' = '{in_files}')"
    )
    for part in range(2):
        lab.sql(
            f"INSERT INTO delta.`{path}` SELECT {part}, p FROM VALUES ('a b'), ('Zürich'), ('plain'), ('a=b') AS t(p)"
        )
    before = sorted(polars.scan_delta(str(path)).collect().select("id", "p").rows())
    assert len({p for _, p in before}) == 4

    rewrite_all(lab, path)

    assert sorted(polars.scan_delta(str(path)).collect().select("id", "p").rows()) == before
