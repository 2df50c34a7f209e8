"""Weights of cubes: which rows a cube keeps, and which rows of its blocks have outgrown it.

Each row has a fixed weight, uniform over 32 bits. A cube keeps the rows whose weight is at most its own; the others
belong to its children. New rows lower a cube's weight, and rows above it in older blocks are *offsets*: a rewrite moves
them down.
"""

from collections.abc import Iterable, Mapping

from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, IndexFile

CubeWeights = Mapping[str, int]
"""Weight of each cube of a revision: the least of its live blocks."""

_WEIGHT_RANGE = 2**32 - 1


def cube_weights(files: Iterable[IndexFile]) -> dict[str, int]:
    """Return the weight of each cube; `files` are all live files of one revision."""
    weights: dict[str, int] = {}
    for file in files:
        for block in file.blocks:
            weights[block.cube] = min(block.max_weight, weights.get(block.cube, MAX_WEIGHT))
    return weights


def weights_to_place_by(files: Iterable[IndexFile], space: CubeSpace, *, repairs: bool = False) -> dict[str, int]:
    """Return the weight by which rows are placed into each cube; `files` are all live files of one revision.

    Readers stop at a cube whose weight is enough for what they want. So a cube that has no live block, as a DELETE
    leaves it, must not be written with a weight that live rows below do not exceed. repairs: the weight of no other
    cube is higher either, where the removal of a block raised it.
    """
    files = tuple(files)
    weights, below = cube_weights(files), dict[str, int]()
    for block in (block for file in files for block in file.blocks):
        above = space.parent(block.cube)
        # What is known of a cube is known of all above it.
        while above is not None and block.min_weight < below.get(above, MAX_WEIGHT + 1):
            below[above] = block.min_weight
            above = space.parent(above)
    for cube, least in below.items():
        if repairs or cube not in weights:
            weights[cube] = max(MIN_WEIGHT, min(weights.get(cube, MAX_WEIGHT), least - 1))
    return weights


def weight_of_fraction(fraction: float) -> int:
    """Return the weight below which a sample of this fraction takes rows; computed as the library does."""
    return int(fraction * _WEIGHT_RANGE - 2**31)


def fraction_of_weight(weight: int) -> float:
    """Return the share of all weights up to this one; computed as the library does."""
    return (weight + 2**31) / _WEIGHT_RANGE


def is_overhanging(block: Block, weights: CubeWeights) -> bool:
    """Return whether a block may hold rows that belong to descendants of its cube."""
    return block.max_weight > weights[block.cube]


def cube_that_lacks(block: Block, weights: CubeWeights, space: CubeSpace) -> str | None:
    """Return the name of a cube above a block's that a row of the block belongs into, None if there is none.

    A block without rows has none. A reader of a sample stops at the first cube on a path whose weight is enough for it,
    and misses such a row.
    """
    above = space.path(block.cube)[1:] if block.rows else ()
    return next((cube for cube in above if cube in weights and block.min_weight <= weights[cube]), None)


def offset_rows(block: Block, limit: int) -> float:
    """Estimate a block's rows above a weight, from the range of its weights."""
    low = max(block.min_weight, limit)
    width = block.max_weight - block.min_weight
    share = (block.max_weight - low) / width if width > 0 else 1.0
    return block.rows * max(share, 0.0)
