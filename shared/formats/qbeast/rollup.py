"""Rollup: which cubes one rewrite puts into the same file.

A cube with fewer rows *in this rewrite* than the wanted cube size is put with its parent, from the leaves up. So small
rewrites make files of many cubes.
"""

from collections import defaultdict
from collections.abc import Mapping

from shared.formats.qbeast.cubes import CubeSpace


def rollup(rows: Mapping[str, int], space: CubeSpace, desired_cube_size: int) -> dict[str, str]:
    """Return the cube whose file each cube is put into; `rows` has the rows of each cube in the rewrite."""
    members: defaultdict[str, list[str]] = defaultdict(list, {cube: [cube] for cube in rows})
    sizes: defaultdict[str, int] = defaultdict(int, rows)
    for depth in range(max(map(space.depth, rows), default=0), 0, -1):
        for cube in [one for one in members if space.depth(one) == depth]:
            parent = space.parent(cube)
            if sizes[cube] < desired_cube_size and parent is not None:
                members[parent] += members.pop(cube)
                sizes[parent] += sizes.pop(cube)
    return {cube: group for group, cubes in members.items() for cube in cubes}
