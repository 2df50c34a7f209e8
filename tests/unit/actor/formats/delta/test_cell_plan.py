"""Which files of a table are put into cells, and how much a run may rewrite."""

import json
from typing import Any

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.cell_columns import CellColumn
from actor.formats.delta.cell_plan import CellPlan
from shared.layout.cells.operations import CellSizes
from shared.layout.cells.tags import CELL_TAG, encode_cell

COLUMNS = (CellColumn(("a",), ("a",), "long"),)
SIZES = CellSizes(target_bytes=160, run_bytes=320)


def logged(name: str, low: int, high: int, size: int = 100, **more: Any) -> LoggedFile:
    stats = {"numRecords": 5, "minValues": {"a": low}, "maxValues": {"a": high}, "nullCount": {"a": 0}}
    add = {"path": name, "size": size, "partitionValues": {}, "stats": json.dumps(stats), **more}
    return LoggedFile(decode_add(add, ()), encode(add))


@pytest.mark.parametrize(
    ("provider", "is_taken"), [(None, True), ("liquid", True), ("lakewright", True), ("other", False)]
)
def test_files_that_a_third_implementation_clustered_are_never_touched(provider: str | None, is_taken: bool) -> None:
    more = {} if provider is None else {"clusteringProvider": provider}
    plan = CellPlan.of(COLUMNS, [logged("f", 0, 9, **more)], SIZES, 10**9)
    assert bool(plan.files) is is_taken


def test_a_run_holds_the_largest_file_as_far_as_a_job_may_rewrite_that_much() -> None:
    files = [logged("f", 0, 9, 1000)]
    assert CellPlan.of(COLUMNS, files, SIZES, 10**9).sizes.run_bytes == 1000
    assert CellPlan.of(COLUMNS, files, SIZES, 500).sizes.run_bytes == 500
    assert CellPlan.of(COLUMNS, [], SIZES, 10**9).sizes.run_bytes == 320


def test_the_tree_is_found_from_tags_and_what_is_left_from_the_files_afterwards() -> None:
    cells = [{CELL_TAG: encode_cell((span,), [("a",)])} for span in ((-(2**60), 50), (50, 2**60))]
    settled = [logged(f"c{at}", 60 * at, 60 * at + 9, tags=tag) for at, tag in enumerate(cells)]
    new = [logged(f"n{at}", 0, 99, 20) for at in range(2)]
    plan = CellPlan.of(COLUMNS, [*settled, *new], SIZES, 10**9)
    run = plan.run()
    assert [{one.file.path for one in operation.files} for operation in run.operations] == [{"n0", "n1"}]
    assert run.due_bytes == 40
    outputs = [logged(f"o{at}", 60 * at, 60 * at + 9, 20, tags=tag) for at, tag in enumerate(cells)]
    assert plan.after(new, outputs).run().due_bytes == 0
