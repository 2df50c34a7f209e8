"""Leveled compaction of a Qbeast index: which files one iteration rewrites, within a budget of bytes.

The groups of the lowest level are taken in order while their files fit. The first group that does not fit ends the
selection: to skip it would rewrite a cube before its ancestors, and its rows once more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.groups import BlockGroup, eligible_groups, is_eligible

FIRST_GROUP_ONLY = 0
"""The budget with which an iteration takes exactly the first group."""

DEFAULT_BUDGET_BYTES = 1_000_000_000
"""Bytes of one iteration, by the documents of the Unified Storage Engine."""


@dataclass(frozen=True, slots=True)
class IndexBudget:
    """Bytes of one iteration: `bytes` is aimed at (0: the first group, whatever its size), `max_bytes` never exceeded.

    A group that cannot shrink below `max_bytes` is blocked; None: no group is.
    """

    bytes: int = DEFAULT_BUDGET_BYTES
    max_bytes: int | None = None

    @property
    def fitting(self) -> int | None:
        """Bytes that a selection keeps to where it can, None for any."""
        limits = [one for one in (self.bytes or None, self.max_bytes) if one is not None]
        return min(limits, default=None)


@dataclass(frozen=True, slots=True)
class LeveledSelection:
    """Files of one iteration, each once, in the order in which their groups come.

    level: of all its groups, -1 where there are none. cubes: those that the groups merge. blocked: groups that exceed
    the hard limit. is_oversized: even the least useful part of the first group is beyond the budget.
    """

    files: tuple[IndexFile, ...] = ()
    level: int = -1
    cubes: tuple[str, ...] = ()
    blocked: tuple[BlockGroup, ...] = ()
    is_oversized: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files, spelled as in the log."""
        return tuple(file.path for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of the files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def rows(self) -> int:
        """Rows of the files."""
        return sum(file.rows for file in self.files)


def select_leveled(files: Iterable[IndexFile], space: CubeSpace, budget: IndexBudget) -> LeveledSelection:
    """Return the files of the next iteration; none where the revision is done.

    `files` are all live files that are indexed under one revision, from one snapshot; the order does not matter.
    """
    groups = eligible_groups(files, space)
    blocked = tuple(group for group in groups if _is_blocked(group, budget))
    groups = [group for group in groups if group not in blocked]
    if not groups:
        return LeveledSelection(blocked=blocked)
    lead, fitting = groups[0], budget.fitting
    if fitting is not None and lead.bytes > fitting:
        part = _eligible_part(lead, fitting)
        return LeveledSelection(part, lead.level, (lead.cube,), blocked, sum(f.size_bytes for f in part) > fitting)
    if budget.bytes == FIRST_GROUP_ONLY:
        return LeveledSelection(tuple(m.file for m in lead.members), lead.level, (lead.cube,), blocked)
    return _accumulated([group for group in groups if group.level == lead.level], fitting, blocked)


def _accumulated(
    groups: Sequence[BlockGroup], fitting: int | None, blocked: tuple[BlockGroup, ...]
) -> LeveledSelection:
    chosen: dict[str, IndexFile] = {}
    cubes: list[str] = []
    total = 0
    for group in groups:
        more = {m.file.path: m.file for m in group.members if m.file.path not in chosen}
        total += sum(file.size_bytes for file in more.values())
        if fitting is not None and total > fitting:
            break
        chosen |= more
        cubes.append(group.cube)
    return LeveledSelection(tuple(chosen.values()), groups[0].level, tuple(cubes), blocked)


def _is_blocked(group: BlockGroup, budget: IndexBudget) -> bool:
    if budget.max_bytes is None:
        return False
    return sum(file.size_bytes for file in _eligible_part(group, 0)) > budget.max_bytes


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
