"""Layout of a table over time, read from its own log."""

from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from decider.api.dependencies import Http, KnownTable, Tables
from decider.api.openapi import failures
from decider.formats.table_format import RetainedHistory
from decider.state.layout_history import layout_history
from decider.web.base_model import MAX_PAGE, Moment, ResponseModel, Rounded6, read_from
from shared.table import BEFORE_FIRST, Position


class LayoutPointView(ResponseModel, alias_generator=read_from("summary", at="at_ms", rewrite="is_rewrite")):
    """File layout of a table after one commit."""

    version: int = Field(description="Table version.")
    at: Moment = Field(description="Commit time, by the writer's clock.")
    rewrite: bool = Field(description="Whether the commit changed no data, as a rewrite does.")
    files_added: int = Field(description="Number of files that the commit added.")
    files_removed: int = Field(description="Number of files that the commit removed.")
    files: int = Field(description="Number of live files.")
    small_files: int = Field(description="Number of files below the full size.")
    bytes: int = Field(description="Total size in bytes.")
    rms_shortfall: Rounded6 = Field(
        description="Root of the entropy as a share of the target: 0 is optimal, 1 is worst; by the present target."
    )


class LayoutHistory(ResponseModel):
    """File layout over the newest commits."""

    version: int | None = Field(description="Table version of the last point; null before the first read.")
    points: tuple[LayoutPointView, ...] = Field(description="Points, oldest first.")
    complete: bool = Field(
        description="Whether all requested commits are covered; false where the log was cleaned up, or a commit does "
        "not record sizes."
    )


router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.get("/{name}/layout-history", summary="Show the layout over time", responses=failures(404, 422, 502))
async def show_layout_history(
    table: KnownTable,
    tables: Tables,
    http: Http,
    commits: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of commits.")] = 200,
    after: Annotated[int | None, Query(ge=0, lt=2**63, description="Only commits after this table version.")] = None,
) -> LayoutHistory:
    """Show files, small files and entropy after each of the newest commits, rewrites included.

    The figures follow from the present layout and the table's log; nothing is stored for them.
    """
    state = await tables.states.state(table.id)
    if state is None:
        return LayoutHistory(version=None, points=(), complete=False)
    in_force = tables.defaults.current.resolve(table, state.metadata.configuration, state.last_good, state.log_status)
    async with http.expensive_calls.table_reads.turn():
        reader = tables.formats.open(table.location)
        start = _start(await reader.retained(), state.version, commits, after)
        async with aclosing(reader.changes(start, state.metadata, until=state.version)) as changes:
            read = [commit async for commit in changes]
    points = layout_history(state.summary, reversed(read), in_force.policy.size_levels)
    return LayoutHistory(
        version=state.version,
        points=tuple(LayoutPointView.of(point) for point in reversed(points)),
        complete=len(points) == len(read)
        and (len(read) >= commits or start.version == (BEFORE_FIRST.version if after is None else after)),
    )


def _start(retained: RetainedHistory, version: int, commits: int, after: int | None) -> Position:
    """Return the position after which the wanted commits begin, as far back as they can be read."""
    positions = [
        one for one in retained.positions if one.version <= version and (after is None or one.version >= after)
    ]
    if len(positions) > commits:
        return positions[-commits - 1]
    if retained.is_whole and after is None:
        return BEFORE_FIRST
    return positions[0] if positions else Position(version)
