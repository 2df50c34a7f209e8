"""Pause and resume one table: its waiting and new jobs are not dispatched."""

from fastapi import APIRouter

from decider.api.declared_tables import require_own_pause
from decider.api.dependencies import KnownTable, Queue, Tables
from decider.api.openapi import failures
from decider.api.routes.queue import AdminResult
from decider.requests.table_request import counted
from shared.queue.model import Scope

router = APIRouter(prefix="/v1/tables", tags=["tables"])


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
