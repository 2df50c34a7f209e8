"""Placement of rows: what a rewrite of index files must find in its inputs, and what it writes.

A row's cube follows from its values, its weight and the weights of cubes, so a rewrite estimates nothing. Zone and
release of the writer's Java may bear on it, and no table names them. So the rules are proved first, on the files that
are rewritten: the rows of each block are counted again, and must be those that the block says.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from shared.errors import Corrupt
from shared.formats.qbeast.cubes import CubeSpace, cube_order
from shared.formats.qbeast.files import MAX_WEIGHT, Block
from shared.formats.qbeast.names import BLOCKS_TAG, REVISION_TAG
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.rollup import rollup
from shared.formats.qbeast.weights import CubeWeights, cube_that_lacks

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class RowCount:
    """Rows that were counted, and the least of their weights."""

    rows: int
    min_weight: int


Rows = Mapping[tuple[str, str, str], RowCount]
"""Rows by the name of their file, the block of it that they are in, and the cube that they belong into."""

BlocksByFile = Mapping[str, Sequence[Block]]
"""Blocks by the name of their file."""


def rows_of_blocks(found: Rows) -> dict[tuple[str, str], RowCount]:
    """Return rows by the name of their file and their block in it."""
    return _joined(((name, block), count) for (name, block, _), count in found.items())


def rows_of_cubes(found: Rows) -> dict[str, RowCount]:
    """Return rows by the cube that they belong into."""
    return _joined((cube, count) for (_, _, cube), count in found.items())


def _joined(counts: Iterable[tuple[K, RowCount]]) -> dict[K, RowCount]:
    joined: dict[K, RowCount] = {}
    for key, count in counts:
        before = joined.get(key, RowCount(0, MAX_WEIGHT))
        joined[key] = RowCount(before.rows + count.rows, min(before.min_weight, count.min_weight))
    return joined


def blocks_differ(
    files: BlocksByFile, counted: Mapping[tuple[str, str], RowCount], with_deletes: Collection[str] = ()
) -> str:
    """Return how the first block differs from its rows, empty where all blocks have the rows that they say.

    Deleted rows were not counted: of files `with_deletes`, blocks may say more.
    """
    left = dict(counted)
    for name, blocks in files.items():
        for block in blocks:
            found = left.pop((name, block.cube), RowCount(0, MAX_WEIGHT))
            if not _agrees(block, found, has_deletes=name in with_deletes):
                return (
                    f"the block {block.cube!r} of {name} says {block.rows} rows from the weight {block.min_weight} on, "
                    f"and {found.rows} from {found.min_weight} on were found"
                )
    for (name, cube), found in sorted(left.items()):
        return f"{found.rows} rows of {name} would be in a block {cube!r}, which it does not have"
    return ""


def _agrees(block: Block, found: RowCount, *, has_deletes: bool) -> bool:
    if has_deletes:
        return found.rows <= block.rows and found.min_weight >= block.min_weight
    return (found.rows, found.min_weight) == (block.rows, block.min_weight)


def plan_outputs(counts: Mapping[str, RowCount], weights: CubeWeights, revision: Revision) -> list[tuple[Block, ...]]:
    """Return the blocks of each file that is written, cubes near the root first; `counts`: rows to write by cube."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    rows = {cube: count.rows for cube, count in counts.items()}
    for cube, group in rollup(rows, revision.space, revision.desired_cube_size).items():
        groups[group].append(cube)
    return [
        tuple(
            Block(cube, counts[cube].min_weight, weights.get(cube, MAX_WEIGHT), counts[cube].rows)
            for cube in sorted(groups[group], key=cube_order)
        )
        for group in sorted(groups, key=lambda cube: (len(cube), cube_order(cube)))
    ]


def block_tags(revision: int, blocks: Iterable[Block]) -> dict[str, str]:
    """Return the tags of a file with these blocks; the library's reader takes no other fields."""
    fields = [
        {
            "cubeId": block.cube,
            "minWeight": block.min_weight,
            "maxWeight": block.max_weight,
            "elementCount": block.rows,
            "replicated": False,
        }
        for block in blocks
    ]
    return {REVISION_TAG: str(revision), BLOCKS_TAG: json.dumps(fields, separators=(",", ":"))}


def require_lawful(outputs: Sequence[Sequence[Block]], weights: CubeWeights, rows: int, space: CubeSpace) -> None:
    """Raise Corrupt unless outputs hold all rows, and samples find them: to be called before the commit."""
    blocks = [block for one in outputs for block in one]
    written = sum(block.rows for block in blocks)
    if written != rows:
        raise Corrupt(f"the blocks of the outputs have {written} rows, their inputs {rows}")
    for block in blocks:
        space.check(block.cube)
        above = cube_that_lacks(block, weights, space)
        if above is not None:
            raise Corrupt(f"a row of weight {block.min_weight} in {block.cube!r} belongs into {above!r}")
