"""Routes of what-if: replay a table's history under other policies and rules; nothing is changed."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, BeforeValidator, Field

from decider.api.dependencies import Http, KnownTable, Queue, Tables
from decider.api.openapi import failures
from decider.api.routes.tables import PropertyName, PropertyText
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.formats.table_format import TableReader
from decider.state.effective_policy import LogStatus
from decider.store.tables.read_counts import ReadCounts
from decider.web.base_model import (
    RequestModel,
    ResponseModel,
    Rounded2,
    Rounded3,
    Rounded4,
    Seconds,
    examples,
    read_from,
)
from decider.whatif.comparison import CostModel
from decider.whatif.examination import TITLES, WhatIfReport, actions_left_out, examine
from decider.whatif.recorded_filters import RecordedFilter
from decider.whatif.simulator import SimulationResult
from decider.whatif.spread_rows import advise_order_by_log
from decider.whatif.storage import RETENTIONS_S, held_storage
from decider.whatif.trace_reader import TableTrace, read_history, with_ranges
from shared.errors import InvalidInput, Unsupported
from shared.prices import Prices, amount_text, parse_prices
from shared.table import TableId

MAX_COMMITS = 2_000
"""Maximum commits per request: some seconds of one core; the command line replays more, on its own machine."""

MAX_SORT_KEYS = 4
"""Columns per request: the log is read once, and sorts are planned, for each."""


ColumnName = Annotated[str, Field(min_length=1, max_length=255)]
"""Name of a column at the top level, in any case."""


class WhatIfRequest(
    RequestModel,
    json_schema_extra=examples({"queries_per_hour": 30, "properties": {"lakewright.fan-in": "4"}}, {}),
):
    """Cost assumptions and the amount of history to replay."""

    queries_per_hour: float = Field(
        10.0, ge=0, le=1_000_000, allow_inf_nan=False, description="Queries per hour that read the table."
    )
    open_s: float = Field(0.05, ge=0, le=3_600, allow_inf_nan=False, description="Core-seconds to open one file.")
    write_s_per_gib: float = Field(
        20.0, ge=0, le=1_000_000, allow_inf_nan=False, description="Core-seconds to rewrite 1 GiB."
    )
    tail_hours: float = Field(
        24.0, ge=0, le=8_760, allow_inf_nan=False, description="Hours of reads after the last commit."
    )
    max_commits: int = Field(
        MAX_COMMITS, ge=1, le=MAX_COMMITS, description="Maximum number of commits to replay, newest first."
    )
    prices: str | None = Field(
        None,
        max_length=2_000,
        description="Prices for the costs in money, as in `LAKEWRIGHT_PRICES`; without it, the prices of the service.",
    )
    properties: dict[PropertyName, PropertyText] = Field(
        {},
        max_length=100,
        description="Property overrides to replay beside the policy in effect; `fan-in` means `lakewright.fan-in`.",
    )
    sort_keys: tuple[ColumnName, ...] = Field(
        (),
        max_length=MAX_SORT_KEYS,
        description="Columns whose ranges are compared in the response's `sort_keys`; default: the table's sort key.",
    )


class PolicyTried(ResponseModel):
    """Values of a replayed policy."""

    enabled: bool = Field(description="Whether the policy rewrites files.")
    target_bytes: int = Field(description="Target file size in bytes.")
    fan_in: int = Field(description="Ratio between neighboring levels.")
    tolerance: Annotated[float, BeforeValidator(float)] = Field(
        description="Tolerated shortfall as a share of the target."
    )
    min_input_files: int = Field(description="Fewest files of a rewrite below the target.")


class CandidateReplayed(PolicyTried, alias_generator=read_from("policy", "replayed", files_mean="replayed.mean_files")):
    """A replayed policy."""

    files_mean: Rounded2 = Field(description="Mean number of live files until `tail_hours` after the last commit.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")
    write_cost_s: Rounded3 = Field(description="Core-seconds of rewriting.")
    read_cost_s: Rounded3 = Field(description="Core-seconds of opening files.")
    cost_s: Rounded3 = Field(description="Total cost in core-seconds.")


Price = Annotated[str, BeforeValidator("{:f}".format)]
"""A price; text, because numbers in JSON are no decimal ones."""

_Title = Annotated[str, BeforeValidator(lambda name: TITLES.get(name, name))]


class RuleReplayed(
    ResponseModel,
    alias_generator=read_from(
        "replayed",
        title="replayed.name",
        files_mean="replayed.mean_files",
        max_small_files_per_partition="replayed.small_max",
        write_amplification="replayed.wa",
        mean_time_small_s="replayed.stale_ms",
    ),
):
    """Replay of the history under one rule."""

    name: str = Field(description="Machine-readable name of the rule.")
    title: _Title = Field(description="Display name of the rule.")
    files_mean: Rounded2 = Field(description="Mean number of live files until `tail_hours` after the last commit.")
    files_at_end: int = Field(description="Number of live files at the end.")
    max_small_files_per_partition: int = Field(description="Maximum number of small files in one partition.")
    jobs: int = Field(description="Number of rewrites.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")
    write_amplification: Rounded4 = Field(description="Bytes rewritten per byte added.")
    mean_time_small_s: Annotated[Seconds, AfterValidator(lambda seconds: round(seconds, 1))] = Field(
        description="Mean time for which an added file stays small, in seconds."
    )
    write_cost_s: Rounded3 = Field(description="Core-seconds of rewriting.")
    read_cost_s: Rounded3 = Field(description="Core-seconds of opening files.")
    cost_s: Rounded3 = Field(description="Total cost in core-seconds.")
    write_cost: str | None = Field(None, description="Cost of rewriting in money; null without prices.")
    read_cost: str | None = Field(None, description="Cost of opening files in money; null without prices.")
    curve: tuple[tuple[int, int, int, int], ...] = Field(
        description="Time series: milliseconds since 1970, files, small files, cumulative bytes rewritten."
    )


class CustomPolicyReplayed(CandidateReplayed):
    """Replay under the property overrides of the request."""

    properties: dict[str, str] = Field(description="Property overrides with full names.")


class RewritesSoFar(ResponseModel):
    """Actual rewrites of the period, by any engine."""

    rewrites: int = Field(description="Number of commits that rewrote files without changing data.")
    bytes_rewritten: int = Field(description="Bytes replaced by them.")
    files_now: int = Field(description="Number of live files now.")


class CostModelUsed(ResponseModel):
    """Cost assumptions of the replay."""

    write_s_per_gib: float = Field(description="Core-seconds to rewrite 1 GiB.")
    open_s: float = Field(description="Core-seconds to open one file.")
    queries_per_hour: float = Field(description="Queries per hour that read the table.")
    tail_hours: float = Field(description="Hours of reads after the last commit.")


class PricesUsed(ResponseModel):
    """Prices of cores, bytes and requests, in one currency."""

    currency: str = Field(description="Currency.")
    source: str = Field(description="Preset that they are based on; empty without one.")
    core_hour: Price = Field(description="Price of a core for an hour.")
    gib_read: Price = Field(description="Price of a GiB read.")
    gib_written: Price = Field(description="Price of a GiB written.")
    gib_month: Price = Field(description="Price of a GiB stored for a month.")
    thousand_reads: Price = Field(description="Price of 1,000 read requests.")
    thousand_writes: Price = Field(description="Price of 1,000 write requests.")


class StorageHeld(ResponseModel):
    """Bytes that the table would have held with a vacuum of this retention."""

    retention_s: int = Field(description="Retention of removed files in seconds.")
    mean_bytes: int = Field(description="Mean bytes held over the period.")
    peak_bytes: int = Field(description="Most bytes held at any moment.")
    end_bytes: int = Field(description="Bytes held at the last commit.")


class RangeRead(ResponseModel):
    """Bytes read by ranges of one size: the mean over 20 of them, from the least value to the greatest."""

    share: float = Field(description="Share of the rows that each range holds.")
    share_read_now: float = Field(description="Mean share of the bytes read from the table as it is.")
    share_read_sorted: float = Field(description="The same once the table is sorted by the column.")


class SortKeyReads(ResponseModel):
    """Savings by sorting by one column, for queries by ranges of it, by the live files' minima and maxima."""

    column: str = Field(description="Name of the column.")
    files: int = Field(description="Number of live files.")
    files_without_range: int = Field(description="Live files without minimum and maximum; every range reads them.")
    ranges: tuple[RangeRead, ...] = Field(description="Bytes read by size of the range; empty if no file has a range.")


