"""Groups of blocks that are worth merging: blocks of one cube in files of one level, together of the next level.

A file's level is the power of ten of its largest block. A file takes part with every block, always on its own level.
Rewriting only groups that reach the next level bounds how often rows are rewritten.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from shared.formats.qbeast.cubes import CubeOrder, CubeSpace, cube_order
from shared.formats.qbeast.files import Block, IndexFile


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A file of a group: rows of the group's cube in it, and the number of its blocks of that cube."""

    file: IndexFile
    rows: int
    blocks: int


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """Blocks of one cube in files of one level."""

    level: int
    cube: str
    members: tuple[GroupMember, ...]

    @property
    def rows(self) -> int:
        """Rows of its blocks."""
        return sum(member.rows for member in self.members)

    @property
    def blocks(self) -> int:
        """Number of its blocks."""
        return sum(member.blocks for member in self.members)

    @property
    def bytes(self) -> int:
        """Bytes of its files."""
        return sum(member.file.size_bytes for member in self.members)


def is_eligible(level: int, rows: int, blocks: int) -> bool:
    """Return whether blocks of one cube, in files of a level, make a block of the next level."""
    return rows >= 10 ** (level + 1) and blocks > 1


def file_level(file: IndexFile) -> int | None:
    """Return the power of ten of a file's largest block, None for a file without rows."""
    largest = max((block.rows for block in file.blocks), default=0)
    # In integers: the floating-point logarithm of 10^15 - 1 is 15.
    return len(str(largest)) - 1 if largest > 0 else None


def eligible_groups(files: Iterable[IndexFile], space: CubeSpace) -> list[BlockGroup]:
    """Return the groups that make a block of the next level, in the order in which they are rewritten.

    Low levels first, because that is cheap and feeds the next ones; then cubes near the root, whose rewrite moves rows
    down to cubes that are rewritten later; then few blocks. `files` are one revision's, in any order.
    """
    found: defaultdict[tuple[int, str], list[tuple[IndexFile, Block]]] = defaultdict(list)
    for file in files:
        level = file_level(file)
        for block in file.blocks:
            if level is not None and block.rows > 0:
                found[level, block.cube].append((file, block))
    groups = (
        BlockGroup(level, cube, _members(blocks))
        for (level, cube), blocks in found.items()
        if is_eligible(level, sum(block.rows for _, block in blocks), len(blocks))
    )
    return sorted(groups, key=lambda group: _order(group, space))


def _members(blocks: Iterable[tuple[IndexFile, Block]]) -> tuple[GroupMember, ...]:
    """Return the files of blocks by path, with what each has of them."""
    members: dict[str, GroupMember] = {}
    for file, block in blocks:
        known = members.get(file.path, GroupMember(file, 0, 0))
        members[file.path] = GroupMember(file, known.rows + block.rows, known.blocks + 1)
    return tuple(members[path] for path in sorted(members))


def _order(group: BlockGroup, space: CubeSpace) -> tuple[int, int, int, CubeOrder]:
    return group.level, space.depth(group.cube), group.blocks, cube_order(group.cube)
