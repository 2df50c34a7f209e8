"""The index of a table on several columns, read from its own log."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from decider.api.dependencies import Http, KnownTable, Tables
from decider.api.openapi import failures
from decider.api.schemas.table_index import TableIndexResponse
from decider.api.views.table_index import index_view
from decider.web.errors import ApiError
from shared.formats.registry import support_of
from shared.index_status import IndexQuery

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.get("/{name}/index", summary="Show the index of a table", responses=failures(404, 422, 502))
async def show_table_index(  # noqa: PLR0913, PLR0917 - each is a parameter of the call
    table: KnownTable,
    tables: Tables,
    http: Http,
    revision: Annotated[
        int | None, Query(ge=0, lt=2**31, description="Revision to optimize; default: that of the table's properties.")
    ] = None,
    bytes_per_iter: Annotated[
        int | None,
        Query(ge=0, lt=2**63, description="Bytes of one iteration, 0 for its first group; default: as `revision`."),
    ] = None,
    sample: Annotated[
        float | None, Query(gt=0, lt=1, description="Fraction of the rows that a sampling query reads.")
    ] = None,
    what_if: Annotated[  # noqa: FBT002 - a parameter of the call
        bool, Query(description="Also estimate the iterations to come under several selections.")
    ] = False,
) -> TableIndexResponse:
    """Show a Qbeast index: revisions, fragmentation, files that are not indexed, and what is eligible for a rewrite.

    404 for a table without an index. Nothing is rewritten.
    """
    async with http.expensive_calls.table_reads.turn():
        snapshot = await tables.formats.open(table.location).snapshot()
        read = support_of(snapshot.metadata.format).index_status
        found = await asyncio.to_thread(
            read, snapshot, IndexQuery(revision, bytes_per_iter, sample, is_forecast=what_if)
        )
    if found is None:
        raise ApiError(404, f"{table.name} has no index", field="name", allowed="a table with a Qbeast index")
    return index_view(found)
