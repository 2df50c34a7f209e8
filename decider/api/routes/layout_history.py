"""Layout of a table over time, read from its own log."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Query

from decider.api.dependencies import Http, KnownTable, Tables
from decider.api.openapi import failures
from decider.api.schemas.layout_history import LayoutHistory, LayoutPointView
from decider.formats.table_format import RetainedHistory
from decider.state.layout_history import LayoutPoint, layout_history
from decider.web.base_model import MAX_PAGE, moment
from shared.table import BEFORE_FIRST, Position

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
    if state is None or state.summary is None:
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
        points=tuple(_point_view(point) for point in reversed(points)),
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


def _point_view(point: LayoutPoint) -> LayoutPointView:
    return LayoutPointView(
        version=point.version,
        at=moment(point.at_ms),
        rewrite=point.is_rewrite,
        files_added=point.files_added,
        files_removed=point.files_removed,
        files=point.summary.files,
        small_files=point.summary.small_files,
        bytes=point.summary.bytes,
        rms_shortfall=round(point.summary.rms_shortfall, 6),
    )
