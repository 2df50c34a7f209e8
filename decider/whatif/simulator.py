"""Replays a history under a rule: which files would exist, and what would have been rewritten.

Our own rule is compaction, by the code that decides and plans in production (`evaluate`, timers, `plan_rewrite`). With
a lag between decision and run, a table may change in between and a job may find nothing; our rule and the others can be
given the same lag. Every output is assumed to be as large as its inputs. Pure: time comes from the commits.

The size levels are fitted to the files of the history during the replay, as in production, unless the policy fixes
them.

After the last commit a replay can continue without commits for `tail_ms`: timers fire, idle partitions are compacted,
and readers continue to read the files.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from decider.decide.compaction import COMPACTION
from decider.decide.company import company_wait_ms, together_ms
from decider.decide.context import DecisionContext
from decider.decide.decision import DecisionKind, Trigger, TriggerSource
from decider.decide.evaluate import evaluate
from decider.state.commit_pace import UNKNOWN_PACE
from decider.state.level_fit import NOT_FITTED
from decider.whatif.baselines import BaselineRule, ObservedPartition
from decider.whatif.simulated_timers import PendingJobs, SimulatedTimers
from decider.whatif.trace import CommitTrace, SimulatedMerge, SimulatedPartition, SimulatedTable
from shared.jobs.payload import RewriteKind
from shared.layout.file_selection import tagged_window_start_ms
from shared.layout.planner import plan_rewrite
from shared.policy.policy import ClusteringOrder, Policy
from shared.table import Commit, PartitionColumn, PartitionKey

POINTS = 200
"""Points of a curve over time: as many as a chart shows, however long the history."""


class CurvePoint(NamedTuple):
    """One point of the curves: when, live files, small ones, and bytes rewritten until then."""

    at_ms: int
    files: int
    small_files: int
    bytes_rewritten: int


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Effect of a rule on a history.

    small_mean, small_max: small files in a partition after a commit touched it, before any merge; scans: times the rule
    had to list a partition; full_overwrite_files: files that the same jobs would replace if each replaced its whole
    partition; file_ms: live files integrated over the span_ms of the history; tail_file_ms: the same for the tail_ms
    after the last commit; stale_ms: mean time that an added file stayed small while commits arrived;
    level_fits: changes of the size levels; typical_file_bytes: size that they are fitted to at the end, 0 if to none.
    """

    name: str
    bytes_added: int
    bytes_rewritten: int
    jobs: int
    scans: int
    useless_scans: int
    files_replaced: int
    full_overwrite_files: int
    small_mean: float
    small_max: int
    files_at_end: int
    file_ms: int
    tail_file_ms: int
    span_ms: int
    tail_ms: int
    stale_ms: float
    curve: tuple[CurvePoint, ...]
    level_fits: int = 0
    typical_file_bytes: int = 0

    @property
    def wa(self) -> float:
        """Write amplification: bytes rewritten per byte added."""
        return self.bytes_rewritten / self.bytes_added if self.bytes_added else 0.0

    @property
    def useless_scan_share(self) -> float:
        """Share of the scans that found nothing to do."""
        return self.useless_scans / self.scans if self.scans else 0.0

    @property
    def files_replaced_share(self) -> float:
        """Files replaced as a share of what full overwrites by the same jobs would have replaced."""
        return self.files_replaced / self.full_overwrite_files if self.full_overwrite_files else 0.0

    @property
    def mean_files(self) -> float:
        """Live files, averaged over the history and the time that was replayed after it, as costs count them."""
        all_ms = self.span_ms + self.tail_ms
        return self.all_file_ms / all_ms if all_ms else float(self.files_at_end)

    @property
    def all_file_ms(self) -> int:
        """Live files integrated over the history and the time that was replayed after it."""
        return self.file_ms + self.tail_file_ms


@dataclass(frozen=True, slots=True)
class _FinalSums:
    """The sums over time as of the last commit."""

    at_ms: int
    file_ms: int
    small_ms: int


