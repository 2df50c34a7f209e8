"""Outputs get back the statistics that their inputs had, and keep every other field of their entries."""

import json
from types import SimpleNamespace

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Bounds, Storage
from actor.formats.delta.output_format import OutputFormat
from shared.table import TableMetadata

FLAG = Column(("b",), "BOOLEAN", "boolean")
STORED = Storage(((FLAG,),), {"snappy": 100})


def logged(path: str, stats: dict[str, object]) -> LoggedFile:
    add = {"path": path, "size": 100, "partitionValues": {}, "stats": json.dumps(stats), "modificationTime": 5}
    return LoggedFile(decode_add(add, ()), encode(add))


def test_a_bound_that_an_input_had_is_taken_from_the_outputs_footer() -> None:
    footers = SimpleNamespace(bounds=lambda _file, wanted: {column: Bounds(False, True, 0) for column in wanted})
    shape = SimpleNamespace(metadata=TableMetadata("t"))
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
