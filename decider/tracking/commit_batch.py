"""A batch: commits of one table on their way into the store, with the decisions that follow from each of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from decider.decide import ledger
from decider.decide.decision import Decision, DecisionKind, corrected, decide, decide_numbers, heed, priority
from decider.decide.timers import timers_after_commit, timers_after_rewrite
from decider.state.batch_files import BatchFiles
from decider.state.contention import WriteContention
from decider.state.fold import FoldedCommit, merged_in
from decider.store.ingest import StateUpdate
from decider.store.table_state import PartitionStates
from shared.job_payload import COMPACT, JobPayload, PredictedCost
from shared.layout.eligibility import Reason, is_purgeable
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.path_keys import PathKey, path_key
from shared.policy import Policy
from shared.properties import is_switched_off, terms
from shared.queue.limits import MAX_TIMERS
from shared.queue.model import AT_ONCE, Band, Debounce, JobKey, JobRequest, Timer
from shared.table import Commit, PartitionKey, TableMetadata, TableRef

COOLING = Debounce(quiet_ms=600_000, max_delay_ms=2 * 3_600_000)
"""A job for a hot cell waits for ten minutes without another such commit, and two hours at most: a cell that is worked
on all day is rewritten, too."""


@dataclass(frozen=True, slots=True)
class DecidedBatch:
    """What a batch writes; not `is_possible`: the log removed what the state never held, so nothing may be written."""

    step: StateUpdate
    is_possible: bool


class CommitBatch:
    """Commits folded but not yet ingested, in order."""

    def __init__(self, table: TableRef, policy: Policy, metadata: TableMetadata) -> None:
        self.table = table
        self.policy = policy
        self.rungs = policy.ladder
        self.changes = 0
        self.files = BatchFiles()
        self._metadata = metadata
        self._columns = metadata.partition_columns
        self._folded: list[tuple[Commit, FoldedCommit]] = []
        self._aborts = 0

    def __len__(self) -> int:
        return len(self._folded)

    def add(self, commit: Commit, folded: FoldedCommit, *, aborts: int = 0) -> None:
        """Take one more commit with its fold, and the aborts of our making that it hints at."""
        self._aborts += aborts
        self._folded.append((commit, folded))
        self.changes += len(folded.changes)

    @property
    def cells(self) -> tuple[PartitionKey, ...]:
        """Every cell that a commit of this batch touches, each once."""
        return tuple(dict.fromkeys(cell for _, folded in self._folded for cell in folded.changes))

    def decide(self, known: PartitionStates, heat: WriteContention, at_ms: int) -> DecidedBatch:
        """Apply the folds to the stored states in order and decide about each touched cell after each commit.

        heat: that of the table after the last of the commits.
        """
        current = dict(known.cells)
        policy = known.calibration.learned(self.policy)
        decisions: list[Decision] = []
        is_possible = True
        for commit, folded in self._folded:
            for cell, change in folded.changes.items():
                current[cell] = (current.get(cell, EMPTY_STATS) + change).plausible()
                is_possible = is_possible and current[cell].is_possible
                heavy = sum(is_purgeable(file, self.policy) for file in folded.with_deletes.get(cell, ()))
                made = decide(cell, current[cell], policy, commit, heavy, self._columns)
                decisions.append(heed(corrected(made, known.calibration), heat.share(cell, at_ms), policy))
        jobs = self._jobs(decisions, current, policy)
        slots = {job.key.cell: index for index, job in enumerate(jobs)}
        lines = [
            (ledger.encode(made, policy, at_ms), slots.get(made.cell, -1) if made.prediction else -1)
            for made in decisions
        ]
        cells: dict[str, str | None] = {
            cell: state.encode() if state.files else None for cell, state in current.items()
        }
        timers = tuple(islice(self._timers(current, at_ms), MAX_TIMERS))
        return DecidedBatch(StateUpdate(cells, jobs, lines, self._counters(decisions), timers=timers), is_possible)

    def _timers(self, current: Mapping[PartitionKey, PartitionStats], at_ms: int) -> Iterator[Timer]:
        """What becomes of the timers of each touched cell; those that only spare a look come last."""
        changed = {cell for commit, folded in self._folded if commit.data_change for cell in folded.changes}
        for cell, state in current.items():
            if cell in changed:
                yield from timers_after_commit(cell, state, self.policy, at_ms, self._columns)
        rewritten: dict[PartitionKey, set[int]] = {}
        for commit, _ in self._folded:
            for cell, windows in merged_in(commit, self.policy).items():
                rewritten.setdefault(cell, set()).update(windows)
        for cell, state in current.items():
            if cell not in changed or cell in rewritten:
                yield from timers_after_rewrite(cell, state, self.policy, rewritten.get(cell, ()))

    def _jobs(
        self, decisions: Sequence[Decision], current: Mapping[PartitionKey, PartitionStats], policy: Policy
    ) -> list[JobRequest]:
        """One job per cell that was asked for, for what is left after the last commit; none where nothing is."""
        heavy = self._heavy()
        jobs: list[JobRequest] = []
        for made in {made.cell: made for made in decisions if made.prediction}.values():
            left = decide_numbers(made.cell, current[made.cell], policy, made.version, heavy[made.cell])
            if left.prediction is not None:
                asked = replace(corrected(left, made.calibration), verdict=made.verdict, heat=made.heat)
                jobs.append(job_spec(self.table, asked, policy, self._metadata))
        return jobs

    def _heavy(self) -> Counter[PartitionKey]:
        """Count the files to purge that the commits added and none of them removed since, by cell."""
        live: dict[PathKey, PartitionKey] = {}
        for commit, folded in self._folded:
            for gone in commit.removed:
                live.pop(path_key(gone), None)
            for cell, files in folded.with_deletes.items():
                live |= {path_key(file): cell for file in files if is_purgeable(file, self.policy)}
        return Counter(live.values())

    def _counters(self, decisions: Sequence[Decision]) -> dict[str, int]:
        """Count the funnel: what came in, and what each prune kept out."""
        counts = Counter(counted(decisions))
        counts["commits"] = sum(1 for commit, _ in self._folded if commit.data_change or commit.origin is None)
        counts["possible_dml_aborts"] = self._aborts
        counts["deferred"] = sum(made.verdict is DecisionKind.DEFER for made in decisions)
        counts["own_commits"] = len(self._folded) - counts["commits"]
        counts["partitions_touched"] = len(decisions) - counts["partitions_rewritten"]
        counts["files_added"] = sum(len(commit.added) for commit, _ in self._folded if commit.data_change)
        counts["bytes_added"] = sum(
            file.size_bytes for commit, _ in self._folded if commit.data_change for file in commit.added
        )
        return {name: count for name, count in counts.items() if count}


_FUNNEL = {
    Reason.DISABLED: "disabled",
    Reason.OWN_COMMIT: "partitions_rewritten",
    Reason.NO_DATA_CHANGE: "partitions_rewritten",
    Reason.NOTHING_SMALL: "pruned_by_entropy",
    Reason.SETTLED: "pruned_by_entropy",
    Reason.WITHIN_TOLERANCE: "pruned_by_entropy",
    Reason.NO_PROMOTION: "pruned_by_levels",
    Reason.WORTH_IT: "enqueued",
    Reason.TOO_MANY_SMALL: "enqueued",
    Reason.REQUESTED: "enqueued",
    Reason.QUIET: "enqueued",
    Reason.DELETES: "enqueued",
    Reason.FILTERED: "filtered",
    Reason.FULL_DUE: "enqueued",
    Reason.WRITERS_FIRST: "deferred_to_writers",
    Reason.REFUSED: "refused",
    Reason.CLUSTERED: "refused",
}


def counted(decisions: Iterable[Decision]) -> dict[str, int]:
    """Count decisions by the stage of the funnel that each ended at."""
    return dict(Counter(_FUNNEL[made.reason] for made in decisions))


def job_spec(
    table: TableRef,
    decision: Decision,
    policy: Policy,
    metadata: TableMetadata,
    *,
    is_forced: bool = False,
    closed_ms: int | None = None,
) -> JobRequest:
    """Turn a decision to rewrite into a job; the facts are what the actor needs and what it will be measured against.

    The job names a cell and never a file: the actor plans on the live snapshot. `metadata` is the table's at the
    decision; windows that ended by `closed_ms` are settled (None: all).
    """
    prediction = decision.prediction
    if decision.verdict is DecisionKind.SKIP or prediction is None:
        raise ValueError(f"no job follows from the verdict {decision.verdict}")
    facts = JobPayload(
        location=table.location,
        name=table.name,
        policy=policy,
        reason=decision.reason,
        predicted=PredictedCost(
            prediction.files_replaced,
            prediction.files_removed,
            prediction.bytes,
            prediction.state_removed,
            prediction.state_bytes,
        ),
        terms=terms(metadata.configuration),
        ask=decision.ask,
        is_hot=decision.heat > policy.max_heat,
        despite_switch=is_forced or is_switched_off(metadata.configuration),
        closed_ms=closed_ms,
        table_uuid=metadata.table_uuid,
    )
    return JobRequest(
        key=JobKey(table.id, decision.cell, COMPACT),
        tenant=table.tenant,
        band=Band[policy.priority.name],
        priority=priority(prediction, policy),
        cost_bytes=prediction.bytes,
        version=decision.version,
        facts=facts.encode(),
        debounce=COOLING if decision.verdict is DecisionKind.DEFER else AT_ONCE,
        reach=decision.ask.reach,
    )
