"""Status of the service, available while Redis is not."""

import time
from collections.abc import Mapping
from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import Field

from decider.api.budget_view import UsageView, usage_view
from decider.api.dependencies import Http, Operations, Probes, Requests, Tables
from decider.api.openapi import failures
from decider.gateway.authentication import CALLER_ROLE
from decider.gateway.credentials import MAY_ACT_AS, Role
from decider.store.stored_values import moment
from decider.web.base_model import Moment, ResponseModel, read_from
from shared.prices import Usage


class RedisStatus(ResponseModel):
    """Redis server, and whether it is configured for durable queues."""

    reachable: bool = Field(description="Whether Redis responds.")
    name: str = Field(description="`redis` or `valkey`; empty if unreachable.")
    version: str = Field(description="Server version.")
    aof_enabled: bool = Field(description="Whether the append-only file is enabled.")
    eviction_policy: str = Field(description="Eviction policy; must be `noeviction`.")
    used_memory_bytes: int = Field(description="Memory in use in bytes.")
    issues: tuple[str, ...] = Field(description="Configuration issues with remedies; empty if none.")


class SavedRegistryStatus(ResponseModel, alias_generator=read_from(saved_at="saved_ms")):
    """Registry that is saved outside of Redis (`LAKEWRIGHT_STATE`), as this decider knows it."""

    location: str = Field(description="Folder or object store location.")
    generation: int = Field(description="Newest generation that this decider read or wrote; 0 if none.")
    tables: int = Field(description="Number of tables in it.")
    saved_at: Moment = Field(
        description="When this decider last verified that everything in Redis is saved; null if never."
    )
    error: str = Field(description="Why the last attempt failed; empty if it succeeded.")
    damaged: tuple[str, ...] = Field(description="Newer generations that are damaged and not used, with the reason.")


class Backlog(ResponseModel):
    """Tables queued for a refresh in this decider."""

    tables_waiting: int = Field(description="Number of tables queued or being refreshed.")
    tables_retrying: int = Field(description="Number of tables whose refresh failed and is retried.")
    oldest_wait_s: float = Field(description="Wait of the oldest queued table in seconds.")


class FailingTask(ResponseModel):
    """Background task of this decider whose last pass failed; it is tried again."""

    name: str = Field(description="Name of the task.")
    failures: int = Field(description="Number of failed passes since the start.")
    in_a_row: int = Field(description="Number of failed passes in a row.")
    is_stuck: bool = Field(description="Whether its failures are no outage; then the decider is not ready.")
    error: str = Field(description="Last error.")


class QueueStatus(ResponseModel):
    """Jobs of all deciders."""

    depth: dict[str, int] = Field(description="Number of jobs by state.")
    oldest_wait_s: float = Field(description="Wait of the oldest queued job in seconds.")


class Amplification(ResponseModel):
    """Bytes rewritten: once for existing files, and steadily for files that writers add."""

    backlog_bytes_found: int = Field(
        description="Bytes that were to be rewritten when tables were first read, or their policy changed."
    )
    backlog_bytes_left: int = Field(description="Bytes of these that are still to be rewritten.")
    steady_bytes_added: int = Field(description="Bytes that writers added to tables without a backlog.")
    steady_bytes_rewritten: int = Field(description="Bytes that rewrites of such tables replaced.")
    steady_write_amplification: float | None = Field(
        description="Bytes rewritten per byte added since the backlog was done; null before the first of them."
    )


class Savings(ResponseModel):
    """Benefit of the rewrites, and their cost."""

    files_removed: int = Field(description="Decrease of the file count.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")
    amplification: Amplification = Field(description="Bytes rewritten, apart for the backlog and for later commits.")
    partitions_pruned_ratio: float | None = Field(
        description="Share of touched partitions that needed no rewrite; null before the first commit."
    )


class TablesFileView(ResponseModel, alias_generator=read_from(applied_at="applied_ms")):
    """Tables file (`LAKEWRIGHT_TABLES_FILE`), as this decider knows it."""

    path: str = Field(description="Path.")
    tables: int = Field(description="Number of tables that the file in force declares.")
    applied_at: Moment = Field(description="When it was last compared with the registry; null if never.")
    error: str = Field(
        description="Why the file as it is now is refused, with line and column; the last good content stays in force."
    )
    problems: tuple[str, ...] = Field(description="Entries that could not be applied.")


class DefaultsInForce(ResponseModel):
    """Default policy shared by all deciders of the queue, set by the decider that started last."""

    version: str = Field(description="Digest of the defaults in effect.")
    own_version: str = Field(description="Digest of this decider's configured defaults.")
    in_sync: bool = Field(description="Whether both digests are equal.")


