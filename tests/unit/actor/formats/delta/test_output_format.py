"""Outputs get back the statistics that their inputs had, and keep every other field of their entries."""

import json
from types import SimpleNamespace

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.chunk_bounds import Bounds
from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Storage
from actor.formats.delta.output_format import OutputFormat
from shared.errors import RefusedFiles
from shared.refusals import RefusalReason
from shared.table import TableMetadata

FLAG = Column(("b",), "BOOLEAN", "boolean")
STORED = Storage(((FLAG,),), {"snappy": 100})


def logged(path: str, stats: dict[str, object]) -> LoggedFile:
    add = {"path": path, "size": 100, "partitionValues": {}, "stats": json.dumps(stats), "modificationTime": 5}
    return LoggedFile(decode_add(add, ()), encode(add))


def test_a_bound_that_an_input_had_is_taken_from_the_outputs_footer() -> None:
    footers = SimpleNamespace(bounds=lambda _file, wanted: {column: Bounds(False, True, 0) for column in wanted})
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
