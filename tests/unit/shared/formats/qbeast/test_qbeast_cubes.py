"""A cube's place in the tree follows from its name; the names are those that the library gives points."""

import random

import pytest

from shared.errors import Corrupt
from shared.formats.qbeast.cubes import ROOT, CubeSpace, cube_order


@pytest.mark.parametrize(
    ("dimensions", "cube", "depth", "parent"),
    [
        (2, "", 0, None),
        (2, "w", 1, ""),
        (2, "wQ", 2, "w"),
        (2, "wQg", 3, "wQ"),
        (1, "gg", 2, "g"),
        (3, "Y", 1, ""),
        (6, "/", 1, ""),
        (7, "0Q", 1, ""),
        (8, "0QTQ", 2, "0Q"),
    ],
)
def test_depth_and_parent_count_groups_of_symbols(dimensions: int, cube: str, depth: int, parent: str | None) -> None:
    space = CubeSpace(dimensions)
    space.check(cube)
    assert (space.depth(cube), space.parent(cube)) == (depth, parent)


@pytest.mark.parametrize(("dimensions", "cube"), [(8, "0QT"), (2, "w="), (2, "w-"), (2, "é")])
def test_a_text_that_is_no_cube_of_the_space_is_refused(dimensions: int, cube: str) -> None:
    with pytest.raises(Corrupt, match="cube"):
        CubeSpace(dimensions).check(cube)


def test_cubes_are_ordered_by_bits_with_ancestors_first_and_not_by_characters() -> None:
    ordered = [ROOT, "A", "AA", "Aa", "Z", "a", "z", "0", "9", "+", "/"]
    shuffled = random.Random(7).sample(ordered, len(ordered))
    assert sorted(shuffled, key=cube_order) == ordered
    assert sorted(shuffled) != ordered
