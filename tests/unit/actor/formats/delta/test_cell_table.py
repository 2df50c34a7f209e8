"""Which files of a Delta table are put into cells."""

import json
from types import SimpleNamespace

import pytest

from actor.cells.columns import CellColumn
from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.cell_table import DeltaCells
from shared.paths.boundary import Boundary

COLUMNS = (CellColumn(("a",), ("a",), "long"),)


@pytest.mark.parametrize(
    ("provider", "is_taken"), [(None, True), ("liquid", True), ("lakewright", True), ("other", False)]
)
def test_files_that_a_third_implementation_clustered_are_never_touched(provider: str | None, is_taken: bool) -> None:
    stats = {"numRecords": 5, "minValues": {"a": 0}, "maxValues": {"a": 9}, "nullCount": {"a": 0}}
    add = {"path": "f", "size": 100, "partitionValues": {}, "stats": json.dumps(stats)}
    add |= {} if provider is None else {"clusteringProvider": provider}
    logged = LoggedFile(decode_add(add, ()), encode(add))
    job = SimpleNamespace(location="file:///t")
    table = SimpleNamespace(job=job, live=(logged,), boundary=Boundary(()))
    assert DeltaCells(table).boxes(COLUMNS) == ({logged: ((0, 10),)} if is_taken else {})  # type: ignore[arg-type]
