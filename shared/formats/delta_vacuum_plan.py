"""The plan of one vacuum of a Delta table: what decider (dry run) and actor (run) read becomes what is deleted, alike.

Both read in one order, so that listing and log are of the same moment: the store is listed first, if at all, and then
the log. A file that was committed before the listing is in the log that is read.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from shared.errors import InvalidInput
from shared.formats.delta_orphans import Kept, OwnFolders, orphan_cutoff_ms, orphan_verdict
from shared.formats.delta_references import FileReference
from shared.formats.delta_vacuum import (
    LoggedCommit,
    NeededFiles,
    Tombstone,
    knows_removals_since,
    needed_files,
    removed_files,
)
from shared.formats.retention import reclaims, retention_of_run_ms, set_retention_s
from shared.formats.table_marks import NO_ORPHANS, shared_folder
from shared.jobs.options import VacuumOptions
from shared.paths.stored_file import StoredFile
from shared.policy.parsers import interval
from shared.policy.policy import Policy
from shared.table import TableMetadata

RETENTION = "delta.deletedFileRetentionDuration"
"""Delta's property: how long a removed file is kept at least."""

DEFAULT_RETENTION_S = 7 * 86_400
"""Delta's default of it."""

LOG_RETENTION = "delta.logRetentionDuration"
"""Delta's property: how long commits are kept that a checkpoint covers."""

DEFAULT_LOG_RETENTION_S = 30 * 86_400
"""Delta's default of it."""


def retention_ms(policy: Policy, metadata: TableMetadata, options: VacuumOptions) -> int:
    """Return the retention of a vacuum in milliseconds, see `retention_of_run_ms`."""
    return retention_of_run_ms(policy, options, metadata.configuration, own_retention_s)


def own_retention_s(configuration: Mapping[str, str]) -> int:
    """Return how long a table keeps removed files by its own properties: the longest that any of them sets.

    Delta's default does not count where they say when files are reclaimed. Raises InvalidInput for one that cannot be
    read.
    """
    if RETENTION not in configuration and reclaims(configuration):
        return set_retention_s(configuration)
    return max(set_retention_s(configuration), tombstone_retention_s(configuration))


def tombstone_retention_s(configuration: Mapping[str, str]) -> int:
    """Return how long Delta keeps removed files of a table; raises InvalidInput where that cannot be read."""
    spelled = configuration.get(RETENTION)
    try:
        return DEFAULT_RETENTION_S if spelled is None else interval(spelled)
    except ValueError as problem:
        raise InvalidInput(f"{RETENTION} = {spelled!r} cannot be read: {problem}", field=RETENTION) from problem


def log_retention_ms(policy: Policy, metadata: TableMetadata) -> int | None:
    """Return for how many milliseconds commits are kept that a checkpoint covers, None for ever.

    None are deleted where files are kept longer, because without its commit no version can be read, nor where a
    retention cannot be read. Where `reclaim-after` is set, and Delta's own property is not, they are kept as files are.
    """
    configuration = metadata.configuration
    spelled = configuration.get(LOG_RETENTION)
    try:
        files_ms = retention_ms(policy, metadata, VacuumOptions())
        if spelled is None and reclaims(configuration):
            return files_ms
        log_ms = 1000 * (DEFAULT_LOG_RETENTION_S if spelled is None else interval(spelled))
    except (ValueError, InvalidInput):
        return None
    return log_ms if files_ms <= log_ms else None


@dataclass(frozen=True, slots=True)
class VacuumInputs:
    """Inputs of a vacuum: the version that was read, and the listing of its store, None if it was not listed."""

    version: int
    columns: tuple[str, ...]
    live: Sequence[FileReference]
    tombstones: Sequence[Tombstone]
    commits: Sequence[LoggedCommit]
    listing: Sequence[StoredFile] | None = None


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """Files to delete: those removed by name with their size in bytes (0: unknown), and orphans; and why others stay.

    covers_version: the version up to which no removed file is left after this vacuum; covered_before: up to which none
    was left before it. needed: names that must stay. left_out: why no orphans are searched for, empty if they are.
    """

    version: int
    cutoff_ms: int
    removed: Mapping[str, int]
    orphans: tuple[StoredFile, ...]
    covered_before: int
    covers_version: int
    needed: NeededFiles
    kept: Mapping[Kept, int] = field(default_factory=dict)
    left_out: str = ""

    @property
    def files(self) -> int:
        """Number of files to delete at most."""
        return len(self.removed) + len(self.orphans)


def plan_vacuum(inputs: VacuumInputs, retain_ms: int, now_ms: int) -> VacuumPlan:
    """Plan a vacuum that keeps all that was removed in the last `retain_ms` before `now_ms`."""
    cutoff_ms = now_ms - retain_ms
    needed = needed_files(inputs.live, inputs.tombstones, inputs.commits, cutoff_ms)
    removed = removed_files(inputs.commits, inputs.tombstones, needed, cutoff_ms)
    kept: Counter[Kept] = Counter()
    left_out = ""
    orphans: list[StoredFile] = []
    if inputs.listing is not None:
        knows_all = knows_removals_since(inputs.commits, cutoff_ms)
        folders = OwnFolders.of((file.name for file in inputs.listing), inputs.columns, _named(inputs))
        if folders.shared_with:
            left_out = f"{NO_ORPHANS}: {shared_folder(folders.shared_with)}"
        young_ms = orphan_cutoff_ms(cutoff_ms, now_ms)
        for file in inputs.listing:
            verdict = orphan_verdict(file, needed, removed, folders, young_ms)
            if verdict is None and knows_all:
                orphans.append(file)
            else:
                kept[verdict or Kept.UNKNOWN] += 1
    covered = [one.version for one in inputs.commits if one.time_ms < cutoff_ms]
    before = max((one.covers_version for one in inputs.commits), default=-1)
    covers_version = max(before, *covered[-1:], -1)
    return VacuumPlan(
        inputs.version, cutoff_ms, removed, tuple(orphans), before, covers_version, needed, kept, left_out
    )


def _named(inputs: VacuumInputs) -> Iterator[str]:
    """Yield the names of all files that the log knows, by relative paths."""
    references = chain(
        inputs.live,
        (one.reference for one in inputs.tombstones),
        (one for commit in inputs.commits for one in (*commit.added, *commit.removed, *commit.changes)),
    )
    return (name for one in references for name, _ in one.own)
