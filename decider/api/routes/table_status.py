"""The status of one table, combined from several stores; nothing is stored for it alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import Field

from decider.api.budget_view import BudgetView, UsageView, budget_views, usage_view
from decider.api.dependencies import Http, KnownTable, Operations, Queue, Tables
from decider.api.openapi import failures
from decider.api.policy_in_force import PolicyInForce, policy_view
from decider.api.routes.decisions import DecisionRecord, decision_view
from decider.api.routes.jobs import JobSummary, job_view
from decider.api.routes.partitions import LayoutView, layout_view
from decider.api.routes.refused_files import RefusedFilesView, refused_files
from decider.api.routes.status import Amplification, amplification
from decider.api.routes.tables import CONDITION, TableRefusal, TableView, now_refused
from decider.api.services import QueueServices, TableServices
from decider.decide.calibration import Calibration
from decider.decide.context import DecisionContext, KnownRefusals
from decider.decide.decision import Trigger
from decider.decide.evaluate import evaluate_each
from decider.decide.ledger import LedgerRecord, UnreadableRecord
from decider.optimize.partition_selector import WHOLE_TABLE_LABEL, label
from decider.optimize.property_trigger import TriggerOutcome
from decider.state.contention import ALL_PARTITIONS, WriteContention
from decider.state.effective_policy import LogStatus
from decider.state.target_fit import NO_TARGET, TargetFit
from decider.store.registry.table_query import TableCondition
from decider.store.stored_values import moment
from decider.store.tables.table_state import TableState
from decider.web.base_model import Moment, ResponseModel
from shared.layout.eligibility import NO_EXCESS, Excess
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.partition_refusals import TableFingerprint
from shared.policy.policy import Policy
from shared.policy.work_windows import QueueWindow
from shared.prices import Prices, Usage, amount_text
from shared.queue.model import JobKey, Scope, job_id
from shared.table import PartitionColumn, TableId, TableRef

router = APIRouter(prefix="/v1/tables", tags=["tables"])


class TableCalibration(ResponseModel):
    """Predicted and measured cost of a table's latest rewrites, and the correction applied to the next prediction."""

    runs: int = Field(description="Number of runs in the sums: the latest 32 to 63.")
    predicted_bytes: int = Field(description="Predicted bytes read, before correction.")
    measured_bytes: int = Field(description="Bytes read.")
    predicted_files_removed: int = Field(description="Predicted decrease of the file count, before correction.")
    measured_files_removed: int = Field(description="Measured decrease of the file count.")
    shrink: float = Field(
        description="Output size as a share of input size, used by the promotion rule for groups that total less than "
        "a full file."
    )
    full_shrink: float = Field(
        description="Output size as a share of input size, used by the promotion rule for groups that total a full "
        "file or more."
    )
    bytes_ratio: float = Field(description="Correction factor for the next prediction of bytes.")
    files_removed_ratio: float = Field(description="Correction factor for the next prediction of removed files.")
    groups_promoted: int = Field(
        description="File groups whose output reached a higher level than every input, since registration."
    )
    groups_not_promoted: int = Field(
        description="File groups whose output was smaller than predicted and stayed on its level."
    )


class ManualRun(ResponseModel):
    """Outcome of the latest run requested through the property `use.optimization.type`."""

    requested: str = Field(description="Property value, with the bytes per iteration if given.")
    version: int = Field(description="Table version of the request.")
    at: datetime = Field(description="Time of the request.")
    outcome: str = Field(description="Machine-readable outcome.")
    message: str = Field(description="Human-readable outcome.")
    jobs: int = Field(description="Number of jobs queued.")


class CursorView(ResponseModel):
    """Incremental state of a table."""

    version: int = Field(description="Table version of the state.")
    applied_at: datetime | None = Field(description="Time at which the commit was applied.")
    committed_at: datetime | None = Field(description="Commit time, by the writer's clock.")
    lag_s: float | None = Field(description="Seconds from commit to application, over both clocks.")
    rebuilds: int = Field(description="Number of rebuilds of the state from the log.")
    rebuild_reason: str = Field(description="Reason for the latest rebuild.")


class PartitionContention(ResponseModel):
    """Recent MERGE, UPDATE and DELETE activity in a partition."""

    partition_key: str = Field(description="Partition key; `*` means all partitions.")
    partition_label: str = Field(description="Partition label.")
    busy_ratio: float = Field(
        description="Share of the last hour with DML, 0 to 1; above `max-write-contention` jobs are deferred."
    )


