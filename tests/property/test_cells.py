"""Cells: bounded runs, a tree from bounds alone, rest in the end, and a bound on what is rewritten."""

import random
from math import log2

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from actor.cells.job import CellJob
from actor.ports import TableJob
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.boxes import EVERYTHING, NAN, NULL, Box, Point, has_one_key, holds, hull
from shared.layout.cells.operations import BoxedFile, CellSizes, CellWork
from shared.layout.cells.runs import sizes_of_run
from shared.layout.cells.tags import CELL_TAG, encode_cell
from shared.layout.cells.tree import Cut, Node, tree_of
from shared.policy.policy import ClusterMode, Policy
from shared.table import CommitOrigin, PartitionKey
from tests.support.clustered_streams import MAKERS, stream
from tests.support.examples import examples
from tests.support.local_vacuum import Control
from tests.support.memory_cells import MemoryCells
from tests.support.simulated_table import ROW_BYTES, Cells, SimulatedTable, overlap

TARGET_ROWS = 64
FEW = examples(0.2)
"""Examples of what takes a tenth of a second each."""
RARE = examples(0.06)
"""Examples of what takes seconds each."""
FOREVER = 400
"""Runs after which a table that still is not at rest never will be."""


def uneven(dice: random.Random, count: int, columns: int) -> list[Point]:
    """Nulls, NaN, a heavy key, few keys and many, all in one table."""
    draws = [
        lambda: NULL,
        lambda: NAN,
        lambda: 7,
        lambda: dice.randrange(3),
        lambda: dice.randrange(-(2**40), 2**40),
    ]
    weights = [dice.random() ** 3 for _ in draws]
    return [tuple(draw() for draw in dice.choices(draws, weights, k=columns)) for _ in range(count)]


def one_key(dice: random.Random, count: int, columns: int) -> list[Point]:
    return [(dice.randrange(1, 10**6),) * columns] * count


def points_of(shape: str, dice: random.Random, count: int, columns: int) -> list[Point]:
    if shape in MAKERS:
        return MAKERS[shape](dice, count, 1, columns)
    return {"uneven": uneven, "one key": one_key}[shape](dice, count, columns)


SHAPES = st.sampled_from([*MAKERS, "uneven", "one key"])


def new_table(points: list[Point], run_rows: int) -> Cells:
    sizes = CellSizes(TARGET_ROWS * ROW_BYTES, run_rows * ROW_BYTES)
    return Cells(SimulatedTable(points), sizes, len(points[0]))


def run(cells: Cells) -> int:
    """Run once, with the laws of one run."""
    table = cells.table
    rows, names = sorted(table.live_rows()), set(table.files)
    spent = cells.run()
    assert spent <= cells.sizes.run_bytes
    assert sorted(table.live_rows()) == rows, "the same rows"
    for name in table.files.keys() - names:
        written = table.files[name]
        assert written.cell is None or holds(written.cell, written.box), "an output lies in the cell that it names"
    return spent


def rest(cells: Cells) -> int:
    """Run until nothing is due; return the bytes rewritten."""
    spent = 0
    for _ in range(FOREVER):
        spent += run(cells)
        if not cells.left_bytes:
            break
    assert cells.left_bytes == 0, "every table is at rest in the end"
    assert cells.plan().operations == (), "nothing due, nothing done"
    return spent


