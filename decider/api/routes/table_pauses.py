"""Pause and resume one table: its waiting and new jobs are not dispatched."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from fastapi import APIRouter

from decider.api.declared_tables import require_own_pause
from decider.api.dependencies import KnownTable, Queue, Tables
from decider.api.openapi import failures
from decider.api.schemas.queue import AdminResult
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


@router.post("/{name}/resume", summary="Resume a table", responses=failures(404, 409, 422))
async def resume_table(table: KnownTable, tables: Tables, queue: Queue) -> AdminResult:
    """Dispatch jobs of the table again."""
    require_own_pause(table, tables)
    await queue.admin.pause(Scope.TABLE, table.id, paused=False)
    return AdminResult(message=f"Table {table.name} is resumed.")