class WorkWindowView(ResponseModel):
    """Work window of a table."""

    windows: str = Field(description="Windows in which jobs may start, as they are configured.")
    applies_to: str = Field(description="Jobs that wait for it: `all` or `heavy`.")
    is_open: bool = Field(description="Whether these jobs may start now.")
    changes_at: Moment = Field(description="When it closes, or opens if it is closed; null if that is not known.")


class TargetChangeView(ResponseModel):
    """A change of a target that is chosen for its table."""

    at: Moment = Field(description="Time of the change.")
    from_bytes: int = Field(description="Target before it, in bytes.")
    to_bytes: int = Field(description="Target from then on, in bytes.")
    reason: str = Field(description="What it was decided by.")
    mean_file_bytes: int = Field(description="Mean size of the table's files at the change.")
    judged_bytes: int | None = Field(description="The same at least a week later; null until then.")


class TargetView(ResponseModel):
    """The target file size of a table with `target-file-size=auto`."""

    bytes: int = Field(description="Target in effect.")
    changes: tuple[TargetChangeView, ...] = Field(description="Its newest changes, oldest first.")


class TableStatus(TableView):
    """Status of a table."""

    state: CursorView | None = Field(description="Incremental state; null before the first read of the log.")
    condition: TableCondition = Field(description=CONDITION)
    group: str = Field(description="Group of the queue whose actors run its jobs.")
    paused: bool = Field(description="Whether jobs of the table are not dispatched.")
    work_window: WorkWindowView | None = Field(description="When its jobs may start; null for any time.")
    budgets: tuple[BudgetView, ...] = Field(description="What its jobs may use: its own, its tenant's, the queue's.")
    target: TargetView | None = Field(description="Target file size, where it is chosen; null where it is set.")
    partitions: int = Field(description="Number of partitions with files.")
    eligible_partitions: int = Field(description="Number of partitions eligible for a rewrite.")
    layout: LayoutView = Field(description="File layout over all partitions.")
    policy: PolicyInForce = Field(description="Policy in effect with the source of each value.")
    last_decision: DecisionRecord | None = Field(description="Latest decision.")
    last_job: JobSummary | None = Field(description="Latest job, if it exists or its run is still stored.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")
    refused_files: tuple[RefusedFilesView, ...] = Field(
        description="Files that are not rewritten as they are, of the first partitions that have any."
    )
    manual_run: ManualRun | None = Field(description="Latest run requested by a property; null if none.")
    counters: dict[str, int] = Field(description="Funnel counts of the table.")
    amplification: Amplification = Field(description="Bytes rewritten, apart for the backlog and for later commits.")
    usage: UsageView = Field(description="What the runs on the table used, and its cost.")
    storage_cost_per_month: str | None = Field(
        description="Cost of storing the live files for a month; null without `LAKEWRIGHT_PRICES`."
    )
    write_contention: tuple[PartitionContention, ...] = Field(
        description="Partitions with MERGE, UPDATE or DELETE in the last hour, busiest first."
    )
    calibration: TableCalibration = Field(
        description="Predicted and measured cost, and the correction for the next job."
    )


LEDGER_DEPTH = 200
"""Records that are searched for the last job; the run of an older job has left the history as well."""


@dataclass(slots=True)
class _TableTotals:
    """All partitions of a table added up."""

    partitions: int = 0
    eligible: int = 0
    total: PartitionStats = EMPTY_STATS
    excess: Excess = NO_EXCESS


async def table_status(
    table: TableRef, tables: TableServices, queue: QueueServices, prices: Prices | None, *, now_ms: int
) -> TableStatus:
    """Combine what is known of a table; prices: of what its runs used, None without any."""
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
    refused = await _refusals(table.id, cursor, in_force.policy, tables)
    context = DecisionContext.of_policy(learned.applied_to(in_force.policy), columns, now_ms)
    context = replace(context, refusals=refused)
    summary = await _summary(table.id, context, tables)
    records = await tables.ledgers.newest(table.id, limit=LEDGER_DEPTH)
    ((row, jobs),) = await tables.index.rows([table])
    refusal = now_refused(await tables.registry.refusal(table.id), cursor, in_force.refusal)
    return TableStatus(
        **TableView.of(table).model_dump(),
        state=_cursor_view(cursor) if cursor else None,
        condition=row.condition(jobs),
        group=(cursor.group if cursor else "") or queue.executor.name,
        paused=await queue.admin.is_paused(Scope.TABLE, table.id),
        work_window=_window_view(await queue.admin.work_window(table.id), now_ms),
        budgets=budget_views(await queue.admin.budgets(table)),
        target=_target_view(cursor.target_fit if cursor else NO_TARGET, in_force.policy),
        partitions=summary.partitions,
        eligible_partitions=summary.eligible,
        layout=layout_view(summary.total, in_force.policy.size_levels, summary.excess),
        policy=policy_view(in_force, now_ms),
        last_decision=decision_view(records[0], columns) if records else None,
        last_job=await _last_job(table.id, records, queue, prices),
        refusal=refusal,
        refused_files=await refused_files(table, cursor, in_force.policy, tables) if cursor else (),
        manual_run=await _manual_run(table.id, tables),
        counters=counters,
        amplification=amplification(counters),
        usage=usage_view(Usage.of_counters(counters), prices),
        storage_cost_per_month=amount_text(prices.month_of(summary.total.bytes)) if prices else None,
        write_contention=_heat_views(cursor.contention, columns, now_ms) if cursor else (),
        calibration=table_calibration(learned, counters),
    )


