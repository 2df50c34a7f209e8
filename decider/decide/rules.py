"""Rules of others as they document them: what each would rewrite in a cell, given the files that lie there.

Each rule is told our target, where its own default would be another one, so that what differs is the rule and not the
size. All of them leave files of 0.75 x target alone, which is kinder than Delta's defaults. None is made up: the
source stands with each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decider.decide.history import Merge, ReplayedCell
from decider.decide.peers import next_fit
from shared.policy import Policy
from shared.table import DataFile

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Look:
    """One look of a rule at a cell: the policy's target, the time, and when the rule last rewrote this cell."""

    cell: ReplayedCell
    policy: Policy
    at_ms: int
    rewritten_ms: int | None

    def below(self, limit_bytes: int) -> list[DataFile]:
        """Return the cell's files below a size, ascending."""
        return sorted((f for f in self.cell.small.values() if f.size_bytes < limit_bytes), key=_by_size)


@dataclass(frozen=True, slots=True)
class PeerRule:
    """A rule: `wants` answers from counters the rule has anyway, `propose` from a listing, which counts as a scan.

    `every_ms`: the rule looks at the cells that changed only so often; 0: after each commit.
    """

    name: str
    title: str
    source: str
    propose: Callable[[Look], list[Merge]]
    wants: Callable[[Look], bool] = lambda _look: True
    every_ms: int = 0


def _by_size(file: DataFile) -> tuple[int, str]:
    return file.size_bytes, file.path


def _fold(files: Sequence[DataFile], target_bytes: int) -> list[Merge]:
    """Pack ascending files next-fit into outputs of at most the target; a file alone is left as it is."""
    merges: list[Merge] = []
    position = 0
    for packed in next_fit([file.size_bytes for file in files], target_bytes):
        if len(packed) > 1:
            merges.append(Merge(tuple(files[position : position + len(packed)]), (sum(packed),)))
        position += len(packed)
    return merges


def _optimize(look: Look) -> list[Merge]:
    return _fold(look.below(look.policy.ladder.full_bytes), look.policy.target_bytes)


AUTO_COMPACT_FILES = 50
"""Delta's `spark.databricks.delta.autoCompact.minNumFiles`."""


def _auto_wants(look: Look) -> bool:
    half = look.policy.target_bytes // 2
    small = look.cell.small
    return len(small) >= AUTO_COMPACT_FILES and sum(f.size_bytes < half for f in small.values()) >= AUTO_COMPACT_FILES


def _auto_compact(look: Look) -> list[Merge]:
    return _fold(look.below(look.policy.target_bytes // 2), look.policy.target_bytes)


ICEBERG_MIN_INPUTS = 5
"""Iceberg's `min-input-files` of rewrite_data_files."""


def _iceberg(look: Look) -> list[Merge]:
    files = look.below(look.policy.ladder.full_bytes)
    total, target = sum(file.size_bytes for file in files), look.policy.target_bytes
    if len(files) < ICEBERG_MIN_INPUTS and not (len(files) > 1 and total > target):
        return []
    return [Merge(tuple(files), _even_outputs(total, target))]


def _even_outputs(total: int, target: int) -> tuple[int, ...]:
    """Split a group as Iceberg does: a remainder of 0.75 x target is a file, a small one is spread over the others."""
    whole, rest = divmod(total, target)
    spreads = whole > 0 and (rest == 0 or total * 10 <= whole * target * 11)
    count = whole if spreads and 4 * rest < 3 * target else whole + 1
    return tuple(total // count + (1 if index < total % count else 0) for index in range(count))


FOLD_AT = 100
"""AWS Glue's minimum of input files for automatic compaction."""


def _fold_100(look: Look) -> list[Merge]:
    files = look.below(look.policy.ladder.full_bytes)
    total, target = sum(file.size_bytes for file in files), look.policy.target_bytes
    return [Merge(tuple(files), _even_outputs(total, target))] if len(files) >= FOLD_AT else []


AMORO_MINOR_FILES = 12
"""Amoro's `self-optimizing.minor.trigger.file-count`."""

AMORO_FRAGMENT_RATIO = 8
"""Amoro's `self-optimizing.fragment-ratio`: files up to target / 8 are fragments, larger ones segments."""


def _amoro(look: Look) -> list[Merge]:
    target = look.policy.target_bytes
    files = look.below(look.policy.ladder.full_bytes)
    fragments = [file for file in files if file.size_bytes * AMORO_FRAGMENT_RATIO <= target]
    segments = files[len(fragments) :]
    has_content = sum(file.size_bytes for file in segments) >= target
    if has_content and len(segments) > 1 and segments[0].size_bytes + segments[1].size_bytes <= target:
        return _fold(files, target)
    waited = look.rewritten_ms is None or look.at_ms - look.rewritten_ms >= HOUR_MS
    if len(fragments) >= AMORO_MINOR_FILES or (len(fragments) > 1 and waited):
        return _fold(fragments, target)
    return []


def _mse_wants(look: Look) -> bool:
    """MSE of all files at or above (0.15 T)^2, as published for AutoOptimize; from rolling state, without a listing."""
    bound = look.policy.tolerance * look.policy.target_bytes
    state = look.cell.state
    return len(look.cell.small) > 1 and (state.shortfall * bound.denominator**2 >= state.files * bound.numerator**2)


PEERS: tuple[PeerRule, ...] = (
    PeerRule(
        "delta_optimize_each",
        "Delta OPTIMIZE after each commit",
        "Delta, OptimizeExecutor.groupFilesIntoBins: ascending next-fit, bins of one file are left",
        _optimize,
    ),
    PeerRule(
        "delta_optimize_hourly",
        "Delta OPTIMIZE every hour",
        "the same rule from a timer, on the partitions that changed",
        _optimize,
        every_ms=HOUR_MS,
    ),
    PeerRule(
        "delta_auto_compaction",
        "Delta auto-compaction",
        "Delta, spark.databricks.delta.autoCompact: 50 files below half of maxFileSize, after a write",
        _auto_compact,
        _auto_wants,
    ),
    PeerRule(
        "iceberg_defaults",
        "Iceberg rewrite_data_files after each commit",
        "Iceberg, rewrite_data_files binpack: min-input-files 5, min-file-size 75 % of the target",
        _iceberg,
    ),
    PeerRule(
        "fold_100",
        "fold at 100 files (AWS Glue)",
        "AWS Glue Data Catalog, automatic compaction: 100 files below 75 % of the target",
        _fold_100,
        lambda look: len(look.cell.small) >= FOLD_AT,
    ),
    PeerRule(
        "amoro",
        "Amoro minor and major",
        "Amoro, CommonPartitionEvaluator: minor at 12 fragments or hourly, major at a target of mergeable segments",
        _amoro,
    ),
    PeerRule(
        "raw_mse",
        "raw entropy (MSE)",
        "AutoOptimize as published: MSE at or above (tolerance x target)^2, then every small file is folded",
        _optimize,
        _mse_wants,
    ),
)