@dataclass(slots=True)
class _RunningSums:
    """Sums that grow while a history is replayed."""

    table: SimulatedTable
    step_ms: int
    bytes_rewritten: int = 0
    jobs: int = 0
    scans: int = 0
    useless_scans: int = 0
    files_replaced: int = 0
    full_overwrite_files: int = 0
    samples: int = 0
    small_sum: int = 0
    small_max: int = 0
    file_ms: int = 0
    small_ms: int = 0
    level_fits: int = 0
    last_ms: int | None = None
    ended: _FinalSums | None = None
    curve: list[CurvePoint] = field(default_factory=list)

    def pass_time(self, at_ms: int) -> None:
        """Advance the time to `at_ms`; clocks of writers may go back, which takes no time."""
        elapsed = max(0, at_ms - self.last_ms) if self.last_ms is not None else 0
        self.file_ms += elapsed * self.table.files
        self.small_ms += elapsed * self.table.small_files
        self.last_ms = at_ms if self.last_ms is None else max(at_ms, self.last_ms)
        if not self.curve or (self.ended is None and self.last_ms - self.curve[-1].at_ms >= self.step_ms):
            self.note()

    def note(self) -> None:
        """Add a point to the curve."""
        point = CurvePoint(self.last_ms or 0, self.table.files, self.table.small_files, self.bytes_rewritten)
        self.curve.append(point)

    def saw(self, partitions: Sequence[SimulatedPartition]) -> None:
        """Count the small files of the partitions that a commit touched."""
        for partition in partitions:
            small = len(partition.small)
            self.samples += 1
            self.small_sum += small
            self.small_max = max(self.small_max, small)

    def scan(self, partition: SimulatedPartition, merges: Sequence[SimulatedMerge]) -> None:
        """Count a scan of a partition, and carry out its merges."""
        self.scans += 1
        if not merges:
            self.useless_scans += 1
            return
        self.jobs += 1
        self.full_overwrite_files += partition.files
        for merge in merges:
            self.files_replaced += len(merge.inputs)
            self.bytes_rewritten += sum(file.size_bytes for file in merge.inputs)
        self.table.merge(partition, merges)

    def end_commits(self) -> _FinalSums:
        """Note that no commit follows, and return the sums until then."""
        self.note()
        self.ended = _FinalSums(self.last_ms or 0, self.file_ms, self.small_ms)
        return self.ended

    def result(self, name: str, history: CommitTrace, ended: _FinalSums) -> SimulationResult:
        """Return the counts; `ended` is the result of `end_commits`."""
        added = history.files_added
        first = self.curve[0].at_ms if self.curve else 0
        return SimulationResult(
            name=name,
            bytes_added=history.bytes_added,
            bytes_rewritten=self.bytes_rewritten,
            jobs=self.jobs,
            scans=self.scans,
            useless_scans=self.useless_scans,
            files_replaced=self.files_replaced,
            full_overwrite_files=self.full_overwrite_files,
            small_mean=self.small_sum / self.samples if self.samples else 0.0,
            small_max=self.small_max,
            files_at_end=self.table.files,
            file_ms=ended.file_ms,
            tail_file_ms=self.file_ms - ended.file_ms,
            span_ms=ended.at_ms - first,
            tail_ms=(self.last_ms or 0) - ended.at_ms,
            stale_ms=ended.small_ms / added if added else 0.0,
            curve=tuple(self.curve),
            level_fits=self.level_fits,
            typical_file_bytes=self.table.typical_file_bytes,
        )


