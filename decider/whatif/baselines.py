"""Rules of other tools, according to their sources: what each would rewrite in a partition, given its files.

Each rule gets our target, where its own default would be another one, so that what differs is the rule and not the
size. What a rule does beyond sizes (deletion vectors, position deletes) is left out, because a replay knows sizes only;
that favors them. Each names its source.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from decider.whatif.trace import SimulatedMerge, SimulatedPartition
from shared.policy.policy import Policy
from shared.table import DataFile

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """A partition as a rule sees it: the policy's target, the time, and the rule's last rewrite in this table."""

    partition: SimulatedPartition
    policy: Policy
    at_ms: int
    rewritten_ms: int | None

    @property
    def target_bytes(self) -> int:
        """The size in bytes that files should reach."""
        return self.policy.target_bytes

    def below(self, limit_bytes: int) -> list[DataFile]:
        """Return the partition's files below a size that is at most the target, ascending."""
        files = [file for file in self.partition.small.values() if file.size_bytes < limit_bytes]
        if limit_bytes > self.policy.size_levels.full_bytes:
            files += [file for file in self.partition.nearly.values() if file.size_bytes < limit_bytes]
        return sorted(files, key=_by_size)


@dataclass(frozen=True, slots=True)
class BaselineRule:
    """A rule: `wants` answers from counters the rule has anyway, `propose` from a listing, which counts as a scan.

    every_ms: the rule reads the partitions that changed only so often; 0: after each commit. idle_ms: time without
    commits after which it reads every partition once more; None: it never does.
    """

    name: str
    title: str
    source: str
    propose: Callable[[ObservedPartition], list[SimulatedMerge]]
    wants: Callable[[ObservedPartition], bool] = lambda _observed: True
    every_ms: int = 0
    idle_ms: int | None = None


def _by_size(file: DataFile) -> tuple[int, str]:
    return file.size_bytes, file.path


def _fold(files: Sequence[DataFile], target_bytes: int) -> list[SimulatedMerge]:
    """Pack ascending files next-fit into outputs of at most the target; a file alone is left as it is."""
    merges: list[SimulatedMerge] = []
    position = 0
    for packed in next_fit([file.size_bytes for file in files], target_bytes):
        if len(packed) > 1:
            merges.append(SimulatedMerge(tuple(files[position : position + len(packed)]), (sum(packed),)))
        position += len(packed)
    return merges


def _optimize(observed: ObservedPartition) -> list[SimulatedMerge]:
    """Delta's OPTIMIZE: all files below `minFileSize`, ascending, next-fit into bins of at most `maxFileSize`.

    Source: Delta, `OptimizeExecutor.filterCandidateFileList` and `groupFilesIntoBins`; both sizes have the same default
    in `DeltaSQLConf` (`optimize.minFileSize`, `optimize.maxFileSize`, 1 GiB), so a file short of it is always taken
    again. Bins of one file are left.
    """
    return _fold(observed.below(observed.target_bytes), observed.target_bytes)


AUTO_COMPACT_FILES = 50
"""Delta's `spark.databricks.delta.autoCompact.minNumFiles`."""


def _auto_wants(observed: ObservedPartition) -> bool:
    half = observed.target_bytes // 2
    small = observed.partition.small
    return len(small) >= AUTO_COMPACT_FILES and sum(f.size_bytes <= half for f in small.values()) >= AUTO_COMPACT_FILES


