"""Eligibility of a partition: entropy decides whether a rewrite is large enough a gain, levels whether it is permitted.

The decider applies this to the rolling state, the actor to the live files, and both must get the same result; so the
rule depends on a `PartitionStats` alone, and needs neither a file list nor a clock.

Gain that merging still offers: files beyond those that would do, and the squared shortfall that would go with them.

This is entropy minus the best layout's of the same bytes, so one file alone has none, however small it is.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from shared.layout.partition_stats import PartitionStats
from shared.paths.data_paths import is_harmful
from shared.policy.levels import SMALL_LEVELS
from shared.policy.policy import Policy, PortablePaths
from shared.refusals import Explained
from shared.table import DataFile


class DecisionReason(Explained):
    """Base of the reasons of decisions; what is declared behind the sentence is the stage of the funnel."""

    @property
    def stage(self) -> str:
        """Stage of the funnel at which a decision for this reason ends; empty if it leads to a job."""
        return self.detail


class Reason(DecisionReason):
    """Why a partition was, or was not, given a rewrite."""

    OWN_COMMIT = (
        "own_commit",
        "The commit is a Lakewright rewrite: it updates the state and triggers nothing.",
        "partitions_rewritten",
    )
    NO_DATA_CHANGE = (
        "no_data_change",
        "The commit changes no data, such as another engine's compaction: it triggers nothing.",
        "partitions_rewritten",
    )
    DISABLED = "disabled", "Automatic optimization is disabled for this table.", "disabled"
    SWITCHED_OFF = "switched_off", "The table's properties do not switch this action on.", "disabled"
    NOT_FOR_FORMAT = (
        "not_for_format",
        "No actor can run this action on tables of this format, so its properties have no effect.",
        "disabled",
    )
    CLUSTERED_TABLE = (
        "clustered_table",
        "The table is clustered: only the action `cluster` rewrites it.",
        "disabled",
    )
    INDEXED_TABLE = (
        "indexed_table",
        "The table has a Qbeast index: only the action `index` rewrites its files.",
        "disabled",
    )
    FILTERED = "filtered", "The partition is excluded by the table's filter.", "filtered"
    DEFERRED_TO_WRITERS = (
        "deferred_to_writers",
        "MERGE, UPDATE or DELETE modify the partition, and the table's `dml-policy` is `never`.",
        "deferred_to_writers",
    )
    REFUSED = "refused", "A rewrite could damage the table, so it is refused.", "refused"
    REFUSED_FILES = (
        "refused_files",
        "Files of the partition are refused as they are, and the others need no rewrite; see `lakewright tables show`.",
        "refused",
    )
    NO_SMALL_FILES = (
        "no_small_files",
        "Fewer than two files are small, so there is nothing to merge.",
        "pruned_by_entropy",
    )
    ALREADY_COMPACTED = (
        "already_compacted",
        "Fewer than two small files remain for idle compaction; files already idle-compacted stay as they are.",
        "pruned_by_entropy",
    )
    WITHIN_TOLERANCE = "within_tolerance", "The expected gain per file is below the tolerance.", "pruned_by_entropy"
    NO_PROMOTION = (
        "no_promotion",
        "No group of files reaches the next level yet; a rewrite now would be repeated later.",
        "pruned_by_levels",
    )
    NO_NEIGHBORS = (
        "no_neighbors",
        "The files that the levels permit to merge are not neighbors in the order of the table.",
        "pruned_by_levels",
    )
    CLUSTERED = (
        "clustered",
        "The partition has files of a Z-cube; a merge would undo their clustering. Use OPTIMIZE ZORDER.",
        "refused",
    )
    ELIGIBLE = "eligible", "The expected gain exceeds the tolerance, and a file group reaches a higher level."
    TOO_MANY_SMALL_FILES = (
        "too_many_small_files",
        "The partition has more small files than `max-small-files`, which overrides the tolerance.",
    )
    REQUESTED = "requested", "Requested by a client."
    IDLE = (
        "idle",
        "The partition is idle, or `compact-interval` has passed: idle compaction merges each small file once.",
    )
    SINGLE_FILE_REWRITE = (
        "single_file_rewrite",
        "A file has many deleted rows, or a path that engines spell differently.",
    )
    FULL_REWRITE_DUE = "full_rewrite_due", "The interval between full rewrites has passed, and not all files are full."
    COMMIT_COUNT_REACHED = (
        "commit_count_reached",
        "The number of commits to the partition is a multiple of `compact-every-commits` or `full-every-commits`.",
    )
    DELETE_COUNT_REACHED = (
        "delete_count_reached",
        "The number of files with deletes in the partition has reached a multiple of `full-every-delete-files`.",
    )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The answer: `through_level` is the highest level to merge (None: no merge), `purges` the files to purge."""

    reason: DecisionReason
    through_level: int | None
    purges: int = 0

    @property
    def needs_rewrite(self) -> bool:
        """True if a plan for this state is not empty."""
        return self.through_level is not None or self.purges > 0


