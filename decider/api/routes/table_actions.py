"""Actions on whole tables on demand: whatever requests are declared in `decider.requests`, each by its name."""

from dataclasses import asdict, replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from decider.api.declared_tables import require_own_pause
from decider.api.dependencies import KnownTable, Queue, Requests, Tables
from decider.api.openapi import failures
from decider.api.routes.queue import AdminResult
from decider.gateway.authentication import CALLER_ROLE
from decider.gateway.credentials import Role
from decider.requests.registry import REQUESTS
from decider.requests.table_request import TableRequest, counted
from decider.web.base_model import ResponseModel
from decider.web.errors import ApiError
from shared.queue.model import Band, Scope


class TableJobView(ResponseModel):
    """A job created by the request."""

    id: str = Field(description="Job id.")
    action: str = Field(description="Kind of job.")
    outcome: str = Field(
        description="`queued`: new job. `merged`: merged into the waiting job. `rerun`: follows the running job."
    )


class TableJobResponse(ResponseModel):
    """Jobs created by a request, or the reason for none."""

    version: int = Field(description="Table version that the decision is based on.")
    jobs: tuple[TableJobView, ...] = Field(description="Jobs.")
    message: str = Field(description="Human-readable outcome.")


router = APIRouter(prefix="/v1/tables", tags=["tables"])


def _offer(kind: type[TableRequest]) -> None:
    """Add the endpoint of a request: it queues jobs, or answers 200 with the result of a dry run."""

    async def request_action(table: KnownTable, asked: Any, requests: Requests, queue: Queue, request: Request) -> Any:
        role = request.scope.get(CALLER_ROLE, Role.ADMIN)
        if asked.needs_admin and role is not Role.ADMIN:
            raise ApiError(403, f"this {kind.name} requires the role {Role.ADMIN}; the token has the role {role}")
        if kind.answer is not None and asked.dry_run:
            return JSONResponse(asdict(await requests.table_requests.preview(table, asked)))
        made = await requests.table_requests.run(table, asked)
        paused = await queue.admin.paused_by(Band.NORMAL, table) if made.jobs else None
        return TableJobResponse.of(replace(made, paused=paused))

    request_action.__annotations__["asked"] = kind
    responses = failures(400, 404, 409, 413, 422, 502)
    if kind.answer is not None:
        responses[200] = {"model": kind.answer, "description": "Result of a dry run; nothing was changed."}
    router.add_api_route(
        f"/{{name}}/actions/{kind.name}",
        request_action,
        methods=["POST"],
        status_code=202,
        response_model=TableJobResponse,
        name=f"request_{kind.name.replace('-', '_')}",
        summary=kind.summary,
        description=f"{kind.text} Jobs are queued, and a table that is refused has none.",
        responses=responses,
    )


for _kind in REQUESTS.values():
    _offer(_kind)


@router.post("/{name}/pause", summary="Pause a table", responses=failures(404, 409, 422))
async def pause_table(table: KnownTable, tables: Tables, queue: Queue) -> AdminResult:
    """Stop dispatching jobs of the table; running jobs continue, and decisions are made as before.

    To disable optimization permanently, set `lakewright.enabled=false` on the table.
    """
    require_own_pause(table, tables)
    await queue.admin.pause(Scope.TABLE, table.id, paused=True)
    return AdminResult(message=f"Table {table.name} is paused; running jobs continue.")


@router.post("/resume", summary="Resume all paused tables", responses=failures(422))
async def resume_tables(tables: Tables, queue: Queue) -> AdminResult:
    """Dispatch jobs of every paused table again, except of those that the tables file pauses."""
    paused = await tables.registry.get_many(await queue.admin.paused_tables())
    own = [table for table in paused.values() if not table.declared_paused]
    for table in own:
        await queue.admin.pause(Scope.TABLE, table.id, paused=False)
    return AdminResult(message=f"{counted(len(own), 'table')} resumed.")


@router.post("/{name}/resume", summary="Resume a table", responses=failures(404, 409, 422))
async def resume_table(table: KnownTable, tables: Tables, queue: Queue) -> AdminResult:
    """Dispatch jobs of the table again."""
    require_own_pause(table, tables)
    await queue.admin.pause(Scope.TABLE, table.id, paused=False)
    return AdminResult(message=f"Table {table.name} is resumed.")
