"""Figures of a revision of a Qbeast index, from the log alone.

They are named and computed as the library's `getIndexMetrics` does, except that bytes are exact.
"""

import math
from collections import Counter
from collections.abc import Sequence

from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.groups import file_level
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.weights import cube_that_lacks, cube_weights, is_overhanging, offset_rows
from shared.index.status import IndexMetrics


def measure(files: Sequence[IndexFile], revision: Revision) -> IndexMetrics:
    """Return the figures of a revision; `files` are all live files of it."""
    space, weights = revision.space, cube_weights(files)
    blocks = [block for file in files for block in file.blocks]
    overhanging = [block for block in blocks if is_overhanging(block, weights)]
    rows = sum(block.rows for block in blocks)
    levels = Counter(file_level(file) for file in files)
    children = Counter(space.parent(cube) for cube in weights if cube)
    return IndexMetrics(
        rows=rows,
        bytes=sum(file.size_bytes for file in files),
        files=len(files),
        cubes=len(weights),
        blocks=len(blocks),
        height=max((space.depth(cube) + 1 for cube in weights), default=0),
        min_height=_balanced_height(rows, revision),
        fanout=children.total() / len(children) if children else 0.0,
        overhang_blocks=len(overhanging),
        offset_rows=round(sum(offset_rows(block, weights[block.cube]) for block in overhanging)),
        hidden_blocks=sum(cube_that_lacks(block, weights, space) is not None for block in blocks),
        max_blocks_per_file=max((len(file.blocks) for file in files), default=0),
        max_blocks_per_cube=max(Counter(block.cube for block in blocks).values(), default=0),
        zero_block_files=levels.pop(None, 0),
        files_by_level={level: levels[level] for level in sorted(level for level in levels if level is not None)},
    )


def _balanced_height(rows: int, revision: Revision) -> int:
    """Return the levels of a tree in which every cube is full and has all its children."""
    cubes, ways = math.ceil(rows / revision.desired_cube_size), 2 ** len(revision.columns)
    return math.ceil(math.log(cubes * (ways - 1) + 1, ways))