@given(
    seed=st.integers(0, 10**6),
    shape=SHAPES,
    columns=st.integers(1, 3),
    run_rows=st.sampled_from([40, 2 * TARGET_ROWS, 5 * TARGET_ROWS]),
    every=st.sampled_from([1, 1, 2, 8]),
    counted=st.sampled_from([1.0, 0.5, 0.0]),
)
def test_whatever_is_written_and_deleted_runs_are_bounded_keep_all_rows_and_come_to_rest(
    seed: int, shape: str, columns: int, run_rows: int, every: int, counted: float
) -> None:
    """Also where runs know one row of some, and no metadata count which rows are deleted."""
    dice = random.Random(seed)
    cells = new_table(points_of(shape, dice, 1500, columns), run_rows)
    cells.every = every
    table, first = cells.table, 0
    while first < 1500:
        size = min(1500 - first, int(10 ** (dice.random() * 2.5)))
        table.append(range(first, first + size))
        first += size
        live = table.live_rows()
        deleted = dice.sample(live, min(len(live), dice.choice([0, 0, size // 10, size])))
        table.delete(deleted, is_counted=dice.random() < counted)
        if cells.is_due():
            run(cells)
    rest(cells)
    for node, files in _by_node(cells).items():
        rewritable = [file for file in files if file.live_bytes and file.size_bytes <= cells.sizes.run_bytes]
        if not node.parts and sum(file.live_bytes for file in rewritable) > cells.sizes.cell_bytes:
            assert has_one_key(hull(file.box for file in rewritable)), "no cell is too large"


def _by_node(cells: Cells) -> dict[Node, list[BoxedFile]]:
    found: dict[Node, list[BoxedFile]] = {}
    for file in cells.boxed():
        found.setdefault(cells.tree().place(file.box), []).append(file)
    return found


@given(
    heavy=st.integers(-5, 5),
    others=st.lists(st.tuples(st.integers(-6, 6)), min_size=1, max_size=5),
    files=st.integers(1, 5),
    every=st.sampled_from([1, 2, 50]),
)
def test_a_split_adds_a_cut_or_is_not_due_again(heavy: int, others: list[Point], files: int, every: int) -> None:
    """Whatever the sample leaves out: here it may know one key alone."""
    rows = [(heavy,)] * (200 - len(others))
    for at, other in enumerate(others):
        rows.insert(2 * at + 1, other)
    cells = new_table(rows, 5 * TARGET_ROWS)
    cells.every = every
    for at in range(files):
        cells.table.append(range(200 * at // files, 200 * (at + 1) // files))
    for _ in range(FOREVER):
        before = {node.box for node in cells.tree().nodes()}
        (operation, *_) = cells.plan().operations or [None]
        if operation is None or operation.work is not CellWork.SPLIT:
            break
        cells.carry_out(operation, cells.boxed())
        assert {node.box for node in cells.tree().nodes()} != before, "it adds a cut"
    rest(cells)


def test_rows_that_no_metadata_count_as_deleted_make_no_cells() -> None:
    """Upserts by value of 60 keys, 20 at once: each older row is deleted, and the log does not say so."""
    dice = random.Random(3)
    points = [(dice.randrange(60),) for _ in range(8000)]
    cells, live = new_table(points, 2 * TARGET_ROWS), dict[int, int]()
    for first in range(0, 8000, 20):
        newest = {points[row][0]: row for row in range(first, first + 20)}
        cells.table.append([*newest.values()])
        cells.table.delete([live[key] for key in newest if key in live], is_counted=False)
        live |= newest
        if cells.is_due():
            run(cells)
    rest(cells)
    assert cells.tree().parts == (), "they fit into one"


@settings(max_examples=RARE)
@given(
    seed=st.integers(0, 10**6), shape=SHAPES, columns=st.integers(1, 3), file_rows=st.sampled_from([20, 64, 100, 129])
)
def test_a_table_that_others_wrote_is_taken_over_in_bounded_runs(
    seed: int, shape: str, columns: int, file_rows: int
) -> None:
    """Also one huge cell: as long as files fit into runs, they are put into cells."""
    dice = random.Random(seed)
    points = points_of(shape, dice, 3000, columns)
    if dice.random() < 0.5:
        points.sort()
    cells = new_table(points, 2 * TARGET_ROWS)
    for first in range(0, 3000, file_rows):
        cells.table.append(range(first, min(3000, first + file_rows)))
    spent = rest(cells) / (3000 * ROW_BYTES)
    leaves = sum(not node.parts for node in cells.tree().nodes())
    event(f"{shape}, files of {file_rows}: {spent:.1f} times, {leaves} cells")
    assert spent <= 2 + log2(leaves)


@pytest.mark.parametrize("kind", ["uniform", "zipf", "ascending"])
def test_a_table_that_was_never_clustered_is_cut_in_both_columns(kind: str) -> None:
    """Boxes that span everything do not say which column to cut: the first alone would leave the second unordered."""
    points = MAKERS[kind](random.Random(3), 60, 50, 2)
    cells = new_table(points, 2 * TARGET_ROWS)
    for first in range(0, 3000, 50):
        cells.table.append(range(first, first + 50))
    rest(cells)
    files = cells.table.files.values()
    for column in (0, 1):
        met = [sum(file.box[column][0] <= point[column] < file.box[column][1] for file in files) for point in points]
        assert sum(met) / len(met) < len(files) / 3, f"column {column}"


def test_columns_that_ascend_together_make_a_flat_tree() -> None:
    made = stream("together", 400, 16, 2)
    cells = new_table(made.points, 2 * TARGET_ROWS)
    for commit in made.commits:
        cells.table.append(commit.added)
        if cells.is_due():
            run(cells)
    level, depth = [cells.tree()], 0
    while level := [part for node in level for part in node.parts]:
        depth += 1
    leaves = sum(not node.parts for node in cells.tree().nodes())
    assert leaves > 50
    assert depth <= 2 * log2(leaves)


def divided(dice: random.Random, columns: int, cuts: int) -> list[Box]:
    """Cut the whole at random places, again and again."""
    cells: list[Box] = [(EVERYTHING,) * columns]
    for _ in range(cuts):
        at = dice.randrange(len(cells))
        column = dice.randrange(columns)
        low, high = cells[at][column]
        value = dice.randrange(max(low, -(2**20)), min(high, 2**20) + 1)
        if low < value < high:
            cells[at : at + 1] = [part.box for part in Node(cells[at]).divide(Cut(column, value))]
    return cells


@given(seed=st.integers(0, 10**6), columns=st.integers(1, 3), cuts=st.integers(0, 60), data=st.data())
def test_the_tree_separates_every_cell_whichever_are_lost(seed: int, columns: int, cuts: int, data) -> None:
    dice = random.Random(seed)
    whole = divided(dice, columns, cuts)
    cells = data.draw(st.lists(st.sampled_from(whole), unique=True))
    older = data.draw(st.lists(st.sampled_from(divided(random.Random(seed), columns, cuts // 2)), unique=True))
    split_since = [cell for cell in older if sum(holds(cell, one) for one in cells) > 1]
    tree = tree_of([*cells, *split_since], columns)
    homes = [tree.place(cell) for cell in cells]
    assert not any(home.parts for home in homes), "a cell is never an inner node"
    assert len(set(homes)) == len(cells), "no two cells are one"


@given(seed=st.integers(0, 10**6), columns=st.integers(1, 3), cuts=st.integers(0, 40))
def test_the_place_of_a_file_depends_on_its_box_and_the_set_of_cells_alone(seed: int, columns: int, cuts: int) -> None:
    dice = random.Random(seed)
    cells = divided(dice, columns, cuts)
    one, other = tree_of(cells, columns), tree_of(dice.sample(cells, len(cells)) + cells, columns)
    for _ in range(20):
        box = tuple((low, low + dice.randrange(1, 2**19)) for low in (dice.randrange(-(2**20), 2**20),) * columns)
        assert one.place(box).box == other.place(box).box
        assert holds(one.place(box).box, box)
    assert all(holds(node.box, part.box) for node in one.nodes() for part in node.parts)


@given(tags=st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4).map(sorted), max_size=12))
def test_wrong_tags_make_a_tree_all_the_same(tags: list[list[int]]) -> None:
    cells = [((low, high + 1), (first, last + 1)) for low, high, first, last in tags]
    leaves = [node.box for node in tree_of(cells, 2).nodes() if not node.parts]
    assert not any(overlap(one, other) for one in leaves for other in leaves if one is not other)


@settings(max_examples=RARE)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from([*MAKERS]),
    columns=st.integers(1, 3),
    commit_rows=st.sampled_from([4, 16, 40]),
    is_updated=st.booleans(),
)
def test_a_byte_is_rewritten_about_once_for_each_doubling_of_the_number_of_cells(
    seed: int, kind: str, columns: int, commit_rows: int, is_updated: bool
) -> None:
    made = stream(kind, 3000 // commit_rows, commit_rows, columns, updated=is_updated * commit_rows // 8, seed=seed)
    cells = Cells(
        SimulatedTable(made.points), sizes_of_run(TARGET_ROWS * ROW_BYTES, commit_rows * ROW_BYTES, 10**12), columns
    )
    spent = 0
    for commit in made.commits:
        cells.table.delete(commit.deleted)
        cells.table.append(commit.added)
        if cells.is_due():
            spent += run(cells)
    spent += rest(cells)
    leaves = sum(not node.parts for node in cells.tree().nodes())
    amplification = spent / (len(made.points) * ROW_BYTES)
    event(f"{kind}, {columns} columns: {amplification:.1f} times, {leaves} cells")
    assert amplification <= 2 + log2(leaves)
    if kind == "ascending" and columns == 1 and not is_updated:
        assert amplification <= 2.5


@settings(max_examples=FEW)
@given(seed=st.integers(0, 10**6))
def test_wrong_cells_in_tags_and_names_cost_bytes_and_never_rows(seed: int) -> None:
    """Of boxes that overlap, that others have cut since, or in which their file does not lie; in two partitions."""
    dice, table = random.Random(seed), MemoryCells()
    for at in range(dice.randrange(2, 12)):
        spans = [sorted(dice.sample([NULL, 0, 250, 500, 750, 1000, NAN + 1], 2)) for _ in range(2)]
        tag = encode_cell(tuple((low, high) for low, high in spans), [("a",), ("b",)])
        rows = [(dice.randrange(1000), dice.randrange(1000)) for _ in range(dice.randrange(1, 100))]
        inside = [row for row in rows if all(low <= one < high for one, (low, high) in zip(row, spans, strict=True))]
        table.add(dice.choice([rows, inside or rows]), PartitionKey(str(at % 2)), **{CELL_TAG: tag})
    rows_before = table.rows
    policy = Policy(cluster=ClusterMode.CELLS, target_bytes=64 * ROW_BYTES)
    job = TableJob(CLUSTER, "file:///t", policy, CommitOrigin("j", 1), options=ClusterOptions(force=True).encode())
    CellJob(table, job, Control()).run()
    assert table.rows == rows_before
    assert CellJob(table, job, Control()).run().commits == (), "at rest"
