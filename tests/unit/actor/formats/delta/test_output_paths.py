"""Outputs: their folders name the partition values or are random; their codec and statistics are the table's."""

import json
import re
from types import SimpleNamespace

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.chunk_bounds import Bounds
from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Storage
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths, encoded_folder, part_of
from shared.errors import RefusedFiles
from shared.refusals import RefusalReason
from shared.table import FileKey, PartitionColumn, TableMetadata
from tests.support.fake_delta import FakeScala, FakeTable
from tests.support.fake_delta_table import METADATA, PREFIX, add

P = PartitionColumn("p", "p", "string")
ODD = PartitionColumn("a b", "a b", "string")


@pytest.mark.parametrize(
    ("columns", "values", "inputs", "folder"),
    [
        ([P], {"p": "a b"}, [], "p=a%20b"),
        ([P], {"p": None}, [], "p=__HIVE_DEFAULT_PARTITION__"),
        ([P], {"p": "2026-01-01T00:00Z"}, ["p=2026-01-01%2000%253A00/x.parquet"], "p=2026-01-01%2000%3A00"),
        ([P], {"p": "a b"}, ["file:///lake/t/p=other/x.parquet", "x.parquet"], "p=a%20b"),
        ([P], {"p": "x" * 300}, [], None),
        ([ODD], {"a b": "1"}, [], None),
        ([], {}, [], None),
    ],
    ids=["escaped", "null", "an input's text", "absolute and foreign inputs", "too long", "a column's name", "none"],
)
def test_a_folder_names_the_values_with_percent_codes_or_there_is_none(
    columns: list[PartitionColumn], values: dict[str, str | None], inputs: list[str], folder: str | None
) -> None:
    assert encoded_folder(columns, values, inputs) == folder


def test_groups_whose_outputs_lie_in_one_folder_share_a_transaction() -> None:
    table = FakeTable()
    table.commit(add("x", p="a b"))
    log = table.log()
    txn = log.transaction()
    paths = OutputPaths(FakeScala(table), log, txn.snapshot(), log.shape(txn.snapshot()), PREFIX)
    first = paths.transaction_for({"p": "a b"}, [])
    assert paths.transaction_for({"p": "a b"}, []) is first
    plain = paths.transaction_for({"p": "a"}, [])
    assert paths.transaction_for({"p": "c d"}, []) not in (first, plain)
    assert paths.transaction_for({"p": "b"}, []) is plain


