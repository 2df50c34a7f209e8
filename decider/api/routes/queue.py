"""The queue: depth, dispatch order, settings, weights, limits, pauses and the audit."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from decider.api.declared_tables import require_own_pause
from decider.api.dependencies import Queue, Tables
from decider.api.openapi import failures
from decider.api.schemas import queue_settings
from decider.api.schemas.queue import AdminResult, AuditReport, NextJobView, PauseRequest, QueueView, ShareRequest
from decider.api.services import TableServices
from decider.store.occupancy import quota_occupation
from decider.web.base_model import moment
from shared.queue.admin_commands import SlotLimit, SlotQuota
from shared.queue.limits import MAX_FORESEEN
from shared.queue.model import Scope
from shared.queue.queries import DispatchReason, NextJob
from shared.queue.settings import SETTINGS, QueueSettings
from shared.table import TableId

FORESEEN = (
    "Maximum number of next claims to return. Each is simulated inside Redis, so the limit bounds the time that Redis "
    "is blocked."
)

router = APIRouter(prefix="/v1/queue", tags=["queue"])


@router.get("", summary="Show the queue", responses=failures(422))
async def show_queue(
    tables: Tables,
    queue: Queue,
    next_claims: Annotated[int, Query(ge=1, le=MAX_FORESEEN, description=FORESEEN)] = 20,
    by_table: Annotated[bool, Query(description="Whether to list jobs, waits and slot use by table.")] = True,  # noqa: FBT002
) -> QueueView:
    """Show queue depth by band, tenant and table, settings, and the next jobs to be dispatched."""
    depth = await queue.admin.depth()
    waiting = await queue.admin.waiting_counts()
    order = await queue.admin.order(next_claims)
    oldest = await queue.admin.oldest_waits()
    held = await queue.admin.occupancy()
    quotas = quota_occupation(held, await queue.admin.limits())
    mentioned = {job.table for job in order}
    if by_table:
        mentioned |= {*waiting.tables, *held.tables, *quotas[Scope.TABLE]}
    names = await tables.registry.get_many(set(map(TableId, mentioned)))
    return QueueView(
        depth={state.value: count for state, count in depth.depth.items()},
        oldest_wait_s=depth.oldest_wait_ms / 1000,
        bands=dict(waiting.bands),
        tenants=dict(waiting.tenants),
        tables=dict(waiting.tables) if by_table else {},
        table_names={one.id: one.name for one in names.values()},
        oldest_waits_s={
            "bands": _seconds(oldest.bands),
            "tenants": _seconds(oldest.tenants),
            "tables": _seconds(oldest.tables) if by_table else {},
        },
        slots=held.slots,
        occupancy_window_s=held.window_ms / 1000,
        occupancy={"tenants": dict(held.tenants), "tables": dict(held.tables) if by_table else {}},
        quota_occupation={
            "tenants": quotas[Scope.TENANT],
            "tables": quotas[Scope.TABLE] if by_table else {},
        },
        settings=dict(await queue.admin.weights_and_limits()),
        next=tuple(map(_next, order)),
    )


@router.get("/settings", summary="Show queue settings", responses=failures())
async def show_settings(queue: Queue) -> queue_settings.QueueSettingsView:
    """Show each setting with its value, unit, default, range and description."""
    return _settings(await queue.admin.settings())


@router.patch("/settings", summary="Change queue settings", responses=failures(400, 413, 422))
async def change_settings(asked: queue_settings.QueueSettingsUpdate, queue: Queue) -> queue_settings.QueueSettingsView:
    """Change settings at run time; omitted settings stay unchanged.

    Delays and quarantines that have started keep their end.
    """
    await queue.admin.configure({name: value for name, value in asked.model_dump().items() if value is not None})
    return _settings(await queue.admin.settings())


@router.put("/weights", summary="Set a weight, limit or quota", responses=failures(422))
async def set_weight(body: ShareRequest, queue: Queue) -> AdminResult:
    """Set the weight of a band, tenant or table, or the maximum number of its concurrent jobs."""
    level = Scope(body.scope)
    changes = []
    if body.weight is not None:
        await queue.admin.set_weight(level, body.name, body.weight)
        changes.append(f"weight {body.weight:g}")
    if body.quota_percent is not None:
        await queue.admin.set_limit(level, body.name, SlotQuota(body.quota_percent))
        changes.append(f"at most {body.quota_percent}% of the slots")
    elif body.limit is not None:
        await queue.admin.set_limit(level, body.name, SlotLimit(body.limit) if body.limit else None)
        jobs = "job" if body.limit == 1 else "jobs"
        changes.append(f"at most {body.limit} concurrent {jobs}" if body.limit else "no limit")
    return AdminResult(message=f"{body.scope.capitalize()} {body.name}: {', '.join(changes) or 'nothing changed'}.")


@router.post("/pause", summary="Pause a scope", responses=failures(409, 422))
async def pause(body: PauseRequest, tables: Tables, queue: Queue) -> AdminResult:
    """Stop dispatching jobs of the queue, a band, a tenant or a table; running jobs continue."""
    await _require_own_pause(body, tables)
    await queue.admin.pause(Scope(body.scope), body.name, paused=True)
    return AdminResult(message=f"{_named(body)} is paused; running jobs continue.")


@router.post("/resume", summary="Resume a scope", responses=failures(409, 422))
async def resume(body: PauseRequest, tables: Tables, queue: Queue) -> AdminResult:
    """Dispatch jobs of a paused scope again, within its limits."""
    await _require_own_pause(body, tables)
    await queue.admin.pause(Scope(body.scope), body.name, paused=False)
    return AdminResult(message=f"{_named(body)} is resumed.")


async def _require_own_pause(body: PauseRequest, tables: TableServices) -> None:
    if Scope(body.scope) is Scope.TABLE and (table := await tables.registry.get(TableId(body.name))) is not None:
        require_own_pause(table, tables)


@router.post("/audit", summary="Audit and repair the queue", responses=failures())
async def audit(queue: Queue) -> AuditReport:
    """Rebuild queue indexes from the jobs and repair inconsistencies; the queue stays available."""
    report = await queue.admin.audit()
    return AuditReport(keys_checked=report.keys, repaired=report.repaired)


def _seconds(waits_ms: Mapping[str, int]) -> dict[str, float]:
    return {name: wait_ms / 1000 for name, wait_ms in waits_ms.items()}


def _settings(in_force: QueueSettings) -> queue_settings.QueueSettingsView:
    values = asdict(in_force)
    return queue_settings.QueueSettingsView(
        settings=tuple(
            queue_settings.QueueSettingView(
                name=name,
                value=values[name],
                unit=known.unit.value,
                default=known.default,
                minimum=known.low,
                maximum=known.high,
                writable=not known.is_set_by_decider,
                description=known.description,
            )
            for name, known in SETTINGS.items()
        )
    )


def _named(body: PauseRequest) -> str:
    return "The queue" if body.scope == "queue" else f"{body.scope.capitalize()} {body.name}"


def _next(one: NextJob) -> NextJobView:
    band = one.band.name.lower()
    message = {
        DispatchReason.STRICT_PRIORITY: f"Band {band} has strict priority.",
        DispatchReason.STARVATION_GUARD: f"Starvation guard: band {band} is served after a run of strict claims.",
        DispatchReason.FAIR_SHARE: (
            f"Band {band} and tenant {one.tenant} are furthest below fair share; its table {one.table} is next."
        ),
        DispatchReason.BACKGROUND: "No other band has a job that may start.",
    }[one.reason]
    return NextJobView(
        id=one.id,
        table=one.table,
        tenant=one.tenant,
        band=band,
        priority=one.priority,
        reason=one.reason.value,
        virtual_start=(one.band_virtual_start, one.tenant_virtual_start, one.table_turn_ms),
        enqueued_at=moment(one.enqueued_at_ms),
        message=message,
    )
