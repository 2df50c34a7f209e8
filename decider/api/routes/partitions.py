"""Partitions of a table: their layout, and what would be decided about them now."""

import math
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from decider.api.dependencies import Http, KnownTable, Limit, Operations, PageToken, Tables
from decider.api.openapi import failures
from decider.decide.action import Action
from decider.decide.context import DecisionContext, KnownRefusals
from decider.decide.decision import Trigger
from decider.decide.evaluate import evaluate_each
from decider.formats.table_format import RetainedHistory
from decider.optimize.partition_selector import label, named_values
from decider.state.table_summary import layout_history
from decider.web.base_model import MAX_PAGE, Moment, ResponseModel, Rounded6, read_from
from shared.layout.eligibility import Excess
from shared.layout.partition_stats import PartitionStats
from shared.partition_refusals import TableFingerprint
from shared.policy.levels import FULL, SizeLevels
from shared.table import BEFORE_FIRST, PartitionKey, Position

router = APIRouter(prefix="/v1/tables", tags=["tables"])

EXCESS_RATIO = (
    "Root of the excess entropy, which a merge of small files can still remove, as a share of the target: 0 is as "
    "compact as possible, 1 is worst."
)


class SizeLevelView(ResponseModel):
    """Files of one size class."""

    level: int = Field(description="Level; 0 to 5 are small files, 6 is full.")
    from_bytes: int = Field(description="Minimum size in bytes.")
    below_bytes: int | None = Field(description="Minimum size of the next level in bytes; null for the last.")
    files: int = Field(description="Number of files.")
    bytes: int = Field(description="Total size in bytes.")


class LayoutView(ResponseModel):
    """File layout of a table or partition, from the incremental state."""

    files: int = Field(description="Number of live files.")
    bytes: int = Field(description="Total size in bytes.")
    small_files: int = Field(description="Number of files below the full size.")
    small_bytes: int = Field(description="Total size of small files in bytes.")
    deletion_vector_files: int = Field(description="Number of files with a deletion vector.")
    deleted_rows: int = Field(description="Rows hidden by deletion vectors.")
    files_needed: int = Field(description="Number of files that would do for the same bytes.")
    excess_ratio: float = Field(description=EXCESS_RATIO)
    mse_bytes2: float = Field(
        description="File size entropy (MSE): mean squared shortfall against the target, in bytes squared."
    )
    rms_shortfall: float = Field(
        description="Root of the file size entropy as a share of the target; a single small file has nearly 1."
    )
    depth: int = Field(
        0, description="Most full files of one sort level that are known to overlap; 0 without a sort order."
    )
    levels: tuple[SizeLevelView, ...] = Field(description="Files per level.")


class PartitionDecision(ResponseModel):
    """Decision of one action for the current state of a partition."""

    action: str = Field(description="Kind of job.")
    decision: str = Field(description="`skip` or `enqueue`.")
    reason: str = Field(description="Machine-readable reason.")
    reason_text: str = Field(description="Human-readable reason.")


class PartitionView(ResponseModel):
    """One partition: files that may be merged with each other."""

    partition_key: str = Field(description="Partition key: physical column names and values as in the table's log.")
    partition_label: str = Field(description="Partition label.")
    partition: dict[str, str | None] = Field(description="Partition values by column.")
    layout: LayoutView = Field(description="File layout.")
    decisions: tuple[PartitionDecision, ...] = Field(description="Decision of each action for the current state.")


class PartitionList(ResponseModel):
    """A page of partitions, ordered by key."""

    version: int = Field(description="Table version of the state.")
    partitions: tuple[PartitionView, ...] = Field(description="Partitions.")
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last page.")


def layout_view(state: PartitionStats, size_levels: SizeLevels, excess: Excess | None = None) -> LayoutView:
    """Show the files of a partition, or of many partitions added up with their excess, level by level."""
    target = size_levels.target_bytes
    excess = Excess.of([state], target) if excess is None else excess
    floors = size_levels.floors
    counts = (*state.counts, state.files - state.small_files)
    sizes = (*state.sizes, state.bytes - state.small_bytes)
    levels = tuple(
        SizeLevelView(
            level=level,
            from_bytes=floors[level],
            below_bytes=floors[level + 1] if level < FULL else None,
            files=counts[level],
            bytes=sizes[level],
        )
        for level in range(FULL + 1)
    )
    mse = state.mse()
    return LayoutView(
        files=state.files,
        bytes=state.bytes,
        small_files=state.small_files,
        small_bytes=state.small_bytes,
        deletion_vector_files=state.dv_files,
        deleted_rows=state.deleted_rows,
        files_needed=state.files - excess.files,
        excess_ratio=round(excess.ratio(state.files, target), 6),
        mse_bytes2=float(mse),
        rms_shortfall=round(math.sqrt(mse) / target, 6),
        depth=max((depth.deepest[0] for _, depth in state.depths), default=0),
        levels=levels,
    )


def partition_view(
    context: DecisionContext, partition: PartitionKey, state: PartitionStats, actions: Iterable[Action]
) -> PartitionView:
    """Show one partition, and what would be decided about it now for each action."""
    decisions = evaluate_each(context, partition, state, Trigger(0), actions)
    return PartitionView(
        partition_key=partition,
        partition_label=label(partition, context.columns),
        partition=named_values(partition, context.columns),
        layout=layout_view(state, context.policy.size_levels),
        decisions=tuple(
            PartitionDecision(
                action=made.action, decision=made.verdict, reason=made.reason, reason_text=made.reason.message
            )
            for made in decisions
        ),
    )


@router.get("/{name}/partitions", summary="List partitions", responses=failures(404, 422))
async def list_partitions(
    table: KnownTable, tables: Tables, operations: Operations, limit: Limit = 100, page_token: PageToken = None
) -> PartitionList:
    """List the partitions of a table with their layout and current decision."""
    state = await tables.states.state(table.id)
    if state is None:
        return PartitionList(version=-1, partitions=(), next_page_token=None)
    in_force = tables.defaults.current.resolve(table, state.metadata.configuration, state.last_good, state.log_status)
    policy = (await tables.states.calibration(table.id)).applied_to(in_force.policy)
    partitions, after = await tables.states.page(table.id, after=page_token or "", limit=limit)
    found = (await tables.states.calibrated_partitions(table.id, tuple(partitions))).refusals
    refused = found.in_force(TableFingerprint.of(state.metadata, in_force.policy), state.version)
    context = DecisionContext.of_policy(policy, state.metadata.partition_columns, operations.now_ms())
    context = replace(context, refusals=KnownRefusals(refused))
    return PartitionList(
        version=state.version,
        partitions=tuple(
            partition_view(context, partition, one, tables.actions) for partition, one in partitions.items()
        ),
        next_page_token=after,
    )


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
