"""One rule, whoever asks: commits, rebuilds and plans agree on which partitions get a job, why, and which job."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.compaction import COMPACTION
from decider.decide.context import DecisionContext
from decider.decide.decision import DecisionKind, TableSignals, Trigger, TriggerSource
from decider.decide.evaluate import evaluate
from decider.decide.job_request import job_request
from decider.optimize.plan_table import PlanSelection, plan_table
from decider.state.contention import ActivityWindow, WriteContention
from decider.state.fold import fold
from decider.store.tables.table_state import PartitionStates
from decider.tracking.commit_batch import CommitBatch
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import is_purgeable
from shared.policy.policy import MIB, DmlPolicy, Policy, PortablePaths
from shared.policy.traits import TableTraits
from shared.table import (
    Commit,
    DataFile,
    PartitionColumn,
    PartitionKey,
    Snapshot,
    TableId,
    TableMetadata,
    TableProtocol,
    TableRef,
)
from tests.support.memory_log import count_live_files

TABLE = TableRef(TableId("t-1"), "sales.orders", "memory:///t", "sales")
METADATA = TableMetadata("u-1", (PartitionColumn("dt", "col-1", "string"),), {"lakewright.enabled": "true"})
PARTITIONS = [PartitionKey(f'{{"col-1":"{value}"}}') for value in "abc"]
NOON = 500_000 * 3_600_000

POLICIES = st.builds(
    Policy,
    enabled=st.sampled_from([True, True, True, False]),
    traits=st.builds(TableTraits, refused=st.sampled_from(["", "", "", "tables.any"])),
    target_bytes=st.just(8 * MIB),
    tolerance=st.sampled_from([Fraction(0), Fraction(15, 100)]),
    max_small_files=st.sampled_from([4, 1000]),
    filter=st.sampled_from([None, "dt <= 'b'"]),
    dml_policy=st.sampled_from(DmlPolicy),
    portable_paths=st.sampled_from(PortablePaths),
)
CALIBRATIONS = st.sampled_from([UNCALIBRATED, Calibration(9, 400, 800, 400, 240, 400, 300)])


@st.composite
def live_files(draw: st.DrawFn) -> tuple[DataFile, ...]:
    """Small and full files in three partitions, some with deleted rows, some on harmful paths."""
    file = st.tuples(
        st.sampled_from([1_000, 100_000, MIB, 3 * MIB, 7 * MIB, 9 * MIB]),
        st.sampled_from(PARTITIONS),
        st.sampled_from([0, 0, 0, 5, 60]),
        st.sampled_from(["f{}", "f{}", "a%20b/f{}", "x:y/f{}"]),
    )
    found = draw(st.lists(file, max_size=40))
    return tuple(
        DataFile(path.format(n), size, partition, f"dv{n}" if deleted else None, rows=100, deleted_rows=deleted)
        for n, (size, partition, deleted, path) in enumerate(found)
    )


def contention(busy: bool) -> WriteContention:
    """A MERGE ran for half of the last hour in the first partition, or nothing did."""
    hour = NOON // 3_600_000
    return WriteContention({PARTITIONS[0]: ActivityWindow(hour, 1_800_000)} if busy else {})


@given(files=live_files(), policy=POLICIES, calibration=CALIBRATIONS, busy=st.booleans())
def test_a_commit_leads_to_the_jobs_that_a_rebuild_of_its_table_leads_to(
    files: tuple[DataFile, ...], policy: Policy, calibration: Calibration, busy: bool
) -> None:
    batch = CommitBatch(TABLE, policy, METADATA)
    commit = Commit(4, NOON, "WRITE", files)
    batch.add(commit, fold(commit, METADATA, policy))
    heat = contention(busy)
    done = batch.decide(PartitionStates({}, calibration), heat, TableSignals(0), NOON)
    context = DecisionContext.resolve(TABLE, METADATA, policy, calibration, contention=heat, at_ms=NOON)
    purgeable = Counter(file.partition for file in files if is_purgeable(file, policy))
    states = count_live_files(files, policy)
    rebuilt = [
        evaluate(context, partition, state, Trigger(4, purgeable=purgeable[partition]), COMPACTION)
        for partition, state in states.items()
    ]
    jobs = [job_request(context, made) for made in rebuilt if made.prediction]
    event(f"{len(jobs)} jobs")
    assert sorted(done.step.jobs, key=lambda job: job.key.partition) == sorted(jobs, key=lambda job: job.key.partition)
    linked = {index for _, index in done.step.ledger if index >= 0}
    assert linked == set(range(len(jobs))), "every job is named by a record of the ledger"


@given(files=live_files(), policy=POLICIES, kind=st.sampled_from(RewriteKind))
def test_a_plan_has_work_exactly_in_the_partitions_that_a_decision_gives_a_job(
    files: tuple[DataFile, ...], policy: Policy, kind: RewriteKind
) -> None:
    if kind is RewriteKind.FULL:
        # A full rewrite also moves files off harmful paths, which the rolling state does not count.
        policy = replace(policy, portable_paths=PortablePaths.NEVER)
    snapshot = Snapshot(4, 0, METADATA, TableProtocol(1, 2), files)
    planned = plan_table(snapshot, PlanSelection(rewrite_kind=kind), policy, [COMPACTION], 0)
    source = TriggerSource.REBUILD if kind is RewriteKind.LEVELS else TriggerSource.TIMER
    context = DecisionContext.of_policy(policy, METADATA.partition_columns)
    purgeable = Counter(file.partition for file in files if kind is RewriteKind.LEVELS and is_purgeable(file, policy))
    decisions = [
        evaluate(context, partition, state, Trigger(4, source, kind, purgeable[partition]), COMPACTION)
        for partition, state in count_live_files(files, policy).items()
    ]
    with_job = {made.partition for made in decisions if made.verdict is DecisionKind.ENQUEUE}
    if kind is not RewriteKind.LEVELS and policy.filter is not None:
        with_job.discard(PARTITIONS[2])  # The filter leaves it out; a timer is never set for it.
    assert {made.partition for made in planned.plans} == with_job
    assert planned.partitions == len(decisions) == len(planned.plans) + sum(planned.reasons.values())
    if kind is RewriteKind.LEVELS:
        assert planned.reasons == Counter(made.reason for made in decisions if made.prediction is None)
