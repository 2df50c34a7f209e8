"""How much a run may rewrite, and what is left after it."""

import random

from actor.cells.plan import CellPlan
from shared.layout.cells.boxes import Point
from shared.layout.cells.operations import CellSizes
from shared.layout.cells.tags import CELL_TAG, decode_cell, encode_cell
from shared.layout.commit_metadata import CommitMetadata
from shared.table import CommitOrigin, PartitionKey
from tests.support.memory_cells import ROW_BYTES, MemoryCells

SIZES = CellSizes(target_bytes=16 * ROW_BYTES, run_bytes=32 * ROW_BYTES)
MANY = 10**9


def plan(table: MemoryCells, most_bytes: int = MANY) -> CellPlan:
    return CellPlan.of(table.columns(), table.boxes(table.columns()), SIZES, most_bytes)


def test_a_run_holds_the_largest_file_as_far_as_a_job_may_rewrite_that_much() -> None:
    table = MemoryCells(("a",))
    assert plan(table).sizes.run_bytes == 32 * ROW_BYTES
    table.add((row,) for row in range(100))
    assert plan(table).sizes.run_bytes == 100 * ROW_BYTES
    assert plan(table, 50 * ROW_BYTES).sizes.run_bytes == 50 * ROW_BYTES


def test_the_tree_is_found_from_tags_and_what_is_left_from_the_files_afterwards() -> None:
    table = MemoryCells(("a",))
    cells = [{CELL_TAG: encode_cell((span,), [("a",)])} for span in ((-(2**60), 50), (50, 2**60))]
    for at, tag in enumerate(cells):
        table.add([(60 * at + row,) for row in range(10)], **tag)
    new = [table.add([(0,), (99,)]) for _ in range(2)]
    before = plan(table)
    run = before.run()
    assert before.inputs(run) == new
    assert run.due_bytes == 4 * ROW_BYTES
    outputs = [table.add([(60 * at,), (60 * at,)], **tag) for at, tag in enumerate(cells)]
    boxes = table.boxes(table.columns())
    assert before.after(new, {one: boxes[one] for one in outputs}).run().due_bytes == 0


def test_a_cell_that_its_file_does_not_lie_in_is_none() -> None:
    table = MemoryCells(("a",))
    tag = {CELL_TAG: encode_cell(((0, 50),), [("a",)])}
    inside, outside = table.add([(0,), (49,)], **tag), table.add([(0,), (50,)], **tag)
    files = plan(table).files
    assert (files[inside].cell, files[outside].cell) == (((0, 50),), None)


def rows_of(table: MemoryCells, partition: str) -> list[Point]:
    return sorted(row for one in table.files.values() if one.file.partition == partition for row in one.rows)


def test_each_partition_has_cells_of_its_own_and_the_most_urgent_operations_of_all_are_first() -> None:
    table, dice = MemoryCells(("a",)), random.Random(3)
    for number, files in (("0", 3), ("1", 5)):
        for _ in range(files):
            table.add(((dice.randrange(10**6),) for _ in range(16)), PartitionKey(number))
    before = {one.file.path: one.file.partition for one in table.files.values()}
    sizes = CellSizes(target_bytes=16 * ROW_BYTES, run_bytes=10**6)
    found = CellPlan.of(table.columns(), table.boxes(table.columns()), sizes, MANY)
    run = found.run()
    assert [one.files[0].file.partition for one in run.operations] == ["1", "0"]
    for operation in run.operations:
        (partition,) = {before[one.file.path] for one in operation.files}
        assert {one.file.partition for one in found.beside(operation)} == {partition}
    rows = rows_of(table, "0"), rows_of(table, "1")
    while (run := plan(table).run()).operations:
        table.rewrite(plan(table), run, lambda _: CommitMetadata(CommitOrigin("j", 1)))
    assert (rows_of(table, "0"), rows_of(table, "1")) == rows, "no row leaves its partition"
    assert all(decode_cell(one.file.tags[CELL_TAG], [("a",)]) for one in table.files.values())
