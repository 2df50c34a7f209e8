"""The status of one table, combined from several stores; nothing is stored for it alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from decider.api.schemas.jobs import JobSummary
from decider.api.schemas.table_status import CursorView, ManualRun, PartitionContention, TableStatus
from decider.api.services import QueueServices, TableServices
from decider.api.views.calibration import table_calibration
from decider.api.views.jobs import job_view
from decider.api.views.tables import decision_view, layout_view, policy_view, refusal_view, table_view
from decider.decide.context import DecisionContext
from decider.decide.decision import Trigger
from decider.decide.evaluate import evaluate_each
from decider.decide.ledger import LedgerRecord, UnreadableRecord
from decider.optimize.partition_selector import WHOLE_TABLE_LABEL, label
from decider.optimize.property_trigger import TriggerOutcome
from decider.state.contention import ALL_PARTITIONS, WriteContention
from decider.state.effective_policy import LogStatus
from decider.store.table_registry import StoredRefusal
from decider.store.table_state import TableState
from decider.web.base_model import moment
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.policy import Policy
from shared.queue.model import JobKey, Scope, job_id
from shared.refusals import Refusal
from shared.table import PartitionColumn, TableId, TableRef

LEDGER_DEPTH = 200
"""Records that are searched for the last job; the run of an older job has left the history as well."""


@dataclass(slots=True)
class _TableTotals:
    """All partitions of a table added up."""

    partitions: int = 0
    eligible: int = 0
    total: PartitionStats = EMPTY_STATS


async def table_status(table: TableRef, tables: TableServices, queue: QueueServices, *, now_ms: int) -> TableStatus:
    """Combine what is known of a table."""
    cursor = await tables.states.state(table.id)
    in_force = tables.defaults.current.resolve(
        table,
        cursor.metadata.configuration if cursor else {},
        cursor.last_good if cursor else {},
        cursor.log_status if cursor else LogStatus(),
    )
    columns = cursor.metadata.partition_columns if cursor else ()
    learned = await tables.states.calibration(table.id)
    counters = dict(await queue.counters.read(table.id))
    summary = await _summary(table.id, learned.applied_to(in_force.policy), columns, tables)
    records = await tables.ledgers.newest(table.id, limit=LEDGER_DEPTH)
    refusal = _now_refused(await tables.registry.refusal(table.id), cursor, in_force.refusal)
    return TableStatus(
        **table_view(table).model_dump(),
        state=_cursor_view(cursor) if cursor else None,
        paused=await queue.admin.is_paused(Scope.TABLE, table.id),
        partitions=summary.partitions,
        eligible_partitions=summary.eligible,
        layout=layout_view(summary.total, in_force.policy.size_levels),
        policy=policy_view(in_force),
        last_decision=decision_view(records[0], columns) if records else None,
        last_job=await _last_job(table.id, records, queue),
        refusal=refusal_view(refusal) if refusal else None,
        manual_run=await _manual_run(table.id, tables),
        counters=counters,
        write_contention=_heat_views(cursor.contention, columns, now_ms) if cursor else (),
        calibration=table_calibration(learned, counters),
    )


def _now_refused(
    noted: StoredRefusal | None, cursor: TableState | None, by_rule: Refusal | None
) -> StoredRefusal | None:
    """Return the current refusal: that of the state, or the one with which the last refresh ended.

    The refresh stores a refusal by rule after the state has moved; until then the state is right.
    """
    if noted is not None and (not noted.code or cursor is None):
        return noted
    if cursor is None or by_rule is None:
        return None
    if noted is not None and noted.code == by_rule.code:
        return noted
    return StoredRefusal(cursor.folded_ms, by_rule.message, code=by_rule.code)


async def _manual_run(table: TableId, tables: TableServices) -> ManualRun | None:
    record = await tables.manual_runs.read(table)
    if record is None:
        return None
    outcome = TriggerOutcome(record.outcome or TriggerOutcome.PENDING)
    return ManualRun(
        requested=record.requested,
        version=record.version,
        at=datetime.fromtimestamp(record.at_ms / 1000, UTC),
        outcome=outcome,
        message=outcome.message,
        jobs=record.jobs,
    )


def _cursor_view(cursor: TableState) -> CursorView:
    return CursorView(
        version=cursor.version,
        applied_at=moment(cursor.folded_ms),
        committed_at=moment(cursor.commit_ms),
        lag_s=(cursor.folded_ms - cursor.commit_ms) / 1000 if cursor.commit_ms else None,
        rebuilds=cursor.rebuilds,
        rebuild_reason=cursor.rebuild_reason,
    )


def _heat_views(
    heat: WriteContention, columns: Sequence[PartitionColumn], now_ms: int
) -> tuple[PartitionContention, ...]:
    shares = {partition: float(heat.busy_ratio(partition, now_ms)) for partition in heat.windows}
    return tuple(
        PartitionContention(
            partition_key=partition,
            partition_label=WHOLE_TABLE_LABEL if partition == ALL_PARTITIONS else label(partition, columns),
            busy_ratio=share,
        )
        for partition, share in sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
        if share
    )


async def _summary(
    table: TableId, policy: Policy, columns: Sequence[PartitionColumn], tables: TableServices
) -> _TableTotals:
    summary = _TableTotals()
    context, now = DecisionContext.of_policy(policy, columns), Trigger(0)
    async for partition, state in tables.states.iterate_partitions(table):
        summary.partitions += 1
        summary.total += state.total
        decisions = evaluate_each(context, partition, state, now, tables.actions)
        summary.eligible += any(made.prediction is not None for made in decisions)
    return summary


async def _last_job(
    table: TableId, records: tuple[LedgerRecord | UnreadableRecord, ...], queue: QueueServices
) -> JobSummary | None:
    newest = next((record for record in records if record.outcome and record.partition is not None), None)
    if newest is None or newest.partition is None:
        return None
    job = job_id(JobKey(table, newest.partition, newest.action))
    live = await queue.runs.job(job)
    if live is not None:
        return job_view(live)
    runs = await queue.runs.runs_of(job, limit=1)
    return job_view(runs[0]) if runs else None
