"""On-demand optimization: enqueue jobs or return a plan."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from decider.api.dependencies import KnownTable, Requests
from decider.api.openapi import failures
from decider.api.schemas.optimize import OptimizePlan, OptimizeRequest, OptimizeResponse
from decider.api.views.tables import dry_run_view, optimized_view
from decider.optimize.on_demand import OptimizeCommand
from decider.optimize.run_terms import run_terms
from shared.queue.model import Band

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.post(
    "/{name}/optimize",
    status_code=202,
    response_model=OptimizeResponse,
    summary="Optimize a table",
    responses=failures(400, 404, 409, 413, 422, 502)
    | {200: {"model": OptimizePlan, "description": "Plan of a dry run; nothing was changed."}},
)
async def optimize_table(
    table: KnownTable, asked: OptimizeRequest, requests: Requests
) -> OptimizeResponse | JSONResponse:
    """Enqueue a job for every eligible partition, or return the plan with `dry_run`.

    A request that changes nothing returns the reason in `ignored`. In the modes `levels`, `minor` and `major` the
    promotion rule applies, so repeated requests do not rewrite more; `force` ignores only the tolerance and
    `enabled=false`. Follow the jobs by `GET /v1/jobs/{job}?wait_s=30`, or by `GET /v1/stream?about=jobs&job=...`.
    """
    terms = run_terms(asked.mode, asked.values, force=asked.force)
    request = OptimizeCommand(tuple(asked.partitions), tuple(asked.actions), Band[asked.priority.upper()], terms)
    if asked.dry_run:
        plan = dry_run_view(await requests.on_demand.dry_run(table, request))
        return JSONResponse(plan.model_dump(mode="json"))
    return optimized_view(await requests.on_demand.optimize(table, request))
