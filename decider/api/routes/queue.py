"""The queue: depth, dispatch order, settings, weights, limits, budgets, pauses and the audit."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from decider.api.budget_view import BudgetView, budget_views
from decider.api.declared_tables import require_own_pause
from decider.api.dependencies import Group, Http, Queue, Tables
from decider.api.openapi import failures
from decider.api.routes.jobs import label_of_job
from decider.api.services import QueueServices, TableServices
from decider.store.queue.occupancy import quota_occupation
from decider.store.queue.queue_admin import limits_among
from decider.store.stored_values import moment
from decider.web.base_model import RequestModel, ResponseModel, examples
from shared.errors import InvalidInput, Unsupported
from shared.policy import parsers
from shared.queue import keys
from shared.queue.admin_commands import SlotLimit, SlotQuota
from shared.queue.limits import MAX_FORESEEN
from shared.queue.model import Scope
from shared.queue.queries import DispatchReason, NextJob
from shared.queue.settings import SETTINGS, QueueSettings
from shared.table import TableId

SCOPE: dict[str, Any] = {"scope": "tenant", "name": "sales"}


class NextJobView(ResponseModel):
    """A job to be dispatched next, with the reason for its position."""

    id: str = Field(description="Job id.")
    table: str = Field(description="Table id.")
    partition_label: str = Field(description="Partition label; empty if the job ended meanwhile.")
    tenant: str = Field(description="Tenant.")
    band: str = Field(description="`urgent`, `high`, `normal`, `low` or `background`.")
    priority: int = Field(
        description="Priority within the band, 0 (first) to 31 (last): benefit per cost, a factor of two per step."
    )
    reason: str = Field(
        description="`strict_priority`, `fair_share`, `starvation_guard` (a weighted band after a run of strict "
        "claims), or `background` (no other band has a job that may start)."
    )
    virtual_start: tuple[int, int, int] = Field(
        description="Virtual start times of band and tenant, and the table's turn in milliseconds since 1970: the "
        "arrival of its best job, later by `aging` for each step of priority and by what the table owes. The smallest "
        "is served first."
    )
    enqueued_at: datetime | None = Field(description="Time of the first enqueue.")
    message: str = Field(description="Human-readable reason.")


class QueueView(ResponseModel):
    """Current state of the queue."""

    depth: dict[str, int] = Field(description="Number of jobs by state.")
    oldest_wait_s: float = Field(description="Wait of the oldest queued job in seconds.")
    bands: dict[str, int] = Field(description="Queued jobs by band.")
    tenants: dict[str, int] = Field(description="Queued jobs by tenant.")
    tables: dict[str, int] = Field(description="Queued jobs by table id.")
    table_names: dict[str, str] = Field(description="Names of the tables that this answer mentions, by id.")
    oldest_waits_s: dict[str, dict[str, float]] = Field(
        description="Wait of the oldest queued job in seconds, by `bands`, `tenants` and `tables`, where known."
    )
    slots: int = Field(description="Total slots of all actors, the base of quotas; 0 if unknown.")
    occupancy_window_s: float = Field(
        description="Length of the window that `occupancy` covers, in seconds; at most an hour."
    )
    occupancy: dict[str, dict[str, float]] = Field(
        description="Share of slot time used, by `tenants` and `tables`; empty while `slots` is 0."
    )
    quota_occupation: dict[str, dict[str, float]] = Field(
        description="Slot time used as a share of the quota or limit, by `tenants` and `tables` that have one: near 1 "
        "with enough work, above 1 where a scope is oversold; empty while `slots` is 0."
    )
    settings: dict[str, str] = Field(
        description="Weights, limits and pauses (`!` marks a paused tenant or table); of tables, those in the group."
    )
    budgets: tuple[BudgetView, ...] = Field(description="What the jobs of tenants and of the queue may use.")
    next: tuple[NextJobView, ...] = Field(description="Next claims in order, assuming no arrivals and no completions.")


class PauseRequest(RequestModel, json_schema_extra=examples(SCOPE)):
    """Scope to pause or resume."""

    scope: Literal["queue", "band", "tenant", "table"] = Field(description="Kind of scope.")
    name: str = Field("", max_length=300, description="Band 0 to 4, tenant, or table id; empty for the queue.")


class ShareRequest(RequestModel, json_schema_extra=examples(SCOPE | {"weight": 2.0})):
    """Weight, limit, quota or budget of a scope; omitted fields stay unchanged."""

    scope: Literal["queue", "band", "tenant", "table"] = Field(
        description="Kind of scope; the queue has only a budget."
    )
    name: str = Field("", max_length=300, description="Band 0 to 4, tenant, or table id; empty for the queue.")
    weight: float | None = Field(None, description="Weight, 0.01 to 100; default 1.")
    limit: int | None = Field(None, ge=0, description="Maximum number of concurrent jobs; 0 removes the limit.")
    quota_percent: int | None = Field(None, ge=1, le=100, description="Maximum share of all slots, in percent.")
    budget: str | None = Field(
        None,
        max_length=200,
        description="What its jobs may use, such as `2 core-hours/day; 20 USD/month`; `none` removes the budget.",
    )


class AdminResult(ResponseModel):
    """Result of an administrative request."""

    message: str = Field(description="Human-readable outcome.")


class AuditReport(ResponseModel):
    """Result of an audit."""

    keys_checked: int = Field(description="Number of keys checked.")
    repaired: int = Field(description="Number of repairs; 0 for a consistent queue.")


def _of(name: str) -> Any:
    """Return the field of one setting, with its range and its words."""
    known = SETTINGS[name]
    description = f"{known.description} Unit: {known.unit}. Default: {known.default}."
    return Field(None, ge=known.low, le=known.high, description=description)


class QueueSettingsUpdate(RequestModel, json_schema_extra=examples({"aging_ms": 120_000, "max_attempts": 5})):
    """Settings to change; omitted settings stay unchanged."""

    strict_bands: int | None = _of("strict_bands")
    strict_in_row: int | None = _of("strict_in_row")
    aging_ms: int | None = _of("aging_ms")
    max_attempts: int | None = _of("max_attempts")
    backoff_base_ms: int | None = _of("backoff_base_ms")
    backoff_cap_ms: int | None = _of("backoff_cap_ms")
    half_open_ms: int | None = _of("half_open_ms")
    actors: int | None = _of("actors")


class QueueSettingView(ResponseModel):
    """One setting of the queue."""

    name: str = Field(description="Setting name; names of durations end with the unit.")
    value: int = Field(description="Current value.")
    unit: str = Field(description="Unit: `bands`, `claims`, `attempts`, `slots` or `ms`.")
    default: int = Field(description="Default value.")
    minimum: int = Field(description="Minimum value.")
    maximum: int = Field(description="Maximum value.")
    writable: bool = Field(description="False for values that the decider sets.")
    description: str = Field(description="Description.")


class QueueSettingsView(ResponseModel):
    """All settings of the queue."""

    settings: tuple[QueueSettingView, ...] = Field(description="Settings.")


FORESEEN = (
    "Maximum number of next claims to return. Each is simulated inside Redis, so the limit bounds the time that Redis "
    "is blocked."
)

router = APIRouter(prefix="/v1/queue", tags=["queue"])


@router.get("", summary="Show the queue", response_model=QueueView, responses=failures(404, 422))
async def show_queue(
    tables: Tables,
    queue: Group,
    http: Http,
    next_claims: Annotated[int, Query(ge=1, le=MAX_FORESEEN, description=FORESEEN)] = 20,
    by_table: Annotated[bool, Query(description="Whether to list jobs, waits and slot use by table.")] = True,
) -> Response:
    """Show queue depth by band, tenant and table, settings, and the next jobs to be dispatched."""
    key = f"queue {queue.executor.name} {next_claims} {by_table}"
    return await http.expensive_calls.queue_reads.get(
        key, lambda: _queue(tables, queue, next_claims, by_table=by_table)
    )


async def _queue(tables: TableServices, queue: QueueServices, next_claims: int, *, by_table: bool) -> QueueView:
    depth = await queue.admin.depth()
    waiting = await queue.admin.waiting_counts()
    order = await queue.admin.order(next_claims)
    partitions = await queue.admin.partitions([one.id for one in order])
    oldest = await queue.admin.oldest_waits()
    held = await queue.admin.occupancy()
    settings = await settings_of(tables, queue)
    quotas = quota_occupation(held, limits_among(settings))
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
        settings=dict(settings),
        budgets=budget_views(await queue.admin.budgets()),
        next=tuple(_next(one, partitions.get(one.id, "")) for one in order),
    )


@router.get("/settings", summary="Show queue settings", responses=failures(404, 422))
async def show_settings(group: Group) -> QueueSettingsView:
    """Show each setting with its value, unit, default, range and description."""
    return _settings(await group.admin.settings())


@router.patch("/settings", summary="Change queue settings", responses=failures(400, 404, 409, 413, 422))
async def change_settings(asked: QueueSettingsUpdate, group: Group, http: Http) -> QueueSettingsView:
    """Change settings at run time; omitted settings stay unchanged.

    Delays and quarantines that have started keep their end. `actors` is refused where no standalone starts actors.
    """
    if asked.actors is not None and not http.settings.is_supervised:
        raise Unsupported(
            "nothing here starts actors as this setting says: change the number of replicas, or let KEDA scale them",
            field="actors",
        )
    await group.admin.configure({name: value for name, value in asked.model_dump().items() if value is not None})
    return _settings(await group.admin.settings())


@router.put("/weights", summary="Set a weight, limit, quota or budget", responses=failures(404, 422))
async def set_weight(body: ShareRequest, queue: Queue, group: Group) -> AdminResult:
    """Set the weight of a band, tenant or table, the maximum number of its concurrent jobs, or what they may use.

    Budgets, and what is set for a table, hold in all groups.
    """
    level = Scope(body.scope)
    group = _of_scope(level, queue, group)
    changes = []
    if body.weight is not None:
        await group.admin.set_weight(level, body.name, body.weight)
        changes.append(f"weight {body.weight:g}")
    if body.quota_percent is not None:
        await group.admin.set_limit(level, body.name, SlotQuota(body.quota_percent))
        changes.append(f"at most {body.quota_percent}% of the slots")
    elif body.limit is not None:
        await group.admin.set_limit(level, body.name, SlotLimit(body.limit) if body.limit else None)
        jobs = "job" if body.limit == 1 else "jobs"
        changes.append(f"at most {body.limit} concurrent {jobs}" if body.limit else "no limit")
    if body.budget is not None:
        try:
            budget = parsers.budgets(body.budget)
        except ValueError as problem:
            raise InvalidInput(f"budget {body.budget!r} cannot be used: {problem}", field="budget") from problem
        await queue.admin.set_budget(level, body.name, budget or "")
        changes.append(f"at most {budget}" if budget else "no budget")
    named = f"{body.scope.capitalize()} {body.name}".strip()
    return AdminResult(message=f"{named}: {', '.join(changes) or 'nothing changed'}.")


@router.post("/pause", summary="Pause a scope", responses=failures(404, 409, 422))
async def pause(body: PauseRequest, tables: Tables, queue: Queue, group: Group) -> AdminResult:
    """Stop dispatching jobs of the queue, a band, a tenant or a table; running jobs continue."""
    await _require_own_pause(body, tables)
    await _of_scope(Scope(body.scope), queue, group).admin.pause(Scope(body.scope), body.name, paused=True)
    return AdminResult(message=f"{_named(body)} is paused; running jobs continue.")


@router.post("/resume", summary="Resume a scope", responses=failures(404, 409, 422))
async def resume(body: PauseRequest, tables: Tables, queue: Queue, group: Group) -> AdminResult:
    """Dispatch jobs of a paused scope again, within its limits."""
    await _require_own_pause(body, tables)
    await _of_scope(Scope(body.scope), queue, group).admin.pause(Scope(body.scope), body.name, paused=False)
    return AdminResult(message=f"{_named(body)} is resumed.")


async def _require_own_pause(body: PauseRequest, tables: TableServices) -> None:
    if Scope(body.scope) is Scope.TABLE and (table := await tables.registry.get(TableId(body.name))) is not None:
        require_own_pause(table, tables)


@router.post("/audit", summary="Audit and repair the queue", responses=failures())
async def audit(queue: Queue) -> AuditReport:
    """Rebuild the indexes of all groups from the jobs and repair inconsistencies; the queue stays available."""
    reports = [await one.admin.audit() for one in queue.by_group.values()]
    return AuditReport(keys_checked=sum(one.keys for one in reports), repaired=sum(one.repaired for one in reports))


def _of_scope(scope: Scope, queue: QueueServices, group: QueueServices) -> QueueServices:
    """Return the services that set something: what is set for a table holds in whatever group it is."""
    return queue if scope is Scope.TABLE else group


async def settings_of(tables: TableServices, queue: QueueServices) -> Mapping[str, str]:
    """Return weights, limits and pauses of a group; of tables, only where they are in it."""
    held, mark = await queue.admin.weights_and_limits(), f":{Scope.TABLE}|"
    of_tables = {name: TableId(name.partition(mark)[2]) for name in held if mark in name}
    groups = await tables.states.groups(sorted(set(of_tables.values())))
    own = keys.group_of(queue.executor.name)
    return {name: value for name, value in held.items() if name not in of_tables or groups[of_tables[name]] == own}


def _seconds(waits_ms: Mapping[str, int]) -> dict[str, float]:
    return {name: wait_ms / 1000 for name, wait_ms in waits_ms.items()}


def _settings(in_force: QueueSettings) -> QueueSettingsView:
    values = asdict(in_force)
    return QueueSettingsView(
        settings=tuple(
            QueueSettingView(
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


def _next(one: NextJob, partition: str) -> NextJobView:
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
        partition_label=label_of_job(partition) if partition else "",
        tenant=one.tenant,
        band=band,
        priority=one.priority,
        reason=one.reason.value,
        virtual_start=(one.band_virtual_start, one.tenant_virtual_start, one.table_turn_ms),
        enqueued_at=moment(one.enqueued_at_ms),
        message=message,
    )
