"""A batch: commits of one table that are not stored yet, with the decisions that follow from each of them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from decider.decide import ledger
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.company import together_after_ms
from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, DecisionKind, TableSignals, commit_trigger
from decider.decide.evaluate import evaluate, evaluate_each
from decider.decide.funnel import CommitCounter, funnel_counts
from decider.decide.job_request import job_request
from decider.decide.table_action import table_timers
from decider.state.batch_files import BatchFiles, RecentFiles
from decider.state.commit_pace import NO_COMMITS, CommitCounts
from decider.state.contention import WriteContention
from decider.state.fold import FoldedCommit, rewritten_windows
from decider.state.table_summary import SummaryChange
from decider.store.tables.ingest import StateUpdate
from decider.store.tables.table_state import COUNTED_VERSIONS, PartitionStates
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import Reason, delete_step, is_purgeable, reaches_delete_files
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.partition_refusals import PartitionRefusals, TableFingerprint
from shared.paths.data_paths import PathKey, path_key
from shared.policy.policy import Policy
from shared.queue.limits import MAX_TIMERS
from shared.queue.model import JobRequest, Timer
from shared.table import Commit, PartitionKey, TableMetadata, TableRef

_JobTarget = tuple[str, PartitionKey]
"""Target of a job: the kind of an action, and a partition."""


_RANKS = {kind: rank for rank, kind in enumerate((RewriteKind.LEVELS, RewriteKind.IDLE, RewriteKind.FULL))}


@dataclass(frozen=True, slots=True)
class DecidedBatch:
    """Writes of a batch, and how it changes the sums of the table.

    Not `is_consistent`: nothing is written, since the log removed files that the state never had. `together_ms`: when
    the merges that wait are ready.
    """

    step: StateUpdate
    is_consistent: bool
    change: SummaryChange
    together_ms: int


class CommitBatch:
    """Commits applied but not yet ingested, in order."""

    def __init__(
        self,
        table: TableRef,
        policy: Policy,
        metadata: TableMetadata,
        actions: ActionRegistry = ACTIONS,
        recent: RecentFiles | None = None,
        since_ms: int = 0,
    ) -> None:
        """`policy`: the effective one, without what was learned of the table; `metadata`: before the first commit.

        recent: files of the commits before these. since_ms: time of the commit before these.
        """
        self.table = table
        self.policy = policy
        self.size_levels = policy.size_levels
        self.changes = 0
        self.files = BatchFiles() if recent is None else BatchFiles(partial(recent.is_live, table.id), since_ms)
        self._metadata = metadata
        self._columns = metadata.partition_columns
        self._actions = actions
        self._folded: list[tuple[Commit, FoldedCommit]] = []
        self._counts: list[CommitCounts] = []
        self._aborts = 0
        self._examined: Counter[PartitionKey] = Counter()

    def __len__(self) -> int:
        return len(self._folded)

    def add(self, commit: Commit, folded: FoldedCommit, *, aborts: int = 0, counts: CommitCounts = NO_COMMITS) -> None:
        """Add a commit with its changes, aborts that our rewrites may have caused by then, and commits until then."""
        self._aborts += aborts
        self._counts.append(counts)
        self._folded.append((commit, folded))
        self.changes += len(folded.changes)

    @property
    def partitions(self) -> tuple[PartitionKey, ...]:
        """Every partition that a commit of this batch touches, each once."""
        return tuple(dict.fromkeys(partition for _, folded in self._folded for partition in folded.changes))

    def with_more_deletes(self, known: PartitionStates) -> frozenset[PartitionKey]:
        """Return the partitions in which delete files took the deleted rows to a next step (see `delete_step`).

        A delete file does not show the share of its data file that is deleted, so these have to be read.
        """
        if self.policy.delete_ratio_threshold is None:
            return frozenset()
        rows: Counter[PartitionKey] = Counter()
        for commit, _ in self._folded:
            for delete in commit.added_deletes:
                rows[delete.partition] += delete.deleted_rows
        before = {one: known.partitions.get(one, EMPTY_STATS).deleted_rows for one in rows}
        return frozenset(one for one in rows if delete_step(before[one] + rows[one]) > delete_step(before[one]))

    def file_counts(self, before: int) -> tuple[tuple[int, int], ...]:
        """Return the number of live files after each commit of a multiple of `COUNTED_VERSIONS`; `before`: at first."""
        counts: list[tuple[int, int]] = []
        for commit, folded in self._folded:
            before += sum(change.files for change in folded.changes.values())
            if commit.version % COUNTED_VERSIONS == 0:
                counts.append((commit.version, before))
        return tuple(counts)

    @property
    def last_rewrite_ms(self) -> int:
        """Commit time of the newest Lakewright commit of the batch, 0 if it has none."""
        return max((commit.timestamp_ms for commit, _ in self._folded if commit.origin is not None), default=0)

    def decide(  # noqa: PLR0913 - every part is independent of the others
        self,
        known: PartitionStates,
        heat: WriteContention,
        signals: TableSignals,
        at_ms: int,
        *,
        last_rewrite_ms: int = 0,
        examined: Mapping[PartitionKey, int] | None = None,
        commit_every_ms: int = 0,
        together_ms: int = 0,
    ) -> DecidedBatch:
        """Apply the changes to the stored states in order, and evaluate each touched partition after each commit.

        heat and signals: write contention and signals of the table after the last of the commits. last_rewrite_ms:
        commit time of the newest rewrite before them, 0 if there was none. examined: files to purge by partition that
        were found in the newest snapshot, where commits do not show them. commit_every_ms: mean time between commits.
        together_ms: when the merges that wait are ready.
        """
        refused = self._refused(known)
        self._examined = Counter(examined or {})
        context = DecisionContext.resolve(
            *(self.table, self._metadata, self.policy, known.calibration),
            contention=heat,
            at_ms=at_ms,
            last_rewrite_ms=max(last_rewrite_ms, self.last_rewrite_ms),
            refusals=refused,
            commit_every_ms=commit_every_ms,
            together_ms=together_ms,
        )
        current = dict(known.partitions)
        decisions: list[Decision] = []
        is_possible = True
        for (commit, folded), counts in zip(self._folded, self._counts, strict=True):
            for partition, change in folded.changes.items():
                before = current.get(partition, EMPTY_STATS)
                current[partition] = (before + change).clamped()
                is_possible = is_possible and current[partition].is_consistent
                purgeable = sum(is_purgeable(file, self.policy) for file in folded.purge_candidates.get(partition, ()))
                if any(one.partition == partition for one in commit.added_deletes):
                    purgeable += self._examined[partition]
                is_due = reaches_delete_files(before, current[partition], self.policy)
                trigger = commit_trigger(commit, purgeable, counts.of(partition), is_deletes_due=is_due)
                decisions += evaluate_each(context, partition, current[partition], trigger, self._actions)
        jobs = self._jobs(context, decisions, current)
        slots = {(job.key.kind, job.key.partition): index for index, job in enumerate(jobs)}
        lines = [
            (ledger.encode(made, context), slots.get((made.action, made.partition), -1) if made.prediction else -1)
            for made in decisions
        ]
        partitions: dict[str, str | None] = {
            # Delete files may outlive the data files of their partition, and are removed later.
            partition: state.encode() if state.files or state.dv_files else None
            for partition, state in current.items()
        }
        of_table = table_timers(self._actions.table_actions, signals, self.policy, at_ms)
        timers = (*of_table, *islice(self._timers(current, at_ms), MAX_TIMERS - len(of_table)))
        changes = tuple(known.refusals.changes(refused))
        update = StateUpdate(partitions, jobs, lines, self._counters(decisions), timers=timers, refusals=changes)
        moved = SummaryChange.of(known.partitions, current, self.size_levels.target_bytes)
        moved = replace(moved, bytes_added=self._bytes_added, bytes_rewritten=self._bytes_rewritten)
        return DecidedBatch(update, is_possible, moved, together_after_ms(context, decisions))

    @property
    def _bytes_rewritten(self) -> int:
        ours = [(commit, folded) for commit, folded in self._folded if commit.origin is not None]
        written = sum(file.size_bytes for commit, _ in ours for file in commit.added)
        grown = sum(change.bytes for _, folded in ours for change in folded.changes.values())
        return max(0, written - grown)

    @property
    def _bytes_added(self) -> int:
        return sum(file.size_bytes for commit, _ in self._folded if commit.data_change for file in commit.added)

    def _refused(self, known: PartitionStates) -> dict[PartitionKey, PartitionRefusals]:
        """Return the refusals that hold after the commits."""
        commits = [commit for commit, _ in self._folded]
        metadata = next((one.metadata for one in reversed(commits) if one.metadata is not None), self._metadata)
        return known.refusals.after(commits, TableFingerprint.of(metadata, self.policy), commits[-1].version)

    def _timers(self, current: Mapping[PartitionKey, PartitionStats], at_ms: int) -> Iterator[Timer]:
        """Yield the changes of the touched partitions' timers; those that only save an evaluation come last."""
        timed = [action.timers for action in self._actions if action.timers is not None]
        changed = {partition for commit, folded in self._folded if commit.data_change for partition in folded.changes}
        for partition, state in current.items():
            if partition in changed:
                for timers in timed:
                    yield from timers.after_commit(partition, state, self.policy, at_ms, self._columns)
        rewritten: dict[PartitionKey, set[int]] = {}
        for commit, _ in self._folded:
            for partition, windows in rewritten_windows(commit, self.policy).items():
                rewritten.setdefault(partition, set()).update(windows)
        for partition, state in current.items():
            if partition not in changed or partition in rewritten:
                for timers in timed:
                    yield from timers.after_rewrite(partition, state, self.policy, rewritten.get(partition, ()))

    def _jobs(
        self,
        context: DecisionContext,
        decisions: Sequence[Decision],
        current: Mapping[PartitionKey, PartitionStats],
    ) -> list[JobRequest]:
        """Return one job per action and partition for what is left after the last commit; none where nothing is."""
        purgeable = self._purgeable()
        # The last of those that request the most: what the number of commits requested is not lost to a later commit.
        asked = sorted((made for made in decisions if made.prediction), key=lambda made: _RANKS[made.rewrite_kind])
        last: dict[_JobTarget, Decision] = {(made.action, made.partition): made for made in asked}
        left = (
            made
            if made.state is current[made.partition] and made.trigger.purgeable == purgeable[made.partition]
            else evaluate(
                context,
                made.partition,
                current[made.partition],
                replace(made.trigger, purgeable=purgeable[made.partition], rewrite_kind=RewriteKind.LEVELS),
                self._actions.of(made.action),
            )
            for made in last.values()
        )
        return [job_request(context, made) for made in left if made.prediction]

    def _purgeable(self) -> Counter[PartitionKey]:
        """Count the files to purge that the commits added and none of them removed since, by partition."""
        if not any(folded.purge_candidates for _, folded in self._folded):
            return self._examined
        live: dict[PathKey, PartitionKey] = {}
        for commit, folded in self._folded:
            for gone in commit.removed:
                live.pop(path_key(gone), None)
            for partition, files in folded.purge_candidates.items():
                live |= {path_key(file): partition for file in files if is_purgeable(file, self.policy)}
        return Counter(live.values()) + self._examined

    def _counters(self, decisions: Sequence[Decision]) -> dict[str, int]:
        """Count the funnel: commits and files that were read, and the stage at which each decision ended."""
        counts = Counter(funnel_counts(decisions))
        counts[CommitCounter.COMMITS] = sum(
            1 for commit, _ in self._folded if commit.data_change or commit.origin is None
        )
        counts[CommitCounter.POSSIBLE_DML_ABORTS] = self._aborts
        counts[CommitCounter.DEFERRED] = sum(made.verdict is DecisionKind.DEFER for made in decisions)
        counts[CommitCounter.OWN_COMMITS] = len(self._folded) - counts[CommitCounter.COMMITS]
        counts[CommitCounter.PARTITIONS_TOUCHED] = len(decisions) - counts[Reason.OWN_COMMIT.stage]
        counts[CommitCounter.FILES_ADDED] = sum(len(commit.added) for commit, _ in self._folded if commit.data_change)
        counts[CommitCounter.BYTES_ADDED] = self._bytes_added
        return {name: count for name, count in counts.items() if count}
