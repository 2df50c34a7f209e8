"""Where the rows of a run go, as SQL and as cuts of a task, and that an output lies in the cell that it names."""

import pytest

from actor.cells.columns import TEXTS, Stored
from actor.cells.outputs import BYTES_OF_A_ROW, SAMPLE_ROWS, CellOutputs, cuts_of, sampled_rows
from actor.cells.plan import CellPlan
from shared.errors import Corrupt
from shared.layout.cells.boxes import EVERYTHING, NULL
from shared.layout.cells.operations import CellSizes
from shared.layout.cells.routes import CellOutput, Fork
from shared.layout.cells.tags import decode_cell
from shared.layout.cells.tree import Cut
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.support.memory_cells import ROW_BYTES, MemoryCells

SIZES = CellSizes(target_bytes=8 * ROW_BYTES, run_bytes=64 * ROW_BYTES)


def outputs_of_a_split() -> tuple[CellOutputs, list]:
    table = MemoryCells(("a",))
    table.add((row,) for row in range(16))
    plan = CellPlan.of(table.columns(), table.boxes(table.columns()), SIZES, 64 * ROW_BYTES)
    outputs = CellOutputs(plan, plan.run().operations)
    return outputs, list(outputs.routes(lambda files, _: [row for one in files for row in one.rows]))


def test_each_row_gets_the_number_of_its_output() -> None:
    outputs, ((files, route, first),) = outputs_of_a_split()
    assert (len(files), first, len(outputs)) == (1, 0, 2)
    assert outputs.choice(route, 5) == "IF(coalesce(`a` < 8, true), 5, 6)"


def test_routes_that_are_found_again_have_the_same_numbers() -> None:
    outputs, _ = outputs_of_a_split()
    ((_, _, first),) = outputs.routes(lambda files, _: [row for one in files for row in one.rows])
    assert (first, len(outputs)) == (0, 2)


def test_an_output_names_the_cell_that_it_lies_in_or_is_not_committed() -> None:
    outputs, _ = outputs_of_a_split()
    assert decode_cell(outputs.tag(1, ((8, 16),), "f"), [("a",)]) == ((8, EVERYTHING[1]),)
    with pytest.raises(Corrupt, match="outside of its cell"):
        outputs.tag(1, ((7, 16),), "f")
    for number in (None, 2):
        with pytest.raises(Corrupt, match="f is the output of no operation"):
            outputs.tag(number, ((8, 9),), "f")


def test_cuts_lead_to_outputs_by_values_as_files_store_them() -> None:
    left, right = CellOutput(None), CellOutput(None)
    text = int.from_bytes(b"m".ljust(32, b"\0"))
    assert cuts_of(left, ()) == []
    assert cuts_of(Fork(Cut(0, 3), left, Fork(Cut(1, text), right, left)), (Stored(), TEXTS)) == [
        [0, 3, -1, 1],
        [1, "6d", -2, -1],
    ]
    assert cuts_of(Fork(Cut(0, 1 << 63), left, right), (Stored(),)) == [], "no value is above it"
    assert cuts_of(Fork(Cut(0, NULL + 1), left, right), (Stored(),)) == [[0, -(1 << 63), -1, -2]]


def test_many_rows_are_sampled_evenly() -> None:
    counted = DataFile("a", 1, WHOLE_TABLE, rows=3 * SAMPLE_ROWS)
    not_counted = DataFile("b", 2 * SAMPLE_ROWS * BYTES_OF_A_ROW, WHOLE_TABLE)
    assert [sampled_rows(files) for files in ([counted], [counted, not_counted], [])] == [3, 5, 1]
