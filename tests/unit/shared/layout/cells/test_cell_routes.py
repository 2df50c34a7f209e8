"""Routes: each row has one output, outputs keep a piece, and cuts are even in the column that reaches farthest."""

from dataclasses import replace

from shared.layout.cells.boxes import EVERYTHING, NAN, NULL, Box, Point, hull_of_points
from shared.layout.cells.operations import BoxedFile, CellOperation, CellSizes, CellWork
from shared.layout.cells.routes import CellOutput, Fork, Route, find_route, outputs_of
from shared.layout.cells.tree import Cut, Node
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile

SIZES = CellSizes(target_bytes=160, run_bytes=320)
"""A piece has 10 rows of one byte; a cell is split above 213."""


def boxed(size: int, box: Box) -> BoxedFile:
    return BoxedFile(DataFile(f"{size} {box}", size, WHOLE_TABLE, rows=size), box)


def route(
    work: CellWork, node: Node, points: list[Point], others: tuple[BoxedFile, ...] = (), rewritten: int | None = None
) -> Route:
    of = boxed(len(points), hull_of_points(points))
    files = (of,) if rewritten is None else (boxed(rewritten, of.box),)
    return find_route(CellOperation(work, node, files, (of,), 1), points, (of, *others), SIZES)


def whole(columns: int = 1) -> Node:
    return Node((EVERYTHING,) * columns)


def row(*ranges: range) -> list[Point]:
    return [(value,) for of in ranges for value in of]


def test_rows_go_down_to_cells_where_both_sides_keep_a_piece() -> None:
    root = whole()
    root.divide(Cut(0, 100))
    found = route(CellWork.DOWN, root, row(range(90, 110)))
    assert found == Fork(Cut(0, 100), CellOutput(((NULL, 100),)), CellOutput(((100, NAN + 1),)))


def test_rows_stay_at_a_node_if_less_than_a_piece_would_leave_and_there_are_less_than_two() -> None:
    root = whole()
    root.divide(Cut(0, 100))[1].divide(Cut(0, 200))
    assert route(CellWork.DOWN, root, row(range(91, 110))) == CellOutput(None)
    found = route(CellWork.DOWN, root, row(range(99, 110), range(199, 208)))
    assert found == Fork(Cut(0, 100), CellOutput(((NULL, 100),)), CellOutput(None)), "two pieces always move"


def test_rows_on_one_side_pass_a_cut_without_a_choice() -> None:
    root = whole()
    root.divide(Cut(0, 100))[0].divide(Cut(0, 50))
    assert route(CellWork.DOWN, root, row(range(60, 90))) == CellOutput(((50, 100),))
    assert route(CellWork.DOWN, root, [(100,)] * 30) == CellOutput(((100, NAN + 1),)), (
        "the row at a cut is not below it"
    )


def test_a_merge_stays_in_its_cell_and_at_an_inner_node_in_none() -> None:
    root = whole()
    left, _ = root.divide(Cut(0, 100))
    assert route(CellWork.MERGE, left, row(range(5))) == CellOutput(left.box)
    assert route(CellWork.MERGE, root, row(range(98, 103))) == CellOutput(None)


def test_a_cell_is_split_at_the_median() -> None:
    found = route(CellWork.SPLIT, whole(), row(range(240)))
    assert isinstance(found, Fork)
    assert found.cut == Cut(0, 120)


def test_a_heavy_key_is_cut_off_on_its_even_side() -> None:
    assert route(CellWork.SPLIT, whole(), [(7,)] * 150 + row(range(8, 98))).cut == Cut(0, 8)
    assert route(CellWork.SPLIT, whole(), row(range(90)) + [(95,)] * 150).cut == Cut(0, 95)
    assert route(CellWork.SPLIT, whole(), [(NULL,)] * 150 + [(NAN,)] * 90).cut == Cut(0, NAN)


def test_rows_of_one_key_have_one_output() -> None:
    assert route(CellWork.SPLIT, whole(2), [(7, NULL)] * 240) == CellOutput((EVERYTHING, EVERYTHING))


def test_what_the_sample_left_out_is_cut_off_by_the_boxes_of_the_files() -> None:
    files = (boxed(239, ((7, 8), EVERYTHING)), boxed(1, ((7, 10), EVERYTHING)))
    operation = CellOperation(CellWork.SPLIT, whole(2), files, files, 1)
    found = find_route(operation, [(7, 3)] * 60, files, SIZES, every=4)
    assert found.cut == Cut(0, 9)
    assert [end.cell[0] for end in outputs_of(found)] == [(NULL, 9), (9, NAN + 1)]
    unknown = (boxed(240, (EVERYTHING,) * 2),)
    assert find_route(replace(operation, files=unknown, known=unknown), [(7, 3)] * 60, unknown, SIZES, every=4) == (
        CellOutput(operation.node.box)
    ), "the output has bounds"


