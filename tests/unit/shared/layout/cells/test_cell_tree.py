"""The tree of cuts: what it is with cells missing, split since, or wrong; and how deep it becomes."""

from shared.layout.cells.boxes import EVERYTHING, NAN, NULL, Box
from shared.layout.cells.tree import Node, tree_of


def leaves(root: Node) -> set[Box]:
    return {node.box for node in root.nodes() if not node.parts}


def test_without_cells_there_are_no_cuts() -> None:
    assert leaves(tree_of([], 2)) == {(EVERYTHING, EVERYTHING)}
    assert leaves(tree_of([(EVERYTHING, EVERYTHING)], 2)) == {(EVERYTHING, EVERYTHING)}


def test_a_cell_brings_back_its_own_bounds_when_all_others_are_lost() -> None:
    found = leaves(tree_of([((10, 20),)], 1))
    assert found == {((NULL, 10),), ((10, 20),), ((20, NAN + 1),)}


def test_a_cell_that_was_split_since_is_an_inner_node() -> None:
    old, low, high = ((NULL, 20),), ((NULL, 10),), ((10, 20),)
    assert leaves(tree_of([old, low, high], 1)) == {low, high, ((20, NAN + 1),)}
    assert leaves(tree_of([old, low], 1)) == {low, high, ((20, NAN + 1),)}


def test_a_file_lies_in_the_deepest_node_that_holds_it_and_the_end_of_a_box_is_not_in_it() -> None:
    root = tree_of([((NULL, 10),), ((10, NAN + 1),)], 1)
    assert root.place(((3, 10),)).box == ((NULL, 10),)
    assert root.place(((10, 11),)).box == ((10, NAN + 1),)
    assert root.place(((9, 11),)) is root
    assert root.place((EVERYTHING,)) is root


def test_a_tree_of_a_thousand_cells_is_as_flat_as_it_can_be() -> None:
    cells = [((at, at + 1),) for at in range(1024)]
    root = tree_of(cells, 1)

    def depth(node: Node) -> int:
        return 1 + max(map(depth, node.parts)) if node.parts else 0

    assert depth(root) <= 12
    assert all(root.place(cell).box == cell for cell in cells)
