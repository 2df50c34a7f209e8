"""Dependencies of routes: one annotation per group of services, the probes' sources, and the table in the path.

Each is a coroutine: FastAPI calls a plain function, or a class, in a thread of its pool, at every request.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from decider.api.health_snapshot import HealthReader
from decider.api.services import (
    HttpServices,
    OperationServices,
    QueueServices,
    RequestServices,
    Services,
    TableServices,
)
from decider.background.runner import BackgroundTasks
from decider.web.base_model import MAX_PAGE
from decider.web.errors import not_found
from shared.table import TABLE_NAME, TableRef


@dataclass(frozen=True, slots=True)
class ProbeSources:
    """Sources of probes and the status: health in Redis, and the background tasks of this process."""

    health: HealthReader
    background: BackgroundTasks


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


async def _tables(request: Request) -> TableServices:
    return _services(request).tables


async def _queue(request: Request) -> QueueServices:
    return _services(request).queue


async def _group(
    request: Request,
    group: Annotated[
        str | None,
        Query(max_length=40, description="Group of the queue; without it, the queue itself.", examples=["etl"]),
    ] = None,
) -> QueueServices:
    return _of_group(request, group) or _services(request).queue


async def _group_asked(
    request: Request,
    group: Annotated[
        str | None, Query(max_length=40, description="Group of the queue; without it, all groups.", examples=["etl"])
    ] = None,
) -> QueueServices | None:
    return _of_group(request, group)


def _of_group(request: Request, group: str | None) -> QueueServices | None:
    if group is None:
        return None
    found = _services(request).queue.by_group.get(group)
    if found is None:
        raise not_found("group", group)
    return found


async def _requests(request: Request) -> RequestServices:
    return _services(request).requests


async def _operations(request: Request) -> OperationServices:
    return _services(request).operations


async def _http(request: Request) -> HttpServices:
    return _services(request).http


async def _probes(request: Request) -> ProbeSources:
    found: ProbeSources = request.app.state.probes
    return found


Tables = Annotated[TableServices, Depends(_tables)]
"""Injects what is known of tables."""

Queue = Annotated[QueueServices, Depends(_queue)]
"""Injects the job queue."""

Group = Annotated[QueueServices, Depends(_group)]
"""Injects the job queue of the group in the query, the queue itself without one; 404 if it is not served."""

GroupAsked = Annotated[QueueServices | None, Depends(_group_asked)]
"""Injects the job queue of the group in the query, None without one; 404 if it is not served."""

Requests = Annotated[RequestServices, Depends(_requests)]
"""Injects what has tables read or rewritten."""

Operations = Annotated[OperationServices, Depends(_operations)]
"""Injects the process's clock, start and meters."""

Http = Annotated[HttpServices, Depends(_http)]
"""Injects the API's settings and limits."""

Probes = Annotated[ProbeSources, Depends(_probes)]
"""Injects health and background tasks."""

TableName = Annotated[
    str,
    Path(
        pattern=f"^{TABLE_NAME}$",
        description="Table name or id.",
        openapi_examples={"by name": {"value": "sales.orders"}},
    ),
]


async def _known_table(name: TableName, tables: Tables) -> TableRef:
    table = await tables.registry.find(name)
    if table is None:
        raise not_found("table", name)
    return table


KnownTable = Annotated[TableRef, Depends(_known_table)]
"""Injects the table named in the path; 404 if it does not exist."""

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of items to return.")]
"""How many items a list returns."""

PageToken = Annotated[str | None, Query(max_length=20_000, description="`next_page_token` of the previous page.")]
"""Where a list goes on."""
