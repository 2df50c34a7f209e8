"""Reports of reads: how often tables are read, which weighs their jobs, and with which filters."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field

from decider.api.dependencies import KnownTable, Queue, Tables
from decider.api.openapi import failures
from decider.decide.job_request import read_weight
from decider.store.registry.table_registry import TableRegistry
from decider.web.base_model import ResponseModel
from decider.web.errors import ApiError
from decider.whatif.recorded_filters import parse_reports
from shared.errors import InvalidInput
from shared.table import TableRef

FILTER_EXAMPLE: dict[str, Any] = {"filter": {"type": "eq", "term": "customer", "value": "(hash-1a2b3c4d)"}, "times": 30}


class ReadsCounted(ResponseModel):
    """Result of a delivery of reports."""

    reads: int = Field(description="Number of reads that were counted.", ge=0)
    unknown_tables: tuple[str, ...] = Field(description="Reported tables that are not registered; the first 100.")


class UsedFilter(ResponseModel):
    """A filter of reads, and how often it was used."""

    filter: Any = Field(description="Iceberg expression.")
    times: int = Field(description="Number of reads with this filter.")


class TableReadsView(ResponseModel):
    """Reported reads of a table."""

    reads_per_hour: float = Field(description="Reads per hour over the last seven days; 0 if none were reported.")
    read_weight: float = Field(description="Weight of the table's reads in the order of jobs.")
    filters: tuple[UsedFilter, ...] = Field(description="Filters that compare columns, most frequent first.")


router = APIRouter(prefix="/v1", tags=["tables"])

MAX_UNKNOWN = 100
"""Unknown tables that an answer names."""

_REPORT = {
    "report-type": "scan-report",
    "table-name": "lake.sales.orders",
    "snapshot-id": 2613571341042342,
    "filter": FILTER_EXAMPLE["filter"],
    "schema-id": 0,
    "projected-field-ids": [1, 2],
    "projected-field-names": ["id", "customer"],
    "metrics": {},
}

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
                "examples": {
                    "Iceberg": {"value": _REPORT},
                    "any engine": {"value": [{"table": "sales.orders", **FILTER_EXAMPLE}]},
                },
            }
        },
    }
}


@router.post(
    "/scan-reports", status_code=202, summary="Post reports of reads", openapi_extra=_BODY, responses=failures(422)
)
async def post_scan_reports(request: Request, tables: Tables, queue: Queue) -> ReadsCounted:
    """Count reads of tables: one report, a list, or one a line.

    Accepted are scan reports of Iceberg's REST catalog, and `{"table", "times", "filter"}` of any engine. A report that
    is delivered twice is counted twice.
    """
    body = await request.body()
    try:
        reported = await asyncio.to_thread(parse_reports, body)
    except InvalidInput as problem:
        raise ApiError(400, str(problem), field=problem.field) from problem
    known = await _known(tables.registry, list(reported))
    counted = 0
    for name, reads in reported.items():
        if name in known:
            await queue.reads.add(known[name].id, reads.times, reads.filters)
            counted += reads.times
    unknown = sorted(name for name in reported if name not in known)
    return ReadsCounted(reads=counted, unknown_tables=tuple(unknown[:MAX_UNKNOWN]))


@router.get("/tables/{name}/reads", summary="Show reported reads", responses=failures(404, 422))
async def show_reads(table: KnownTable, tables: Tables, queue: Queue) -> TableReadsView:
    """Show how often a table is read, and the filters that readers use."""
    found = await queue.reads.read(table.id)
    state = await tables.states.state(table.id)
    weight = None
    if state is not None:
        in_force = tables.defaults.current.resolve(
            table, state.metadata.configuration, state.last_good, state.log_status
        )
        weight = (await tables.states.calibration(table.id)).applied_to(in_force.policy)
    return TableReadsView(
        reads_per_hour=round(found.per_hour, 4),
        read_weight=1.0 if weight is None else float(read_weight(weight)),
        filters=tuple(UsedFilter(filter=expression, times=times) for expression, times in found.filters),
    )


async def _known(registry: TableRegistry, names: list[str]) -> dict[str, TableRef]:
    """Return the registered tables by these names; engines put the catalog's name before the table's name."""
    found = await registry.find_many(names)
    without_catalog = {name: name.partition(".")[2] for name in names if name not in found and "." in name}
    others = await registry.find_many([name for name in without_catalog.values() if name])
    return found | {name: others[short] for name, short in without_catalog.items() if short in others}