class RecommendationView(
    ResponseModel,
    alias_generator=read_from(
        policy="best.policy",
        cost_s="best.cost_s",
        current_cost_s="current.cost_s",
        no_compaction_cost_s="nothing_cost_s",
    ),
):
    """Policy with the lowest cost."""

    is_change: bool = Field(description="Whether a change of the policy in effect is recommended.")
    message: str = Field(description="Human-readable recommendation.")
    properties: dict[str, str] = Field(description="Table properties to set; empty if no change is recommended.")
    policy: PolicyTried = Field(description="Recommended policy.")
    cost_s: Rounded3 = Field(description="Cost of the recommended policy in core-seconds.")
    current_cost_s: Rounded3 = Field(description="Cost of the policy in effect in core-seconds.")
    no_compaction_cost_s: Rounded3 = Field(description="Cost without any rewrite in core-seconds.")
    curve: tuple[CandidateReplayed, ...] = Field(description="Cost by target size, other values as in effect.")


class OrderTried(ResponseModel):
    """An order, and what filters read of it."""

    column: str = Field(description="Column.")
    share_read: float = Field(description="Mean share of the bytes that the filters read.")


class SortAdviceView(ResponseModel):
    """Orders compared by recorded filters, with rows spread evenly between the bounds of each file."""

    column: str | None = Field(description="Advised column; null if none saves a tenth of the bytes.")
    properties: dict[str, str] = Field(description="Properties that sort the table by it.")
    share_read_now: float = Field(description="Mean share of the bytes that the filters read now.")
    candidates: tuple[OrderTried, ...] = Field(description="Compared columns, best first.")
    filters: int = Field(description="Number of different filters.")
    rows: int = Field(description="Number of rows compared.")
    left_out: tuple[str, ...] = Field(description="Columns without comparable bounds, and partition columns.")