@pytest.mark.parametrize(
    ("value", "configuration", "folder"),
    [
        ("a", {}, r"p=a"),
        ("a b", {}, r"p=a%20b/[A-Za-z0-9]{2}"),
        ("a", {"delta.columnMapping.mode": "name"}, r"[A-Za-z0-9]{2}"),
        ("a", {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "5"}, r"[A-Za-z0-9]{5}"),
    ],
)
def test_a_copy_goes_where_an_encoded_file_would_and_is_found_if_it_is_left(
    value: str, configuration: dict[str, str], folder: str
) -> None:
    table = FakeTable()
    field = {"name": "p", "type": "string", "metadata": {"delta.columnMapping.physicalName": "p"}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    table.commit({"metaData": METADATA | {"schemaString": schema, "configuration": configuration}})
    log = table.log()
    txn = log.transaction()
    paths = OutputPaths(FakeScala(table), log, txn.snapshot(), log.shape(txn.snapshot()), PREFIX)
    assert paths.leftovers([]) == []
    for _ in range(2):
        place = paths.folder_for({"p": value}, [])
        assert re.fullmatch(f"{log.root}/{folder}", place)
        name = f"{paths.prefix}part.parquet"
        table.disk[f"{place}/{name}".removeprefix(f"{log.root}/")] = 1
        path = paths.logged_path(place, name)
        assert re.fullmatch(f"{folder.replace('%', '%25')}/{name}", path)
        assert path in [key.path for key in paths.leftovers([])]


def test_the_files_of_an_unpartitioned_table_lie_in_its_own_folder() -> None:
    table = FakeTable()
    table.commit({"metaData": METADATA | {"partitionColumns": []}})
    log = table.log()
    txn = log.transaction()
    paths = OutputPaths(FakeScala(table), log, txn.snapshot(), log.shape(txn.snapshot()), PREFIX)
    assert paths.folder_for({}, []) == log.root
    assert paths.logged_path(log.root, "x.parquet") == "x.parquet"


@pytest.mark.parametrize(
    ("column", "configuration", "inputs", "loses"),
    [
        ("p", {}, ["p=1/x"], False),
        ("p", {}, ["x"], False),
        ("a b", {}, ["x", "a%20b=1/y"], True),
        ("a b", {}, ["Vk/x", "0c/y=z"], False),
        ("p", {"delta.randomizeFilePrefixes": "true"}, ["p=1/x"], True),
        ("p", {"delta.randomizeFilePrefixes": "true"}, ["Vk/x"], False),
    ],
)
def test_an_output_loses_its_folder_if_the_inputs_had_one_that_names_the_partition_and_it_gets_none(
    column: str, configuration: dict[str, str], inputs: list[str], loses: bool
) -> None:
    table = FakeTable()
    schema = json.dumps({"fields": [{"name": column, "type": "string", "nullable": True, "metadata": {}}]})
    metadata = {
        **METADATA,
        "schemaString": schema,
        "partitionColumns": [column],
        "configuration": configuration,
    }
    table.commit({"metaData": metadata})
    log = table.log()
    txn = log.transaction()
    paths = OutputPaths(FakeScala(table), log, txn.snapshot(), log.shape(txn.snapshot()), PREFIX)
    assert paths.loses_folder({column: "1"}, inputs) is loses


def test_files_are_found_in_folders_whose_names_are_escaped() -> None:
    table = FakeTable()
    table.commit(add("x", p="a b"))
    log, scala = table.log(), FakeScala(table)
    txn = log.transaction()
    paths = OutputPaths(scala, log, txn.snapshot(), log.shape(txn.snapshot()), PREFIX)
    paths.transaction_for({"p": "a b"}, ["x"])
    table.disk |= {f"p=a%20b/{name}": 1 for name in (f"Qx/{paths.prefix}left", f"Qx/{paths.prefix}kept", "Qx/lwothers")}
    assert paths.leftovers({FileKey(f"p=a%2520b/Qx/{paths.prefix}kept")}) == [
        FileKey(f"p=a%2520b/Qx/{paths.prefix}left")
    ]


FLAG = Column(("b",), "BOOLEAN", "boolean")
STORED = Storage(((FLAG,),), {"snappy": 100})


def logged(path: str, stats: dict[str, object]) -> LoggedFile:
    add = {"path": path, "size": 100, "partitionValues": {}, "stats": json.dumps(stats), "modificationTime": 5}
    return LoggedFile(decode_add(add, ()), encode(add))


def test_a_bound_that_an_input_had_is_taken_from_the_outputs_footer() -> None:
    footers = SimpleNamespace(
        bounds=lambda _file, wanted: {column: Bounds(False, True, 0) for column in wanted},
        read_each=lambda _files: None,
    )
    shape = SimpleNamespace(metadata=TableMetadata("t"), metadata_json='{"metaData":{}}')
    formats = OutputFormat(footers, shape, "memory://t")  # type: ignore[arg-type]
    had = [logged("in", {"numRecords": 2, "minValues": {"b": False}})]
    (output,) = formats.complete(had, [logged("out", {"numRecords": 2})], STORED)
    assert json.loads(json.loads(output.json)["stats"]) == {
        "numRecords": 2,
        "minValues": {"b": False},
        "maxValues": {"b": True},
    }
    assert (output.file.path, output.file.rows, output.file.modified_ms) == ("out", 2, 5)
    assert formats.complete([logged("in", {})], [output], STORED) == (output,), "nothing was left out"


HAVING = (FLAG, Column(("col-2",), "INT64", "int", (64,)))


def read_with_default(*schemas: tuple[Column, ...]) -> Storage:
    """Return how files of these schemas are stored in a table whose column `d` (`col-2` in files) has a default."""
    mapped = {"delta.columnMapping.physicalName": "col-2", "EXISTS_DEFAULT": "5"}
    fields = [{"name": "b", "type": "boolean"}, {"name": "d", "type": "long", "metadata": mapped}]
    metadata = json.dumps({"metaData": {"schemaString": json.dumps({"fields": fields})}})
    footers = SimpleNamespace(storage=lambda _files: Storage(schemas, {}))
    shape = SimpleNamespace(metadata=TableMetadata("t"), metadata_json=metadata)
    return OutputFormat(footers, shape, "memory://t").storage([])  # type: ignore[arg-type]


def test_files_of_which_some_lack_a_column_with_a_default_are_not_rewritten() -> None:
    """Spark reads the default there, other readers null."""
    with pytest.raises(RefusedFiles, match="some lack the column 'd'") as refused:
        read_with_default(HAVING, (FLAG,))
    assert (refused.value.reason, refused.value.field) == (RefusalReason.DEFAULTS, "d")


def test_a_default_does_not_matter_where_all_files_have_the_column() -> None:
    assert read_with_default(HAVING).schemas == (HAVING,)


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (f"{PREFIX}part-00012-0c9f-c000.zstd.parquet", 12),
        (f"p=part-00003-x/{PREFIX}part-00000-0c9f-c000.zstd.parquet", 0),
        ("part-00003-x/other.parquet", None),
    ],
    ids=["plain", "a folder that looks like one", "a file of others"],
)
def test_the_part_of_an_output_is_in_the_name_of_the_file_not_in_its_folders(path: str, part: int | None) -> None:
    assert part_of(path) == part
