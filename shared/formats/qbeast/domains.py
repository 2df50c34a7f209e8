"""Weights of cubes when rows are added to an index: from how many rows lie in the space of each cube.

A cube keeps as many of the rows in its space as it wants, those of the least weights; the others go below. So its
weight is its parent's and, added to that, the share that it keeps of its rows. No cube's weight ever rises: rows below
a cube must stay above its weight, or samples miss them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from shared.formats.qbeast.cubes import ROOT, CubeSpace
from shared.formats.qbeast.files import MAX_WEIGHT, IndexFile
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.weights import CubeWeights, fraction_of_weight, weight_of_fraction

MAX_PASSES = 12
"""Passes over new rows to count them; what lies so close together that these do not separate it is left in one cube."""

_CUBES_AT_ONCE = 2**17
_SYMBOL_BITS = 6
_CUBES_TO_SPARE = 8

CountPlaces = Callable[[Mapping[str, int]], Mapping[str, int]]
"""Counts rows by the cube that they lie in: so many levels below each cube that is given, elsewhere anywhere."""


def count_domains(count: CountPlaces, rows: int, revision: Revision) -> Counter[str]:
    """Return how many rows lie in the space of each cube, down to cubes that want all of theirs; `rows`: all rows."""
    space, wanted = revision.space, revision.desired_cube_size
    found = Counter({ROOT: rows})
    ways = min(_CUBES_AT_ONCE, _CUBES_TO_SPARE * rows // wanted)
    split, levels = {ROOT} if rows > wanted else set[str](), max(1, ways.bit_length() // space.dimensions)
    for _ in range(MAX_PASSES):
        if not split:
            break
        reached = set()
        for cube, inside in count(dict.fromkeys(split, levels)).items():
            passed = _up_to(cube, split, space)
            found.update(dict.fromkeys(passed, inside))
            reached.update(passed[:1])
        split = {cube for cube in reached if found[cube] > wanted}
        levels = max(1, _SYMBOL_BITS // space.dimensions)
    return found


def _up_to(cube: str, split: Collection[str], space: CubeSpace) -> list[str]:
    """Return a cube and those above it, up to one that was split and without it; none where there is no such one."""
    path = space.path(cube)
    end = next((place for place, above in enumerate(path) if above in split), 0)
    return path[:end]


def domains_of_index(files: Iterable[IndexFile], space: CubeSpace) -> dict[str, float]:
    """Estimate how many rows lie in the space of each cube of a revision, whose live files these all are.

    Those that a cube keeps lie below it as its other rows do.
    """
    below = Counter[str]()
    for file in files:
        for block in file.blocks:
            below.update(dict.fromkeys(space.path(block.cube), block.rows))
    children: defaultdict[str, int] = defaultdict(int)
    for cube, rows in below.items():
        parent = space.parent(cube)
        if parent is not None:
            children[parent] += rows
    found: dict[str, float] = {}
    for cube in sorted(below, key=len):
        parent = space.parent(cube)
        found[cube] = below[cube] if parent is None else found[parent] * below[cube] / children[parent]
    return found


def lowered_weights(
    added: Mapping[str, int], present: Mapping[str, float], weights: CubeWeights, revision: Revision
) -> dict[str, int]:
    """Return the weights of cubes once rows are added, of which `added` and `present` lie in the space of each cube."""
    space, wanted = revision.space, revision.desired_cube_size
    lowered, fractions = dict(weights), dict[str, float]()
    for cube in sorted({**added, **present}, key=len):
        parent = space.parent(cube)
        above = 0.0 if parent is None else fractions.get(parent, 1.0)
        if above < 1:
            domain = added.get(cube, 0) + present.get(cube, 0.0)
            share = above + wanted / domain if domain > wanted else 1.0
            weight = weight_of_fraction(share) if share < 1 else MAX_WEIGHT
            known = weights.get(cube, MAX_WEIGHT)
            if weight < known:
                lowered[cube] = weight
            fractions[cube] = fraction_of_weight(min(weight, known))
    return lowered


def without_unrecorded(lowered: CubeWeights, weights: CubeWeights, placed: Collection[str]) -> dict[str, int]:
    """Return lowered weights without those of cubes that no row was placed into, which no block would record.

    Readers know a cube's weight from its blocks alone. Rows that were placed by a weight that none records would lie
    below the cube that they belong into. weights: those that are recorded already.
    """
    recorded = {cube: weight for cube, weight in lowered.items() if cube in placed}
    return {**weights, **recorded}