class DeciderStatus(ResponseModel):
    """Status of the decider."""

    version: str = Field(description="Release of this decider.")
    started_at: datetime = Field(description="Start time.")
    uptime_s: float = Field(description="Uptime in seconds.")
    redis: RedisStatus = Field(description="Redis.")
    registry: SavedRegistryStatus | None = Field(description="Saved registry; null without `LAKEWRIGHT_STATE`.")
    tables_file: TablesFileView | None = Field(description="Tables file; null without `LAKEWRIGHT_TABLES_FILE`.")
    tables: int | None = Field(description="Number of registered tables; null if Redis is unreachable.")
    tables_refused: int | None = Field(
        description="Number of tables that are refused, unreadable or missing; null if Redis is unreachable."
    )
    partitions_with_refused_files: int | None = Field(
        description="Number of partitions with files that actors refused; null if Redis is unreachable."
    )
    defaults: DefaultsInForce = Field(description="Default policy.")
    backlog: Backlog = Field(description="Refresh queue of this decider.")
    failing_tasks: tuple[FailingTask, ...] = Field(description="Background tasks that fail; empty if none does.")
    queue: QueueStatus = Field(description="Job queue.")
    actors: dict[str, int] = Field(description="Number of actors by state: `working`, `idle`, `draining`, `drained`.")
    object_store_requests: dict[str, int] = Field(description="Object store requests of this process, by kind.")
    funnel: dict[str, int] = Field(description="Counts from commits to rewrites, over all tables and deciders.")
    savings: Savings = Field(description="Benefit and cost of all rewrites.")
    usage: UsageView = Field(description="What all runs used, and its cost.")


router = APIRouter(prefix="/v1", tags=["status"])


@router.get("/status", summary="Show service status", responses=failures())
async def show_status(
    tables: Tables, requests: Requests, operations: Operations, http: Http, probes: Probes
) -> DeciderStatus:
    """Show version, Redis configuration, backlog, the funnel from commits to rewrites, and savings."""
    health = await probes.health.read()
    server, sources = health.server, tables.sources
    started_at = moment(operations.started.at_ms)
    if started_at is None:
        raise ValueError("the service was built without a clock")
    return DeciderStatus(
        version=http.settings.release,
        started_at=started_at,
        uptime_s=round(time.monotonic() - operations.started.monotonic_s, 3),
        redis=RedisStatus(
            reachable=server is not None,
            name=server.name if server else "",
            version=server.version if server else "",
            aof_enabled=server.aof_enabled if server else False,
            eviction_policy=server.eviction_policy if server else "",
            used_memory_bytes=server.used_memory_bytes if server else 0,
            issues=health.issues,
        ),
        registry=None if sources.saved is None else SavedRegistryStatus.of(sources.saved.status()),
        tables_file=None if sources.declared is None else TablesFileView.of(sources.declared.status),
        tables=health.tables,
        tables_refused=health.refused,
        partitions_with_refused_files=health.refusing_partitions,
        defaults=_defaults(tables),
        backlog=Backlog(
            tables_waiting=requests.refresh_queue.backlog,
            tables_retrying=requests.refresh_queue.retrying,
            oldest_wait_s=round(requests.refresh_queue.oldest_wait_s, 3),
        ),
        failing_tasks=tuple(
            FailingTask(
                name=name,
                failures=one.failures,
                in_a_row=one.in_a_row,
                is_stuck=one.is_stuck,
                error=one.error,
            )
            for name, one in probes.background.health.items()
            if one.in_a_row
        ),
        queue=QueueStatus(
            depth={str(state): count for state, count in health.depth.depth.items()},
            oldest_wait_s=health.depth.oldest_wait_ms / 1000,
        ),
        actors=health.actors,
        object_store_requests={str(kind): count for kind, count in operations.read_meter.counts.items()},
        funnel=health.funnel,
        savings=savings(health.funnel),
        usage=usage_view(Usage.of_counters(health.funnel), http.settings.prices),
    )


def _defaults(tables: Tables) -> DefaultsInForce:
    version, own = tables.defaults.current.version, tables.defaults.own.version
    return DefaultsInForce(version=version, own_version=own, in_sync=version == own)


def amplification(counters: Mapping[str, int]) -> Amplification:
    """Compute the bytes rewritten for the backlog, and for later commits, from counters of one table or of all."""
    found, done, added, rewritten = (
        counters.get(name, 0)
        for name in ("backlog_bytes_found", "backlog_bytes_done", "steady_bytes_added", "steady_bytes_rewritten")
    )
    return Amplification(
        backlog_bytes_found=found,
        backlog_bytes_left=max(0, found - done),
        steady_bytes_added=added,
        steady_bytes_rewritten=rewritten,
        steady_write_amplification=round(rewritten / added, 4) if added else None,
    )


def savings(funnel: dict[str, int]) -> Savings:
    """Compute savings from the funnel counters."""
    touched = funnel.get("partitions_touched", 0)
    return Savings(
        files_removed=funnel.get("files_replaced", 0) - funnel.get("files_written", 0),
        bytes_rewritten=funnel.get("bytes_replaced", 0),
        amplification=amplification(funnel),
        partitions_pruned_ratio=round(1 - funnel.get("enqueued", 0) / touched, 4) if touched else None,
    )


class CallerView(ResponseModel):
    """The caller's role."""

    role: str = Field(description="`viewer`, `operator` or `admin`.")
    may_act_as: tuple[str, ...] = Field(description="Roles whose operations are permitted.")
    token_required: bool = Field(description="Whether requests need a token.")
    release: str = Field(description="Release of this decider.")


@router.get("/me", summary="Show the caller's role", responses=failures())
async def show_caller(request: Request, http: Http) -> CallerView:
    """Show the role of the token; without tokens, clients on the loopback address have the role admin."""
    required = http.settings.credentials.are_needed
    role: Role = request.scope.get(CALLER_ROLE, Role.VIEWER) if required else Role.ADMIN
    return CallerView(
        role=role, may_act_as=tuple(sorted(MAY_ACT_AS[role])), token_required=required, release=http.settings.release
    )
