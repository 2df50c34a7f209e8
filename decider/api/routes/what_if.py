"""What-if: replay a table's history under other policies and rules; nothing is changed."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

import asyncio
from typing import Any

from fastapi import APIRouter

from decider.api.dependencies import Http, KnownTable, Queue, Tables
from decider.api.openapi import failures
from decider.api.schemas.what_if import WhatIfRequest, WhatIfResponse
from decider.formats.table_format import TableReader
from decider.state.effective_policy import LogStatus
from decider.store.read_counts import ReadCounts
from decider.whatif.comparison import CostModel
from decider.whatif.examination import describe, examine
from decider.whatif.recorded_filters import RecordedFilter
from decider.whatif.spread_rows import advise_order_by_log
from decider.whatif.trace_reader import TableTrace, read_history, with_ranges
from shared.errors import Unsupported
from shared.table import TableId

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.post(
    "/{name}/what-if",
    summary="Compare policies on a table's history",
    responses=failures(400, 404, 409, 413, 422, 502),
)
async def what_if_table(
    table: KnownTable, asked: WhatIfRequest, tables: Tables, queue: Queue, http: Http
) -> WhatIfResponse:
    """Replay the latest commits under no compaction, Lakewright's rules and those of other tools; recommend a policy.

    The history is read from the table's own log. `properties` adds a replay under these overrides,
    `sort_keys` counts the files that ranges of these columns read. Where reads were reported with filters,
    `sort_advice` compares orders by them. Costs are core-seconds of rewriting and of opening files.
    """
    prices = CostModel(
        write_s_per_gib=asked.write_s_per_gib,
        open_s=asked.open_s,
        queries_per_hour=asked.queries_per_hour,
        tail_hours=asked.tail_hours,
    )
    async with http.expensive_calls.what_if.turn():
        reader = tables.formats.open(table.location)
        history = await read_history(reader, max_commits=asked.max_commits)
        history = await with_ranges(reader, history, asked.sort_keys)
        state = await tables.states.state(table.id)
        in_force = tables.defaults.current.resolve(
            table,
            history.metadata.configuration,
            state.last_good if state else {},
            LogStatus(None, state is not None and state.is_stopped_by_qbeast, history.metadata.format),
        )
        # Seconds of computation: in a thread, so that the event loop serves other requests.
        report = await asyncio.to_thread(examine, history, in_force, prices, asked.properties)
        order = await _sort_advice(reader, history, queue.reads, table.id, in_force.policy.target_bytes)
    return WhatIfResponse.model_validate({**describe(report, tables.actions), "sort_advice": order})


async def _sort_advice(
    reader: TableReader, history: TableTrace, reads: ReadCounts, table: TableId, target_bytes: int
) -> dict[str, Any] | None:
    """Compare orders by the filters that were reported; None without any, and where the format has no bounds."""
    filters = tuple(RecordedFilter(expression, times) for expression, times in (await reads.read(table)).filters)
    if not filters:
        return None
    try:
        return await advise_order_by_log(reader, history, filters, target_bytes)
    except Unsupported:
        return None
