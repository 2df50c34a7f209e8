"""Leveled compaction of a Qbeast index: which files one iteration rewrites, within a budget of bytes.

The groups of the lowest level are taken in order while their files fit. The first group that does not fit ends the
selection: to skip it would rewrite a cube before its ancestors, and its rows once more.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.groups import BlockGroup, eligible_groups, is_eligible

FIRST_GROUP_ONLY = 0
"""The budget with which an iteration takes exactly the first group."""

DEFAULT_BUDGET_BYTES = 1_000_000_000
"""Bytes of one iteration, by the documents of the Unified Storage Engine."""


@dataclass(frozen=True, slots=True)
class LeveledSelection:
    """Files of one iteration, each once, in the order in which their groups come; `cubes`: those that are merged."""

    files: tuple[IndexFile, ...] = ()
    cubes: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files, spelled as in the log."""
        return tuple(file.path for file in self.files)


def select_leveled(files: Iterable[IndexFile], space: CubeSpace, budget_bytes: int) -> LeveledSelection:
    """Return the files of the next iteration; none where the revision is done.

    `files` are all live files that are indexed under one revision, from one snapshot; the order does not matter. A
    budget of 0 takes the first group, whatever its size.
    """
    groups = eligible_groups(files, space)
    if not groups:
        return LeveledSelection()
    lead = groups[0]
    if budget_bytes == FIRST_GROUP_ONLY:
        return LeveledSelection(tuple(member.file for member in lead.members), (lead.cube,))
    if lead.bytes > budget_bytes:
        return LeveledSelection(_eligible_part(lead, budget_bytes), (lead.cube,))
    chosen: dict[str, IndexFile] = {}
    cubes: list[str] = []
    total = 0
    for group in (one for one in groups if one.level == lead.level):
        more = {member.file.path: member.file for member in group.members if member.file.path not in chosen}
        total += sum(file.size_bytes for file in more.values())
        if total > budget_bytes:
            break
        chosen |= more
        cubes.append(group.cube)
    return LeveledSelection(tuple(chosen.values()), tuple(cubes))


def _eligible_part(group: BlockGroup, fitting: int) -> tuple[IndexFile, ...]:
    """Return the part of a group that is eligible with the fewest files, and more files as far as they fit."""
    part: list[IndexFile] = []
    rows = blocks = size_bytes = 0
    for member in sorted(group.members, key=lambda m: (-m.rows, m.file.size_bytes, m.file.path)):
        size_bytes += member.file.size_bytes
        if is_eligible(group.level, rows, blocks) and size_bytes > fitting:
            break
        part.append(member.file)
        rows, blocks = rows + member.rows, blocks + member.blocks
    return tuple(part)