class WhatIfResponse(ResponseModel):
    """Replay of one history under several rules, and a recommendation."""

    location: str = Field(description="Table location.")
    versions: tuple[int, int] = Field(description="First and last version replayed.")
    commits: int = Field(description="Number of commits replayed.")
    files_added: int = Field(description="Number of files added.")
    bytes_added: int = Field(description="Bytes added.")
    span_s: int = Field(description="Seconds between the first and the last commit.")
    actual: RewritesSoFar = Field(description="Actual rewrites of the period.")
    cost_model: CostModelUsed = Field(description="Cost assumptions.")
    prices: PricesUsed | None = Field(description="Prices of the costs in money; null without any.")
    policy: PolicyTried = Field(description="Policy in effect, used for the rules.")
    storage: tuple[StorageHeld, ...] = Field(
        description="Bytes held by retention, with the rewrites of the log as they were; orphans are not known."
    )
    sort_keys: tuple[SortKeyReads, ...] = Field(description="Files read by ranges of sort keys, one entry per column.")
    sort_advice: SortAdviceView | None = Field(
        None, description="Orders compared by the filters of reported reads; null if none were reported."
    )
    rules: tuple[RuleReplayed, ...] = Field(
        description="Results by rule: no compaction, Lakewright, other engines' rules, and the property overrides."
    )
    custom: CustomPolicyReplayed | None = Field(description="Cost under the property overrides; null without any.")
    notes: tuple[str, ...] = Field(description="Limits of the replay.")
    recommendation: RecommendationView = Field(description="Recommendation.")


