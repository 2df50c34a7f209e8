"""A plan is a value: which files become which outputs, decided on one snapshot of one cell, before anything runs.

Small files are taken in ascending size. The longest prefix that the promotion rule permits is chosen (smallest first
removes the most files per byte, and lets several levels carry in one rewrite); below the target it is one group, at
the target or more it is covered by several. Then it is chosen again among what is left, until nothing qualifies.

Planning on a plan's own output yields no work, so a job is never followed by another without a commit by others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from shared.cells import EMPTY_CELL, CellState, file_state
from shared.levels import FULL, SMALL_LEVELS, Ladder
from shared.packing import cover
from shared.policy import Policy
from shared.table import CellKey, DataFile
from shared.worth import Worth, judge, judge_settling

SETTLED_TAG = "lakewright.settled"
"""AddFile tag of a file with bytes that were settled once; they are not settled again, which bounds the settling."""


class Mode(StrEnum):
    """The label users see for what a file group does: minor stays below the top level of small files, major does not.

    `full`, `settle` and `purge` name rewrites that are asked for by a timer or a person rather than by the levels.
    """

    MINOR = "minor"
    MAJOR = "major"
    FULL = "full"
    SETTLE = "settle"
    PURGE = "purge"


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Inputs of one cell that become one output file, which carries `tags` in the log."""

    cell: CellKey
    files: tuple[DataFile, ...]
    mode: Mode
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def bytes(self) -> int:
        """Total size of the inputs in bytes."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Plan:
    """The file groups for one cell, with the state they were planned on and the one that is predicted after."""

    cell: CellKey
    worth: Worth
    groups: tuple[FileGroup, ...]
    before: CellState
    predicted: CellState

    @property
    def files_removed(self) -> int:
        """Predicted decrease of the number of files."""
        return self.before.files - self.predicted.files

    @property
    def files_replaced(self) -> int:
        """Number of input files over all groups."""
        return sum(len(group.files) for group in self.groups)

    @property
    def bytes(self) -> int:
        """Bytes to read, and at most to write."""
        return sum(group.bytes for group in self.groups)

    @property
    def entropy_removed(self) -> int:
        """Predicted decrease of the total squared shortfall, in bytes^2."""
        return self.before.shortfall - self.predicted.shortfall


def state_of(files: Iterable[DataFile], rungs: Ladder) -> CellState:
    """Recount a cell from its live files."""
    state = EMPTY_CELL
    for file in files:
        state += _state(file, rungs)
    return state


def plan(cell: CellKey, files: Sequence[DataFile], policy: Policy, before: CellState | None = None) -> Plan:
    """Plan one cell on its live files; a cell that is not worth a rewrite gets a plan without groups.

    The plan is empty exactly when `judge` says so of the cell's state. Who knows that state already passes it as
    `before`, and may then leave the full files out of `files`.
    """
    rungs = policy.ladder
    before = state_of(files, rungs) if before is None else before
    worth = judge(before, policy)
    if not worth.is_work:
        return Plan(cell, worth, (), before, before)
    chosen = _choose(_small(files, rungs), policy, rungs)
    groups = tuple(FileGroup(cell, tuple(inputs), _mode(inputs, rungs), _tags(inputs)) for inputs in chosen)
    return Plan(cell, worth, groups, before, _predict(before, groups, rungs))


def plan_settling(cell: CellKey, files: Sequence[DataFile], policy: Policy, before: CellState | None = None) -> Plan:
    """Plan the last merge of a cell that went quiet: all small files at once, whether or not they are promoted.

    Only files that hold no settled bytes take part, and the outputs, like whatever is made of them later, say that
    they were settled: so no byte is settled twice, however often its cell goes quiet.
    """
    rungs = policy.ladder
    before = state_of(files, rungs) if before is None else before
    worth = judge_settling(before, policy)
    small = [file for file in _small(files, rungs) if SETTLED_TAG not in file.tags] if worth.is_work else []
    tags = {SETTLED_TAG: "1"}
    groups = tuple(FileGroup(cell, tuple(inputs), Mode.SETTLE, tags) for inputs in _pack_all(small, policy))
    return Plan(cell, worth, groups, before, _predict(before, groups, rungs))


def _small(files: Iterable[DataFile], rungs: Ladder) -> list[DataFile]:
    small = [file for file in files if rungs.level(file.size_bytes) < FULL]
    small.sort(key=lambda file: (file.size_bytes, file.path))
    return small


def _tags(inputs: Iterable[DataFile]) -> dict[str, str]:
    return {SETTLED_TAG: "1"} if any(SETTLED_TAG in file.tags for file in inputs) else {}


def _pack_all(small: Sequence[DataFile], policy: Policy) -> list[list[DataFile]]:
    """Cover as many outputs as can be, and merge what is left if it is more than one file."""
    bins, left = cover([file.size_bytes for file in small], policy.target_bytes)
    indices = [sorted(taken) for taken in bins] + ([left] if len(left) > 1 else [])
    return [[small[index] for index in taken] for taken in indices]


def _choose(small: list[DataFile], policy: Policy, rungs: Ladder) -> list[list[DataFile]]:
    """Choose groups until no prefix of what is left is permitted; `small` ascends by size."""
    groups: list[list[DataFile]] = []
    while True:
        prefix = _permitted_prefix(small, policy, rungs)
        if not prefix:
            return groups
        chosen, rest = small[:prefix], small[prefix:]
        if sum(file.size_bytes for file in chosen) < policy.target_bytes:
            groups.append(chosen)
            small = rest
            continue
        bins, left = cover([file.size_bytes for file in chosen], policy.target_bytes)
        groups.extend([chosen[index] for index in sorted(indices)] for indices in bins)
        small = [chosen[index] for index in left] + rest


def _permitted_prefix(small: Sequence[DataFile], policy: Policy, rungs: Ladder) -> int:
    """Return the length of the longest permitted prefix; it always ends at the end of a level."""
    counts, sizes = [0] * SMALL_LEVELS, [0] * SMALL_LEVELS
    for file in small:
        level = rungs.level(file.size_bytes)
        counts[level] += 1
        sizes[level] += file.size_bytes
    highest = rungs.highest_promotable(counts, sizes, policy.min_input_files)
    return 0 if highest is None else sum(counts[: highest + 1])


def _mode(inputs: Sequence[DataFile], rungs: Ladder) -> Mode:
    top = max(rungs.level(file.size_bytes) for file in inputs)
    return Mode.MAJOR if top >= SMALL_LEVELS - 1 else Mode.MINOR


def _predict(before: CellState, groups: Iterable[FileGroup], rungs: Ladder) -> CellState:
    state = before
    for group in groups:
        for file in group.files:
            state -= _state(file, rungs)
        state += file_state(rungs, group.bytes)
    return state


def _state(file: DataFile, rungs: Ladder) -> CellState:
    return file_state(rungs, file.size_bytes, has_dv=file.dv_id is not None, deleted_rows=file.deleted_rows)
