"""Pausing one table: its jobs wait where they are, and what its commits lead to waits with them."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from fastapi import APIRouter

from decider.api.dependencies import KnownTable, Parts
from decider.api.openapi import failures
from decider.api.schemas.queue import AdminResult
from shared.queue.model import Scope

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.post("/{name}/pause", summary="Pause a table", responses=failures(404, 422))
async def pause_table(table: KnownTable, parts: Parts) -> AdminResult:
    """Hand out no job of the table until it is resumed; what runs goes on, and decisions are made as before.

    To stop it for good, set `lakewright.enabled=false` on the table itself.
    """
    await parts.steering.pause(Scope.TABLE, table.id, paused=True)
    return AdminResult(message=f"Table {table.name} is paused; what runs goes on.")


@router.post("/{name}/resume", summary="Resume a table", responses=failures(404, 422))
async def resume_table(table: KnownTable, parts: Parts) -> AdminResult:
    """Hand out the table's jobs again."""
    await parts.steering.pause(Scope.TABLE, table.id, paused=False)
    return AdminResult(message=f"Table {table.name} is no longer paused.")
