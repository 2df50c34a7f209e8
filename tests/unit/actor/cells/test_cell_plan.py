"""How much a run may rewrite, and what is left after it."""

from actor.cells.plan import CellPlan
from shared.layout.cells.operations import CellSizes
from shared.layout.cells.tags import CELL_TAG, encode_cell
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
