"""Optimize: a person asks for a rewrite now, or for the plan of one."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from decider.api.dependencies import KnownTable, Parts
from decider.api.openapi import failures
from decider.api.schemas.optimize import OptimizePlan, OptimizeRequest, OptimizeResponse
from decider.api.views.tables import dry_run_view, optimized_view
from decider.optimize.on_demand import OptimizeCommand
from shared.queue.model import Band

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.post(
    "/{name}/optimize",
    status_code=202,
    response_model=OptimizeResponse,
    summary="Optimize a table now",
    responses=failures(400, 404, 409, 413, 422, 502)
    | {200: {"model": OptimizePlan, "description": "The plan of a dry run; nothing was changed."}},
)
async def optimize_table(table: KnownTable, asked: OptimizeRequest, parts: Parts) -> OptimizeResponse | JSONResponse:
    """Queue a job for every cell that is worth a rewrite, or show with `dry_run` what would be done.

    A request that changes nothing says why in `ignored`. The promotion rule always holds, so that asking often does
    not rewrite more; `force` sets aside the tolerance and `enabled=false` only.
    """
    request = OptimizeCommand(tuple(asked.partitions), Band[asked.priority.upper()], asked.force)
    if asked.dry_run:
        plan = dry_run_view(await parts.adhoc.dry_run(table, request))
        return JSONResponse(plan.model_dump(mode="json"))
    return optimized_view(await parts.adhoc.optimize(table, request))
