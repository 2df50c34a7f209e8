"""Groups of the queue: their actors, jobs and quotas, and the work that waits, by which a scaler sets actors."""

from functools import partial

from fastapi import APIRouter, Response
from pydantic import Field

from decider.api.dependencies import Group, Http, Queue, Tables
from decider.api.openapi import failures
from decider.api.routes.queue import settings_of
from decider.api.services import QueueServices, TableServices
from decider.store.queue.backlog import read_backlog
from decider.store.queue.occupancy import quota_occupation, quota_share
from decider.store.queue.queue_admin import limits_among
from decider.web.base_model import ResponseModel
from shared.policy.policy import GIB
from shared.queue.model import JobState, Scope
from shared.table import TableId

MAX_QUOTAS = 100
"""Quotas that are listed for each group: those that are used most."""


class QuotaView(ResponseModel):
    """Quota or limit of a table in its group."""

    table: str = Field(description="Table id.")
    table_name: str = Field(description="Table name.")
    quota: str = Field(description="Slots that the table may use at once: a number, or a share of the group's.")
    occupation_ratio: float = Field(
        description="Slot time used in the last hour as a share of the quota: near 1 with enough work, above 1 where "
        "the table is oversold."
    )


class GroupView(ResponseModel):
    """One group of the queue."""

    group: str = Field(description="Name of the group; the first one has the name of the queue.")
    actors: int = Field(description="Actors of the group that take jobs.")
    wanted_actors: int | None = Field(
        description="Actors that the standalone keeps running; null where something else starts them."
    )
    slots: int = Field(description="Slots of these actors.")
    running: int = Field(description="Jobs that run.")
    waiting: int = Field(description="Jobs that are queued or delayed.")
    oldest_wait_s: float = Field(description="Wait of the oldest queued job in seconds.")
    is_paused: bool = Field(description="Whether the whole group is paused.")
    promised_ratio: float = Field(
        description="Slots that the quotas of its tables promise, as a share of the group's slots; 0 while these are "
        "not known. Above 1, the group is oversold: each table gets the same part of its quota."
    )
    occupation_ratio: float = Field(
        description="Slot time that all its jobs used in the last hour, as a share of the group's slot time."
    )
    is_oversold: bool = Field(description="Whether the quotas promise more slots than the group has.")
    quotas: tuple[QuotaView, ...] = Field(description="Quotas and limits of its tables, those used most first.")


class GroupList(ResponseModel):
    """Groups that this decider serves."""

    groups: tuple[GroupView, ...] = Field(description="Groups; the queue itself is the first.")


router = APIRouter(prefix="/v1", tags=["queue"])


@router.get("/groups", summary="List groups", response_model=GroupList, responses=failures())
async def list_groups(tables: Tables, queue: Queue, http: Http) -> Response:
    """List the groups of the queue with their actors, jobs and quotas."""

    async def read() -> GroupList:
        groups = queue.by_group.items()
        return GroupList(
            groups=tuple(
                [
                    await _group(name, tables, of_group, is_supervised=http.settings.is_supervised)
                    for name, of_group in groups
                ]
            )
        )

    return await http.expensive_calls.queue_reads.get("groups", read)


async def _group(name: str, tables: TableServices, queue: QueueServices, *, is_supervised: bool) -> GroupView:
    actors = [one for one in await queue.actors.all() if one.takes_jobs]
    depth, held = await queue.admin.depth(), await queue.admin.occupancy()
    settings, mark = await settings_of(tables, queue), f"{Scope.TABLE}|"
    limits = limits_among(settings)
    quotas = {TableId(one.removeprefix(mark)): limit for one, limit in limits.items() if one.startswith(mark)}
    promised = sum(quota_share(limit, held.slots) for limit in quotas.values())
    used = sorted(quota_occupation(held, limits)[Scope.TABLE].items(), key=lambda one: -one[1])[:MAX_QUOTAS]
    names = await tables.registry.get_many([TableId(table) for table, _ in used])
    return GroupView(
        group=name,
        actors=len(actors),
        wanted_actors=(await queue.admin.settings()).actors if is_supervised else None,
        slots=sum(one.slots for one in actors),
        running=depth.depth[JobState.LEASED],
        waiting=depth.depth[JobState.QUEUED] + depth.depth[JobState.DELAYED],
        oldest_wait_s=depth.oldest_wait_ms / 1000,
        is_paused=settings.get("paused", "").startswith("all"),
        promised_ratio=round(promised, 4),
        occupation_ratio=round(sum(held.tables.values()), 4),
        is_oversold=promised > 1,
        quotas=tuple(
            QuotaView(
                table=table,
                table_name=names[TableId(table)].name if TableId(table) in names else table,
                quota=quotas[TableId(table)].removeprefix("!"),
                occupation_ratio=occupation,
            )
            for table, occupation in used
        ),
    )


class QueueBacklog(ResponseModel):
    """Predicted work of the queue; 0 exactly if no job that an actor could run waits, and none runs."""

    jobs: int = Field(
        description="Jobs that wait for an actor or run; paused and delayed ones, and those outside of a work window, "
        "are left out, and so are jobs of the archives where no other job waits or runs."
    )
    running: int = Field(description="Jobs that run.")
    work_s: int = Field(description="Predicted seconds that all of them take one slot; the value to scale actors by.")
    job_s: float = Field(description="Predicted seconds of a run without data.")
    gib_s: float = Field(description="Predicted additional seconds for each GiB.")
    measured_runs: int = Field(description="Recent runs that this prediction is fitted to; below 5, it is a default.")


@router.get("/backlog", summary="Show the backlog", response_model=QueueBacklog, responses=failures(404, 422))
async def show_backlog(queue: Group, http: Http) -> Response:
    """Show the predicted seconds of work that wait or run in a group; KEDA's `metrics-api` reads `work_s`."""
    return await http.expensive_calls.queue_reads.get(f"backlog {queue.executor.name}", partial(_backlog, queue))


async def _backlog(queue: QueueServices) -> QueueBacklog:
    found = await read_backlog(queue.executor, queue.own_tables)
    return QueueBacklog(
        jobs=found.jobs,
        running=found.running,
        work_s=found.work_s,
        job_s=round(found.duration.job_s, 3),
        gib_s=round(found.duration.s_per_byte * GIB, 3),
        measured_runs=found.duration.runs,
    )
