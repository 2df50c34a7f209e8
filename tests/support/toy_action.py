"""A toy action: a census of every partition with three files or more, after each commit and an hour later.

It has all that an action can have, and nothing outside of this file knows it: where a test registers it, one module and
one entry in the registry have added an action.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from decider.decide.action import ActionTimers, Proposal, TimerTarget
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.decision import Prediction, Trigger
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import DecisionReason, Evaluation
from shared.layout.partition_count import PartitionCount
from shared.layout.partition_stats import PartitionStats, stats_of_files
from shared.layout.planner import FileGroup, Plan, RewriteMode
from shared.policy.partition_filter import permits
from shared.policy.policy import Policy
from shared.queue.model import Timer, TimerChange
from shared.table import DataFile, PartitionColumn, PartitionKey

CENSUS = "census"
MANY_FILES = 3
AFTER_MS = 3_600_000


class CensusReason(DecisionReason):
    """Why a partition is, or is not, counted."""

    FEW_FILES = "few_files", "The partition has few files.", "pruned_by_entropy"
    MANY_FILES = "many_files", "The partition has many files."


class CensusTimers:
    """A timer for each partition that others write to."""

    def parse(self, name: str) -> TimerTarget | None:
        head, _, partition = name.partition(" ")
        return TimerTarget(PartitionKey(partition)) if head == CENSUS else None

    def after_commit(
        self,
        partition: PartitionKey,
        state: PartitionStats,
        policy: Policy,
        at_ms: int,
        columns: Sequence[PartitionColumn],
    ) -> Iterator[Timer]:
        if policy.enabled and permits(policy.filter, partition, columns, at_ms) and state.files >= MANY_FILES:
            yield Timer(f"{CENSUS} {partition}", at_ms + AFTER_MS, TimerChange.SET)

    def after_rewrite(
        self, partition: PartitionKey, state: PartitionStats, policy: Policy, rewritten: Iterable[int] = ()
    ) -> Iterator[Timer]:
        if state.files < MANY_FILES:
            yield Timer(f"{CENSUS} {partition}", 0, TimerChange.STOP)

    def after_rebuild(
        self,
        partitions: Mapping[PartitionKey, PartitionCount],
        policy: Policy,
        at_ms: int,
        columns: Sequence[PartitionColumn],
    ) -> Iterator[Timer]:
        for partition, count in partitions.items():
            yield from self.after_commit(partition, count.state, policy, at_ms, columns)


class Census:
    """Counts the files of a partition, whatever their sizes."""

    kind: str = CENSUS
    reasons: type[DecisionReason] = CensusReason
    is_calibrated: bool = False
    timers: ActionTimers | None = CensusTimers()

    def is_on(self, policy: Policy) -> bool:
        return True

    def evaluate(self, stats: PartitionStats, policy: Policy, trigger: Trigger) -> Proposal:
        if stats.files < MANY_FILES:
            return Proposal(CensusReason.FEW_FILES)
        return Proposal(CensusReason.MANY_FILES, Prediction(stats.files, 0, stats.bytes, Fraction(1), 0, stats.bytes))

    def plan(
        self, partition: PartitionKey, files: Sequence[DataFile], policy: Policy, rewrite_kind: RewriteKind
    ) -> Plan:
        before = stats_of_files(files, policy.size_levels)
        if before.files < MANY_FILES:
            return Plan(CENSUS, partition, Evaluation(CensusReason.FEW_FILES, None), (), before, before)
        group = FileGroup(partition, tuple(files), RewriteMode.FULL)
        return Plan(CENSUS, partition, Evaluation(CensusReason.MANY_FILES, None), (group,), before, before)


TOY = Census()
WITH_TOY = ActionRegistry((*ACTIONS, TOY))