def _auto_compact(observed: ObservedPartition) -> list[SimulatedMerge]:
    """Delta's auto-compaction: OPTIMIZE with `minFileSize` at half of `maxFileSize`, once 50 such files are there.

    Source: Delta, `AutoCompact.compact`, `AutoCompactPartitionStats`, and in `DeltaSQLConf` `autoCompact.minNumFiles`
    (50), `autoCompact.maxFileSize` (128 MiB), `autoCompact.minFileSize` (half of that). The count is kept by the
    driver without a listing; that each new driver compacts a partition once whatever its count is left out.
    """
    return _fold(observed.below(observed.target_bytes // 2), observed.target_bytes)


ICEBERG_MIN_INPUTS = 5
"""Iceberg's `min-input-files` of rewrite_data_files."""

ICEBERG_MIN_SIZE = Fraction(3, 4)
"""Iceberg's `min-file-size-bytes` as a share of the target: files from there on are left alone."""

ICEBERG_SPREAD = Fraction(11, 10)
"""By how much outputs may exceed the target for a small remainder to be spread over them."""


def _iceberg(observed: ObservedPartition) -> list[SimulatedMerge]:
    """Iceberg's rewrite_data_files (binpack): 5 files below 0.75 x target, or two that exceed the target together.

    Source: Iceberg, `SizeBasedFileRewritePlanner` (`enoughInputFiles`, `enoughContent`, `expectedOutputFiles`) and its
    defaults `min-input-files` 5, `min-file-size-bytes` 0.75 x target. Files above 1.8 x target, which it would split,
    are left out.
    """
    files = observed.below(math.ceil(ICEBERG_MIN_SIZE * observed.target_bytes))
    total = sum(file.size_bytes for file in files)
    if len(files) < ICEBERG_MIN_INPUTS and not (len(files) > 1 and total > observed.target_bytes):
        return []
    return [SimulatedMerge(tuple(files), _even_outputs(total, observed.target_bytes))]


def _even_outputs(total: int, target: int) -> tuple[int, ...]:
    """Split as `expectedOutputFiles` does: a large remainder is a file, a small one is spread over the others."""
    whole, rest = divmod(total, target)
    is_spread = whole > 0 and rest <= ICEBERG_MIN_SIZE * target and total // whole < ICEBERG_SPREAD * target
    count = whole if is_spread else whole + (rest > 0)
    return tuple(total // count + (1 if index < total % count else 0) for index in range(count))


FOLD_AT = 100
"""AWS Glue's `minInputFiles`."""


def _fold_100(observed: ObservedPartition) -> list[SimulatedMerge]:
    """AWS Glue's compaction of Iceberg tables: once 100 files of a partition lie below 0.75 x target.

    Source: AWS Glue, developer guide, Compaction optimization, and web API, IcebergCompactionConfiguration
    (`minInputFiles`, default 100); the guide says "more than 100". Outputs are taken to be Iceberg's.
    """
    files = observed.below(math.ceil(ICEBERG_MIN_SIZE * observed.target_bytes))
    total = sum(file.size_bytes for file in files)
    return [SimulatedMerge(tuple(files), _even_outputs(total, observed.target_bytes))] if len(files) >= FOLD_AT else []


AMORO_MINOR_FILES = 12
"""Amoro's `self-optimizing.minor.trigger.file-count`."""

AMORO_FRAGMENT_RATIO = 8
"""Amoro's `self-optimizing.fragment-ratio`: files up to target / 8 are fragments, larger ones segments."""

AMORO_MIN_SIZE = Fraction(3, 4)
"""Amoro's `self-optimizing.min-target-size-ratio`: segments up to there are undersized."""


def _amoro(observed: ObservedPartition) -> list[SimulatedMerge]:
    """Amoro: major at a target's worth of segments two of which fit in one, minor at 12 fragments or at 2 each hour.

    Source: Amoro, `CommonPartitionEvaluator.isMajorNecessary` and `isMinorNecessary`; `AbstractPartitionPlan` packs
    fragments and undersized segments apart, whichever asked, and `IcebergPartitionPlan` leaves single files. The
    hour (`self-optimizing.minor.trigger.interval`) counts for the whole table.
    """
    target = observed.target_bytes
    files = observed.below(math.floor(AMORO_MIN_SIZE * target) + 1)
    fragments = [file for file in files if file.size_bytes <= target // AMORO_FRAGMENT_RATIO]
    segments = files[len(fragments) :]
    has_content = sum(file.size_bytes for file in segments) >= target
    is_major = has_content and len(segments) > 1 and segments[0].size_bytes + segments[1].size_bytes <= target
    waited = observed.rewritten_ms is None or observed.at_ms - observed.rewritten_ms > HOUR_MS
    if is_major or len(fragments) >= AMORO_MINOR_FILES or (len(fragments) > 1 and waited):
        return [*_fold(segments, target), *_fold(fragments, target)]
    return []


def _mse_wants(observed: ObservedPartition) -> bool:
    """Return whether the MSE of all files is at or above (tolerance x T)^2, from rolling state, without a listing."""
    bound = observed.policy.tolerance * observed.policy.target_bytes
    state = observed.partition.state
    return len(observed.partition.small) > 1 and (
        state.shortfall * bound.denominator**2 >= state.files * bound.numerator**2
    )


def _fold_small(observed: ObservedPartition) -> list[SimulatedMerge]:
    """Merge all small files as soon as entropy alone triggers.

    Source of the trigger: Netflix, Optimizing data warehouse storage, 2020 (Partition Entropy); how files are chosen is
    published in words only, so this is the plainest reading, not their system.
    """
    return _fold(observed.below(observed.policy.size_levels.full_bytes), observed.target_bytes)


PEERS: tuple[BaselineRule, ...] = (
    BaselineRule(
        "delta_optimize_each",
        "Delta OPTIMIZE, each commit",
        "Delta, OptimizeExecutor and DeltaSQLConf: files below the target, next-fit, bins of one file are left",
        _optimize,
    ),
    BaselineRule(
        "delta_optimize_hourly",
        "Delta OPTIMIZE, hourly",
        "the same rule from a timer, on the partitions that changed",
        _optimize,
        every_ms=HOUR_MS,
        idle_ms=HOUR_MS,
    ),
    BaselineRule(
        "delta_auto_compaction",
        "Delta auto-compaction",
        "Delta, AutoCompact and DeltaSQLConf: 50 files of at most half of the target, after a write",
        _auto_compact,
        _auto_wants,
    ),
    BaselineRule(
        "iceberg_defaults",
        "Iceberg, each commit",
        "Iceberg, SizeBasedFileRewritePlanner: min-input-files 5, min-file-size-bytes 75% of the target",
        _iceberg,
    ),
    BaselineRule(
        "fold_100",
        "AWS Glue, at 100 files",
        "AWS Glue, IcebergCompactionConfiguration: minInputFiles 100, files below 75% of the target",
        _fold_100,
        lambda observed: len(observed.partition.small) >= FOLD_AT,
    ),
    BaselineRule(
        "amoro",
        "Amoro",
        "Amoro, CommonPartitionEvaluator: minor at 12 fragments or hourly, major at a target of mergeable segments",
        _amoro,
        idle_ms=HOUR_MS + 1,
    ),
    BaselineRule(
        "raw_mse",
        "raw entropy (MSE)",
        "Netflix, Optimizing data warehouse storage: MSE >= (tolerance x target)^2; every small file is folded",
        _fold_small,
        _mse_wants,
    ),
)


Added = Mapping[str, Sequence[int]]
"""One commit: partition to the sizes in bytes of the files it adds."""


def optimize_after_each_commit(commits: Iterable[Added], *, target_bytes: int) -> int:
    """Return the bytes that Delta's OPTIMIZE rewrites when it runs after every commit on the partitions it touched.

    Delta's rule (OptimizeExecutor, DeltaSQLConf): files below the target in ascending size, next-fit into bins of at
    most the target, bins of one file are left alone. Outputs are assumed to be as large as their inputs.
    """
    live: dict[str, list[int]] = defaultdict(list)
    rewritten = 0
    for commit in commits:
        for partition, sizes in commit.items():
            live[partition].extend(sizes)
            kept = [size for size in live[partition] if size >= target_bytes]
            for packed in next_fit(sorted(size for size in live[partition] if size < target_bytes), target_bytes):
                kept.append(sum(packed))
                rewritten += sum(packed) if len(packed) > 1 else 0
            live[partition] = kept
    return rewritten


def next_fit(ascending: Sequence[int], limit_bytes: int) -> list[list[int]]:
    """Pack ascending sizes in their order, opening a bin when the next one would exceed the limit, as Delta does."""
    bins: list[list[int]] = []
    total = 0
    for size in ascending:
        if not bins or total + size > limit_bytes:
            bins.append([])
            total = 0
        bins[-1].append(size)
        total += size
    return bins