_CLUSTERED = Evaluation(Reason.CLUSTERED, None)


def evaluate_layout(state: PartitionStats, policy: Policy, purgeable: int = 0) -> Evaluation:
    """Evaluate whether a partition in this state is eligible under this policy, and up to which level.

    `purgeable` is the number of files known to be rewritten even alone (see `is_purgeable`); the rolling state cannot
    know them, because a removal does not contain the number of rows of its file.
    """
    if state.cube_files:
        return _CLUSTERED
    worth = _evaluate_merge(state, policy)
    if not purgeable:
        return worth
    return Evaluation(
        worth.reason if worth.needs_rewrite else Reason.SINGLE_FILE_REWRITE, worth.through_level, purgeable
    )


def is_purgeable(file: DataFile, policy: Policy) -> bool:
    """Return whether a file is to be rewritten even alone: for its deleted rows, or for a path that harms the table."""
    return _has_many_deletes(file, policy.delete_ratio_threshold) or has_harmful_path(file, policy.portable_paths)


def reaches_delete_files(before: PartitionStats, after: PartitionStats, policy: Policy) -> bool:
    """Return whether a commit took the files with deletes of a partition to a multiple of the policy's number.

    Not at every commit above the number: delete files that a rewrite leaves, because they apply to files of other
    partitions, too, would request another one for ever.
    """
    every = policy.full_every_delete_files
    return every is not None and after.files > 0 and after.dv_files // every > before.dv_files // every


def delete_step(deleted_rows: int) -> int:
    """Return the step that a number of deleted rows has reached: four of them to a factor of two.

    Which files the rows are of, only their metadata show; these are read once for each step, not for each commit.
    """
    bits = deleted_rows.bit_length()
    return 4 * bits + (deleted_rows << 2 >> max(0, bits - 1) & 3)


def has_harmful_path(file: DataFile, portable_paths: PortablePaths) -> bool:
    """Return whether a file is to leave a path that engines spell in different ways; our own outputs never have one."""
    return portable_paths is PortablePaths.ALWAYS and is_harmful(file.path)


def _has_many_deletes(file: DataFile, ratio: Fraction | None) -> bool:
    """Return whether a file's share of deleted rows reaches a ratio; never where its rows are not known."""
    return ratio is not None and bool(file.rows) and 0 < file.deleted_rows >= ratio * (file.rows or 0)


def _evaluate_merge(state: PartitionStats, policy: Policy) -> Evaluation:
    if state.small_files < 2:  # noqa: PLR2004 - a merge takes two
        return Evaluation(Reason.NO_SMALL_FILES, None)
    crowded = state.small_files > policy.max_small_files
    if not crowded and is_tolerable(state, policy.target_bytes, policy.tolerance):
        return Evaluation(Reason.WITHIN_TOLERANCE, None)
    parts = [state] if policy.time_window_s is None else [one for _, one in state.windows]
    levels = [level for part in parts if (level := highest_promotable_level(part, policy)) is not None]
    if not levels:
        return Evaluation(Reason.NO_PROMOTION, None)
    return Evaluation(Reason.TOO_MANY_SMALL_FILES if crowded else Reason.ELIGIBLE, max(levels))