def test_a_split_of_rows_that_are_deleted_is_a_purge() -> None:
    files = (boxed(200, ((0, 50),)), boxed(200, ((0, 50),)))
    operation = CellOperation(CellWork.SPLIT, whole(), files, files, 1)
    one = CellOutput((EVERYTHING,))
    assert find_route(operation, [], files, SIZES) == one, "all of them"
    assert find_route(operation, row(range(213)), files, SIZES) == one
    assert isinstance(find_route(operation, row(range(214)), files, SIZES), Fork), "they do not fit into one cell"
    assert isinstance(find_route(operation, row(range(50)), files, SIZES, every=4), Fork), "as good as a sample is"
    # Of a cell larger than a run, one file alone may be as it was before.
    known = (*files, boxed(250, ((0, 50),)))
    assert find_route(replace(operation, known=known), row(range(200)), known, SIZES) == one
    assert isinstance(find_route(replace(operation, files=known[2:], known=known), row(range(200)), known, SIZES), Fork)
    # What is not counted tells nothing.
    odd = tuple(replace(file, file=replace(file.file, rows=None)) for file in files)
    uncounted = replace(operation, files=odd, known=odd)
    assert isinstance(find_route(uncounted, row(range(200)), odd, SIZES), Fork)
    assert find_route(uncounted, [], odd, SIZES) == one


def test_cells_of_rows_of_which_many_are_deleted_have_their_size_all_the_same() -> None:
    files = tuple(boxed(400, ((0, 500),)) for _ in range(2))
    found = find_route(CellOperation(CellWork.SPLIT, whole(), files, files, 1), row(range(426)), files, SIZES)
    assert len(outputs_of(found)) == 2


def test_a_cell_is_split_in_the_column_whose_span_meets_most_bytes_of_the_table() -> None:
    points = [(value % 16, value) for value in range(240)]
    others = (boxed(1000, ((0, 100), (500, 600))), boxed(10, ((500, 600), (0, 100))))
    assert route(CellWork.SPLIT, whole(2), points, others).cut.column == 0
    assert route(CellWork.SPLIT, whole(2), points, (boxed(1000, ((500, 600), (0, 100))),)).cut.column == 1
    assert route(CellWork.SPLIT, whole(2), points, others[1:]).cut.column == 0, "neighbors make no difference"


def test_a_column_without_an_even_cut_is_left_for_one_that_has_it() -> None:
    points = [(7 if value else 8, value) for value in range(240)]
    others = (boxed(1000, ((0, 100), (500, 600))),)
    assert route(CellWork.SPLIT, whole(2), points, others).cut == Cut(1, 120)
    assert route(CellWork.SPLIT, whole(1), [point[:1] for point in points]).cut == Cut(0, 8)


def test_where_boxes_are_all_alike_columns_take_turns() -> None:
    points = [(x, y) for x in range(40) for y in range(40)]
    others = tuple(boxed(10_000 + at, ((-100, 100), (-100, 100))) for at in range(3))
    found = route(CellWork.SPLIT, whole(2), points, others)
    assert isinstance(found, Fork)
    assert isinstance(found.left, Fork)
    assert isinstance(found.left.left, Fork)
    assert [found.cut.column, found.left.cut.column, found.left.left.cut.column] == [0, 1, 0]


def test_outputs_of_a_cell_larger_than_a_run_keep_a_piece_of_what_is_rewritten() -> None:
    def ends(of: Route) -> int:
        return 1 if isinstance(of, CellOutput) else ends(of.left) + ends(of.right)

    points = row(range(213 * 64))
    assert ends(route(CellWork.SPLIT, whole(), points)) == 64
    assert ends(route(CellWork.SPLIT, whole(), points, rewritten=160)) == 16
    assert ends(route(CellWork.SPLIT, whole(), points, rewritten=1)) == 2, "there is always a first cut"


def test_rows_on_a_side_of_which_the_sample_has_no_point_wait_in_one_output_for_all() -> None:
    root = whole()
    right = root.divide(Cut(0, 100))[1]
    right.divide(Cut(0, 200))
    operation = CellOperation(CellWork.DOWN, root, (boxed(30, ((0, 300),)),), (boxed(30, ((0, 300),)),), 1)
    found = find_route(operation, [(150,)] * 30, operation.files, SIZES)
    assert isinstance(found, Fork)
    assert isinstance(found.right, Fork)
    assert found.left is found.right.right
    assert outputs_of(found) == [CellOutput(None), CellOutput(((100, 200),))]


def test_outputs_are_numbered_from_the_left_to_the_right_each_once() -> None:
    one, other = CellOutput(None), CellOutput(None)
    assert [*map(id, outputs_of(Fork(Cut(0, 1), one, Fork(Cut(0, 2), other, one))))] == [id(one), id(other)]
    assert outputs_of(one) == [one]