def _tally(history: CommitTrace, policy: Policy) -> _RunningSums:
    times = [commit.timestamp_ms for commit in history.commits]
    span_ms = max(times) - times[0] if times else 0
    return _RunningSums(SimulatedTable(policy, history), max(1, span_ms // POINTS))


def replay_untouched(history: CommitTrace, policy: Policy, *, tail_ms: int = 0) -> SimulationResult:
    """Replay a history without any rewrite."""
    tally = _tally(history, policy)
    for commit in history.commits:
        tally.pass_time(commit.timestamp_ms)
        tally.saw(tally.table.apply(commit))
    ended = tally.end_commits()
    tally.pass_time(ended.at_ms + tail_ms)
    return tally.result("no_compaction", history, ended)


def replay_peer(
    history: CommitTrace, policy: Policy, rule: BaselineRule, *, lag_commits: int = 0, tail_ms: int = 0
) -> SimulationResult:
    """Replay a history under another tool's rule, which runs after each commit, or periodically.

    Its merges are computed and done `lag_commits` commits later, on the files that exist then.
    """
    tally = _tally(history, policy)
    theirs = _BaselineRunner(tally, policy, rule)
    changed: dict[PartitionKey, SimulatedPartition] = {}
    jobs = PendingJobs(lag_commits)
    next_ms: int | None = None
    for number, commit in enumerate(history.commits):
        at_ms = commit.timestamp_ms
        tally.pass_time(at_ms)
        touched = tally.table.apply(commit)
        tally.saw(touched)
        changed.update((partition.key, partition) for partition in touched)
        next_ms = at_ms + rule.every_ms if next_ms is None else next_ms
        if not rule.every_ms or at_ms >= next_ms:
            next_ms = max(next_ms + rule.every_ms, at_ms)
            for partition in changed.values():
                if theirs.wants(partition, at_ms):
                    jobs.ask(number, partition)
            changed.clear()
        for partition in jobs.due(number):
            theirs.run(partition, at_ms)
    ended = tally.end_commits()
    if rule.idle_ms is not None and rule.idle_ms <= tail_ms:
        tally.pass_time(ended.at_ms + rule.idle_ms)
        for partition in tally.table.partitions.values():
            theirs.run(partition, ended.at_ms + rule.idle_ms)
    tally.pass_time(ended.at_ms + tail_ms)
    return tally.result(rule.name, history, ended)


def replay_lakewright(
    history: CommitTrace, policy: Policy, *, lag_commits: int = 0, tail_ms: int = 0
) -> SimulationResult:
    """Replay a history under our own rule; a job runs `lag_commits` commits after it is ready.

    Jobs wait for others of their table, as in production; to the next commit, as time passes here in commits.
    """
    tally = _tally(history, policy)
    ours = _PolicyRunner(tally, policy, history.columns)
    jobs = PendingJobs(lag_commits)
    for number, commit in enumerate(history.commits):
        ours.ring_until(commit.timestamp_ms)
        tally.pass_time(commit.timestamp_ms)
        touched = tally.table.apply(commit)
        tally.saw(touched)
        for partition in ours.wanted(touched, commit):
            jobs.ask(number, partition, ready_ms=ours.ready_ms(partition, commit.timestamp_ms))
        for partition in jobs.due(number, commit.timestamp_ms):
            ours.run_requested(partition)
    ended = tally.end_commits()
    for partition in jobs.due(len(history.commits), ended.at_ms + tail_ms):
        ours.run_requested(partition)
    ours.ring_until(ended.at_ms + tail_ms)
    tally.pass_time(ended.at_ms + tail_ms)
    return tally.result("lakewright", history, ended)


class _BaselineRunner:
    """Runs another tool's rule, and remembers when it last rewrote anything in the table."""

    def __init__(self, tally: _RunningSums, policy: Policy, rule: BaselineRule) -> None:
        self._tally = tally
        self._policy = policy
        self._rule = rule
        self._rewritten_ms: int | None = None

    def wants(self, partition: SimulatedPartition, at_ms: int) -> bool:
        """Return whether the rule's own counters request a scan of a partition."""
        return self._rule.wants(ObservedPartition(partition, self._policy, at_ms, self._rewritten_ms))

    def run(self, partition: SimulatedPartition, at_ms: int) -> None:
        """Apply the rule to a partition and do what it proposes."""
        merges = self._rule.propose(ObservedPartition(partition, self._policy, at_ms, self._rewritten_ms))
        if merges:
            self._rewritten_ms = at_ms
        self._tally.scan(partition, merges)


_ON_COMMIT = Trigger(0, TriggerSource.DATA_CHANGE)
"""The trigger of every commit of the trace; no decision depends on its version."""


class _PolicyRunner:
    """Decides as a decider does, and runs jobs as an actor does: it plans on the current files, and rewrites."""

    def __init__(self, tally: _RunningSums, policy: Policy, columns: tuple[PartitionColumn, ...]) -> None:
        self._tally = tally
        # A replay keeps small files only, and no bounds of keys: it packs by size whatever the order of the table.
        policy = replace(policy, clustering_order=ClusteringOrder.NONE, sort_by=None, zorder_by=None)
        self._policy = policy
        self._context = DecisionContext.of_policy(policy, columns)
        self._timers = SimulatedTimers(policy, columns)
        self._fit = NOT_FITTED
        self._pace = UNKNOWN_PACE
        self._together_ms = 0
        self._commits: Counter[PartitionKey] = Counter()
        self._kinds: dict[PartitionKey, RewriteKind] = {}

    def wanted(self, touched: Sequence[SimulatedPartition], commit: Commit) -> list[SimulatedPartition]:
        """Return the partitions that get a job after a commit touched some of them, and set their timers.

        After a change of the levels every partition is counted and decided again.
        """
        self._pace = self._pace.after(commit)
        self._context = replace(self._context, at_ms=commit.timestamp_ms)
        for partition in touched:
            self._timers.after_commit(partition, commit.timestamp_ms)
            self._commits[partition.key] += commit.data_change
        self._fit, before = self._fit.after(commit, self._policy).refitted(self._policy, commit.timestamp_ms), self._fit
        if self._fit.typical_file_bytes != before.typical_file_bytes:
            self._policy = self._policy.fitted_to(self._fit.typical_file_bytes)
            self._context = replace(self._context, policy=self._policy)
            self._tally.table.count_again(self._policy)
            self._tally.level_fits += 1
            return [one for one in self._tally.table.partitions.values() if self._is_eligible(one, _ON_COMMIT)]
        return [one for one in touched if self._is_eligible(one, replace(_ON_COMMIT, commits=self._commits[one.key]))]

    def _is_eligible(self, partition: SimulatedPartition, trigger: Trigger) -> bool:
        decision = evaluate(self._context, partition.key, partition.state, trigger, COMPACTION)
        is_wanted = decision.verdict is DecisionKind.ENQUEUE
        if is_wanted and decision.rewrite_kind is not RewriteKind.LEVELS:
            self._kinds[partition.key] = decision.rewrite_kind
        return is_wanted

    def ready_ms(self, partition: SimulatedPartition, at_ms: int) -> int:
        """Return when the job that a commit has just requested is ready, 0 for at once."""
        if partition.key in self._kinds:
            return 0
        wait_ms = company_wait_ms(partition.key, partition.state, self._pace.every_ms, self._policy)
        if not wait_ms:
            return 0
        self._together_ms = together_ms(self._together_ms, at_ms, wait_ms)
        return self._together_ms

    def run_requested(self, partition: SimulatedPartition) -> None:
        """Run the job of a partition: the rewrite that its commits requested."""
        self.run(partition, self._kinds.pop(partition.key, RewriteKind.LEVELS))

    def run(
        self, partition: SimulatedPartition, ask: RewriteKind = RewriteKind.LEVELS, closed_ms: int | None = None
    ) -> None:
        """Plan a partition and rewrite it; what exceeds one job is queued again, and planned again."""
        is_cut = True
        rewritten: set[int] = set()
        while is_cut:
            small = tuple(partition.small.values())
            made = plan_rewrite(ask, partition.key, small, self._policy, before=partition.state, ended_by_ms=closed_ms)
            named = (tagged_window_start_ms(group.tags, self._policy.time_window_s) for group in made.groups)
            rewritten.update(start_ms for start_ms in named if start_ms is not None)
            self._tally.scan(
                partition, [SimulatedMerge(group.files, (group.bytes,), group.tags) for group in made.groups]
            )
            is_cut = made.is_truncated
        self._timers.after_rewrite(partition, rewritten)

    def ring_until(self, at_ms: int) -> None:
        """Fire the due timers; each is decided on the files that exist then."""
        for rung_ms, ask, partition in self._timers.ring(at_ms):
            self._tally.pass_time(rung_ms)
            self._context = replace(self._context, at_ms=rung_ms)
            due = Trigger(0, TriggerSource.TIMER, ask)
            decision = evaluate(self._context, partition.key, partition.state, due, COMPACTION)
            if decision.verdict is DecisionKind.ENQUEUE:
                self.run(partition, ask, rung_ms - (self._policy.idle_compaction_after_s or 0) * 1000)
