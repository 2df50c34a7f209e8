"""The values of a decision: what made a partition be evaluated, what was decided, why, and from which numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from decider.decide.calibration import UNCALIBRATED, Calibration
from shared.index.signal import IndexSignal
from shared.jobs.payload import RewriteKind
from shared.layout.cells.counts import CellFiles
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.eligibility import DecisionReason
from shared.layout.key_runs import NO_KEY_RUNS, KeyRuns
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.layout.removals import NO_REMOVALS, Removals
from shared.layout.upkeep import UpkeepFound
from shared.queue.model import Band
from shared.table import Commit, PartitionColumn, PartitionKey


class TriggerSource(StrEnum):
    """The cause of an evaluation."""

    DATA_CHANGE = "data_change"
    OWN_REWRITE = "own_rewrite"
    FOREIGN_REWRITE = "foreign_rewrite"
    REBUILD = "rebuild"
    TIMER = "timer"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Cause of an evaluation of a partition at a version of its table, and its data beyond the partition's numbers.

    purgeable: files known to be rewritten even alone. closed_ms: with time windows, those that ended by then are
    compacted (None: all). band: the one requested (None: the policy's). is_forced: a person overrides switch and
    tolerance; is_custom: a person set the terms of this run, which take precedence over an event at this version.
    commits: how many changed data in the partition until then, this one included; 0 where none is counted.
    is_deletes_due: the commit took the files with deletes of the partition to a number that requests a full rewrite.
    """

    version: int
    source: TriggerSource = TriggerSource.REBUILD
    rewrite_kind: RewriteKind = RewriteKind.LEVELS
    purgeable: int = 0
    closed_ms: int | None = None
    band: Band | None = None
    is_forced: bool = False
    is_custom: bool = False
    commits: int = 0
    is_deletes_due: bool = False


def commit_trigger(commit: Commit, purgeable: int = 0, commits: int = 0, *, is_deletes_due: bool = False) -> Trigger:
    """Return the trigger that a commit is; our mark on a commit that changes data is forged and not believed."""
    if commit.data_change:
        return Trigger(
            commit.version,
            TriggerSource.DATA_CHANGE,
            purgeable=purgeable,
            commits=commits,
            is_deletes_due=is_deletes_due,
        )
    is_own = commit.origin is not None
    return Trigger(commit.version, TriggerSource.OWN_REWRITE if is_own else TriggerSource.FOREIGN_REWRITE)


@dataclass(frozen=True, slots=True)
class TableSignals:
    """Inputs of decisions about a whole table, beside its policy and the time.

    checkpoint: version of the table's newest checkpoint, -1 if it has none; None where it is not known.
    new_commits: how many commits led to this version since the signals were evaluated last; timers alone depend on it.
    key_runs: which rows were added and compared by their keys. clustered: files of a clustered table,
    cells: of one in cells; None for others.
    index: an index on several columns, where it was read; None elsewhere.
    upkeep: what the newest metadata were found to need, by the kind of job, as far as it was read and is known.
    twins: other names of the table, whose metadata may need any of its files.
    """

    version: int
    removals: Removals = NO_REMOVALS
    checkpoint: int | None = None
    new_commits: int = 0
    key_runs: KeyRuns = NO_KEY_RUNS
    clustered: ClusteredFiles | None = None
    cells: CellFiles | None = None
    index: IndexSignal | None = None
    upkeep: Mapping[str, UpkeepFound] = field(default_factory=dict, hash=False)
    twins: tuple[str, ...] = ()


class DecisionKind(StrEnum):
    """Outcome of a decision: no job, a job, or a job that waits for the table's writers first."""

    SKIP = "skip"
    ENQUEUE = "enqueue"
    DEFER = "defer"


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted effect of a job: files replaced and removed, bytes read, benefit in files.

    `state_removed` and `state_bytes` follow from the partition's state alone; `files_removed`, `bytes` and `benefit`
    are calibrated by what was measured on the table, see `calibrate_prediction`.
    """

    files_replaced: int
    files_removed: int
    bytes: int
    benefit: Fraction
    state_removed: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class RefusedPart:
    """Files of a partition that actors refused: what they add to its state; `is_held`: it gets no job until later."""

    stats: PartitionStats = EMPTY_STATS
    is_held: bool = False


NOTHING_REFUSED = RefusedPart()
"""The value of nearly every partition."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about one partition for one action; the ledger keeps all of it.

    action: kind of job that it is about. purgeable: files known to be rewritten even alone, 0 where the decision does
    not rest on them. busy_ratio: share of the last hour in which MERGE, UPDATE and DELETE ran in the partition, where
    it mattered. columns: what the policy's filter was evaluated with, where it has one. signals: what a decision about
    a whole table rests on; None for one about a partition. options: its job's. refused: the part of the
    state that was not counted.
    """

    partition: PartitionKey
    verdict: DecisionKind
    reason: DecisionReason
    state: PartitionStats
    trigger: Trigger
    prediction: Prediction | None = None
    purgeable: int = 0
    calibration: Calibration = UNCALIBRATED
    busy_ratio: Fraction = Fraction(0)
    columns: tuple[PartitionColumn, ...] = ()
    action: str = field(kw_only=True)
    signals: TableSignals | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    refused: RefusedPart = NOTHING_REFUSED

    @property
    def version(self) -> int:
        """Version of the table that was decided about."""
        return self.trigger.version

    @property
    def rewrite_kind(self) -> RewriteKind:
        """Extent of the rewrite that was decided about."""
        return self.trigger.rewrite_kind