def highest_promotable_level(part: PartitionStats, policy: Policy) -> int | None:
    """Return the highest level of a partition without windows, or of one window, up to which files may be merged."""
    inputs, levels = policy.min_input_files, policy.automatic_levels
    return policy.size_levels.highest_promotable(part.counts, part.sizes, inputs, levels=levels)


def evaluate_idle(state: PartitionStats, policy: Policy) -> Evaluation:
    """Evaluate whether an idle partition is eligible for the last merge of its small files, promoted or not.

    Exact: of the files that were never idle-compacted and lie below the policy's cap, two are always merged.
    """
    if state.cube_files:
        return _CLUSTERED
    if state.small_files < 2:  # noqa: PLR2004 - a merge takes two
        return Evaluation(Reason.NO_SMALL_FILES, None)
    if not has_idle_compaction_inputs(state, policy.automatic_levels):
        return Evaluation(Reason.ALREADY_COMPACTED, None)
    if is_tolerable(state, policy.target_bytes, policy.tolerance):
        return Evaluation(Reason.WITHIN_TOLERANCE, None)
    return Evaluation(Reason.IDLE, policy.automatic_levels - 1)


def has_idle_compaction_inputs(state: PartitionStats, levels: int) -> bool:
    """Return whether two files of the first levels were never idle-compacted."""
    return state.idle_compaction_inputs(levels) >= 2  # noqa: PLR2004 - a merge takes two


def evaluate_full(state: PartitionStats) -> Evaluation:
    """Return whether a full rewrite would find anything: several small files, or deleted rows."""
    if state.cube_files:
        return _CLUSTERED
    merges = state.small_files >= 2  # noqa: PLR2004 - a merge takes two
    if not merges and not (state.files and state.dv_files):  # Delete files may outlive all data files.
        return Evaluation(Reason.NO_SMALL_FILES, None)
    return Evaluation(Reason.FULL_REWRITE_DUE, SMALL_LEVELS - 1 if merges else None, state.dv_files)


def is_tolerable(state: PartitionStats, target_bytes: int, tolerance: Fraction) -> bool:
    """Return whether the removable shortfall per file lies below (tolerance x T)^2, in exact integers.

    All files count, so a few small ones among many full ones are left alone, although they could be merged.
    """
    bound = tolerance.numerator * target_bytes
    excess = state.excess(target_bytes)
    return excess * tolerance.denominator**2 < state.files * bound**2


@dataclass(frozen=True, slots=True)
class Excess:
    """Excess of one partition, or of many added up; the files of two partitions cannot be merged.

    files: live files beyond the best layout's; shortfall: the squared shortfall (bytes^2) that it would remove.
    """

    files: int = 0
    shortfall: int = 0

    @staticmethod
    def of(partitions: Iterable[PartitionStats], target_bytes: int) -> "Excess":
        """Add up what each of these partitions has; a merge would undo the clustering of a Z-cube, so there is none."""
        found = [one for one in partitions if not one.cube_files]
        return Excess(
            sum(one.spare_files(target_bytes) for one in found), sum(one.excess(target_bytes) for one in found)
        )

    def __add__(self, other: "Excess") -> "Excess":
        return Excess(self.files + other.files, self.shortfall + other.shortfall)

    def __sub__(self, other: "Excess") -> "Excess":
        return Excess(self.files - other.files, self.shortfall - other.shortfall)

    def ratio(self, files: int, target_bytes: int) -> float:
        """Return the root of the excess per file as a share of the target: 0 is as compact as possible, 1 is worst."""
        # Division of integers is rounded once, whatever their size.
        return math.sqrt(max(0, self.shortfall) / files) / target_bytes if files else 0.0


NO_EXCESS = Excess()
