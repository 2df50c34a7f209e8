"""The index of a table on several columns, read from its own log."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

import asyncio
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from decider.api.dependencies import Http, KnownTable, Tables
from decider.api.openapi import failures
from decider.api.schemas.table_index import IndexRevisionView, NextRewriteView, SampleView, TableIndexResponse
from decider.web.base_model import moment
from decider.web.errors import ApiError
from shared.formats.registry import support_of
from shared.index_status import IndexQuery, IndexRevision, IndexStatus

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.get("/{name}/index", summary="Show the index of a table", responses=failures(404, 422, 502))
async def show_table_index(
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
) -> TableIndexResponse:
    """Show a Qbeast index: revisions, fragmentation, files that are not indexed, and what is eligible for a rewrite.

    404 for a table without an index. Nothing is rewritten.
    """
    async with http.expensive_calls.table_reads.turn():
        snapshot = await tables.formats.open(table.location).snapshot()
        read = support_of(snapshot.metadata.format).index_status
        found = await asyncio.to_thread(read, snapshot, IndexQuery(revision, bytes_per_iter, sample))
    if found is None:
        raise ApiError(404, f"{table.name} has no index", field="name", allowed="a table with a Qbeast index")
    return index_view(found)


def index_view(found: IndexStatus) -> TableIndexResponse:
    """Show the status of an index."""
    oldest_ms, following, sample = found.unindexed.oldest_ms, found.rewrites.next, found.rewrites.sample
    return TableIndexResponse(
        kind=found.kind,
        version=found.version,
        last_revision=found.last_revision,
        revisions=tuple(map(_revision_view, found.revisions)),
        files_by_class=dict(found.files_by_class),
        unindexed_bytes=found.unindexed.bytes,
        oldest_unindexed_at=None if oldest_ms is None else moment(oldest_ms),
        first_problem=found.first_problem,
        refusal="" if found.refusal is None else found.refusal.message,
        ignored_properties=tuple(f"{one.property} = {one.value}: {one.reason}" for one in found.issues),
        next=None
        if following is None
        else NextRewriteView(strategy=following.strategy, bytes=following.bytes, files=following.paths),
        sample=None if sample is None else SampleView(**asdict(sample)),
    )


def _revision_view(revision: IndexRevision) -> IndexRevisionView:
    metrics = revision.metrics
    return IndexRevisionView(
        **asdict(metrics)
        | {
            "id": revision.id,
            "desired_cube_size": revision.desired_cube_size,
            "columns": revision.columns,
            "fanout": round(metrics.fanout, 2),
            "fragmentation": round(metrics.fragmentation, 2),
            "blocks_per_file": round(metrics.blocks_per_file, 2),
            "eligible_groups": revision.eligible_groups,
            "eligible_bytes": revision.eligible_bytes,
        }
    )