def _window_view(window: QueueWindow | None, now_ms: int) -> WorkWindowView | None:
    if window is None:
        return None
    return WorkWindowView(
        windows=window.held.windows,
        applies_to=window.held.held,
        is_open=window.is_open(now_ms),
        changes_at=moment(window.changes_ms(now_ms)),
    )


def _target_view(fit: TargetFit, policy: Policy) -> TargetView | None:
    if not policy.fits_target:
        return None
    changes = (
        TargetChangeView(
            at=moment(one.at_ms),
            from_bytes=one.before_bytes,
            to_bytes=one.after_bytes,
            reason=str(one),
            mean_file_bytes=one.basis.mean_file_bytes,
            judged_bytes=one.judged_bytes or None,
        )
        for one in fit.changes
    )
    return TargetView(bytes=policy.target_bytes, changes=tuple(changes))


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


async def _refusals(table: TableId, cursor: TableState | None, policy: Policy, tables: TableServices) -> KnownRefusals:
    if cursor is None or not await tables.states.has_refusals(table):
        return KnownRefusals()
    found = await tables.states.refusals(table)
    return KnownRefusals(found.in_force(TableFingerprint.of(cursor.metadata, policy), cursor.version))


async def _summary(table: TableId, context: DecisionContext, tables: TableServices) -> _TableTotals:
    summary, now = _TableTotals(), Trigger(0)
    async for partition, state in tables.states.iterate_partitions(table):
        summary.partitions += 1
        summary.total += state.total
        summary.excess += Excess.of([state], context.policy.target_bytes)
        decisions = evaluate_each(context, partition, state, now, tables.actions)
        summary.eligible += any(made.prediction is not None for made in decisions)
    return summary


async def _last_job(
    table: TableId, records: tuple[LedgerRecord | UnreadableRecord, ...], queue: QueueServices, prices: Prices | None
) -> JobSummary | None:
    newest = next((record for record in records if record.outcome and record.partition is not None), None)
    if newest is None or newest.partition is None:
        return None
    job = job_id(JobKey(table, newest.partition, newest.action))
    live = await queue.runs.job(job)
    if live is not None:
        return job_view(live, prices)
    runs = await queue.runs.runs_of(job, limit=1)
    return job_view(runs[0], prices) if runs else None


def table_calibration(learned: Calibration, counters: Mapping[str, int]) -> TableCalibration:
    """Show what was learned of a table, with the groups that its counters have counted."""
    return TableCalibration(
        runs=learned.runs,
        predicted_bytes=learned.predicted_bytes,
        measured_bytes=learned.measured_bytes,
        predicted_files_removed=learned.predicted_removed,
        measured_files_removed=learned.measured_removed,
        shrink=float(learned.shrink),
        full_shrink=float(learned.full_shrink),
        bytes_ratio=round(float(learned.bytes_ratio), 4),
        files_removed_ratio=round(float(learned.removed_ratio), 4),
        groups_promoted=counters.get("groups_promoted", 0),
        groups_not_promoted=counters.get("groups_not_promoted", 0),
    )


@router.get("/{name}", summary="Show a table", responses=failures(404, 422))
async def show_table(
    table: KnownTable, tables: Tables, queue: Queue, operations: Operations, http: Http
) -> TableStatus:
    """Show a table with its policy, the source of each value, its layout, latest decision and latest job."""
    async with http.expensive_calls.table_reads.turn():
        return await table_status(table, tables, queue, http.settings.prices, now_ms=operations.now_ms())