router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.post(
    "/{name}/what-if",
    summary="Compare policies on a table's history",
    responses=failures(400, 404, 409, 413, 422, 502),
)
async def what_if_table(
    table: KnownTable, asked: WhatIfRequest, tables: Tables, queue: Queue, http: Http
) -> WhatIfResponse:
    """Replay the latest commits under no compaction, Lakewright's rules and others'; recommend a policy.

    The history is read from the table's own log. `properties` adds a replay under these overrides,
    `sort_keys` compares what ranges of these columns read, now and sorted. Where reads were reported with filters,
    `sort_advice` compares orders by them. Costs are core-seconds of rewriting and of opening files.
    """
    prices = CostModel(
        write_s_per_gib=asked.write_s_per_gib,
        open_s=asked.open_s,
        queries_per_hour=asked.queries_per_hour,
        tail_hours=asked.tail_hours,
    )
    money = http.settings.prices if asked.prices is None else _given(asked.prices)
    async with http.expensive_calls.what_if.turn():
        reader = tables.formats.open(table.location)
        history = await read_history(reader, max_commits=asked.max_commits)
        history = await with_ranges(reader, history, asked.sort_keys)
        state = await tables.states.state(table.id)
        known = state.log_status if state else LogStatus()
        in_force = tables.defaults.current.resolve(
            table,
            history.metadata.configuration,
            state.last_good if state else {},
            replace(known, refusal=None, format=history.metadata.format, typical_file_bytes=0),
        )
        # Seconds of computation: in a thread, so that the event loop serves other requests.
        report = await asyncio.to_thread(examine, history, in_force, prices, asked.properties)
        order = await _sort_advice(reader, history, queue.reads, table.id, in_force.policy.target_bytes)
    return what_if_view(report, tables.actions, order, money)


def _given(prices: str) -> Prices:
    try:
        return parse_prices(prices)
    except ValueError as problem:
        raise InvalidInput(f"prices: {problem}", field="prices") from problem


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


def what_if_view(
    report: WhatIfReport,
    actions: ActionRegistry = ACTIONS,
    order: dict[str, Any] | None = None,
    money: Prices | None = None,
) -> WhatIfResponse:
    """Show a report, with costs in money if there are prices.

    actions: all that the decider decides about, of which those that a replay leaves out are noted.
    """
    table, compared, custom = report.table, report.comparison, report.custom
    replayed = (compared.nothing, compared.ours, *compared.peers, *([custom.replayed] if custom else []))
    yours = None if custom is None else CandidateReplayed.of(custom).model_dump()
    retentions_s = sorted({*RETENTIONS_S, report.policy.retention_s})
    return WhatIfResponse(
        location=table.location,
        versions=(table.first_version, table.last_version),
        commits=len(table.history.commits),
        files_added=table.history.files_added,
        bytes_added=table.history.bytes_added,
        span_s=compared.nothing.span_ms // 1000,
        actual=RewritesSoFar.of(table),
        cost_model=CostModelUsed.of(report.prices),
        policy=PolicyTried.of(report.policy),
        storage=tuple(StorageHeld.of(held_storage(table.initial_bytes, table.storage, one)) for one in retentions_s),
        sort_keys=tuple(map(SortKeyReads.model_validate, report.sort_keys)),
        sort_advice=None if order is None else SortAdviceView.model_validate(order),
        prices=None if money is None else PricesUsed.of(money),
        rules=tuple(_rule(report, done, money) for done in replayed),
        custom=None if yours is None else CustomPolicyReplayed(**yours, properties=dict(report.properties)),
        notes=(*report.notes, *actions_left_out(actions, report.policy)),
        recommendation=RecommendationView.of(report.recommendation),
    )


def _rule(report: WhatIfReport, done: SimulationResult, money: Prices | None) -> RuleReplayed:
    view = RuleReplayed.of(report.prices.candidate(report.policy, done))
    if money is None:
        return view
    costs = {"write_cost": report.prices.writing(done), "read_cost": report.prices.reading(done)}
    return view.model_copy(update={name: amount_text(money.cost(used)) for name, used in costs.items()})
