"""Advice: which settings would have served tables better, found in the background; people apply or dismiss it."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, Field

from decider.advice.analysis import former_values
from decider.advice.order_kinds import needs_owner
from decider.api.declared_tables import require_undeclared
from decider.api.dependencies import KnownTable, Limit, Queue, Requests, Tables
from decider.api.openapi import failures
from decider.api.services import TableServices
from decider.store.stored_values import moment
from decider.store.tables.advice_records import Advice, Analysis
from decider.web.base_model import (
    Moment,
    RequestModel,
    ResponseModel,
    Rounded2,
    Rounded3,
    Rounded4,
    examples,
    read_from,
)
from decider.web.errors import ApiError, not_found
from shared.formats.registry import support_of
from shared.paths.sql_text import cluster_by, set_properties
from shared.table import TableRef

StatusName = Literal["open", "applying", "dismissed", "applied", "judged"]


class ApplyRequest(RequestModel, json_schema_extra=examples({"dry_run": True}, {"override": True})):
    """Request to apply an advice."""

    dry_run: bool = Field(
        default=False, description="Check the request and show `statement` without changing anything."
    )
    override: bool = Field(
        default=False, description="Set overrides of the registration instead of the table's own properties."
    )


class ReplayedCostView(
    ResponseModel, alias_generator=read_from(write_cost_s="write_s", read_cost_s="read_s", storage_cost_s="storage_s")
):
    """Cost of the replayed commits under one policy, in core-seconds."""

    cost_s: Rounded3 = Field(description="Total cost in core-seconds.")
    write_cost_s: Rounded3 = Field(description="Core-seconds of rewriting.")
    read_cost_s: Rounded3 = Field(
        description="Core-seconds of opening files; of an order, of reading what filters do not exclude."
    )
    storage_cost_s: Rounded3 = Field(description="Cost of the bytes in the store, where a vacuum is advised.")
    files_mean: Rounded2 = Field(description="Mean number of live files.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")


class OrderProofView(
    ResponseModel, alias_generator=read_from(share_read_now="share_now", share_read_sorted="share_sorted")
):
    """An order of rows, and the bytes that filters of reported reads read with it."""

    column: str = Field(description="Column, or the columns of cells.")
    share_read_now: Rounded4 = Field(description="Mean share of the live bytes that the filters read at the analysis.")
    share_read_sorted: Rounded4 = Field(description="The same once the table has the order.")
    bytes: int = Field(description="Live bytes.")


class HeldView(ResponseModel):
    """Files in the store that no version inside the retention needs."""

    files: int = Field(description="Number of files that a vacuum would have deleted at the analysis.")
    bytes: int = Field(description="Their size.")
    retention_s: int = Field(description="Retention in seconds.")


class LogView(ResponseModel):
    """A log that is read whenever the table is opened."""

    commits: int = Field(description="Commits after the newest checkpoint.")
    checkpoint: int = Field(description="Version of that checkpoint; -1 without any.")


class BoundsView(ResponseModel):
    """A column without bounds, and the reads that bounds could spare files."""

    column: str = Field(description="Column that is to get bounds.")
    share_of_reads: Rounded4 = Field(description="Share of the reported reads with filters that compare it.")
    files_opened: Rounded2 = Field(description="Mean number of files that each of these opens.")
    files: int = Field(description="Number of live files.")


class ProofView(ResponseModel, alias_generator=read_from(before="current", after="advised")):
    """Replays that the advice rests on."""

    versions: tuple[int, int] = Field(description="First and last version replayed.")
    commits: int = Field(description="Number of commits replayed.")
    hours: Rounded2 = Field(description="Hours from the first commit to the analysis.")
    queries_per_hour: Rounded4 = Field(
        description="Assumed queries per hour that read the table; of an order, reported reads with filters."
    )
    before: ReplayedCostView = Field(description="Replay under the policy in effect.")
    after: ReplayedCostView = Field(description="Replay under the advised policy; of bounds, as before.")
    half_share: Rounded4 = Field(
        description="Saved share of the cost over the half of the commits, of an order of the files, that saves less."
    )
    order: OrderProofView | None = Field(description="Order that is advised; null for any other change.")
    held: HeldView | None = Field(description="What a vacuum deletes, if one is advised; null for any other change.")
    bounds: BoundsView | None = Field(description="Column that is to get bounds; null for any other change.")
    log: LogView | None = Field(description="Log that is to get checkpoints; null for any other change.")


class JudgementView(
    ResponseModel,
    alias_generator=read_from(
        at="at_ms", former_cost_s="former_s", advised_cost_s="advised_s", actual_cost_s="actual_s"
    ),
):
    """Measured effect of applied advice, over the commits since."""

    at: Moment = Field(description="Time of the judgement.")
    commits: int = Field(description="Number of commits since the change.")
    hours: Rounded2 = Field(description="Hours between the first and the last of them.")
    predicted_share: Rounded4 = Field(
        description="Share of the cost that the advice promised to save; 0 for bounds, which promise nothing."
    )
    saved_share: Rounded4 = Field(description="Share of the cost that was saved; negative if the table costs more.")
    former_cost_s: Rounded3 = Field(description="Cost under the former policy in core-seconds, by replay.")
    advised_cost_s: Rounded3 = Field(description="Cost under the advised policy in core-seconds, by replay.")
    actual_cost_s: Rounded3 = Field(description="Cost in core-seconds by the table's log, rewrites included.")


class AdviceView(ResponseModel):
    """A change of a table's policy that would have served it better."""

    id: str = Field(description="Id of the change; the same change of the same table has the same id.")
    table: str = Field(description="Table name.")
    at: AwareDatetime | None = Field(description="Time of the analysis.")
    status: StatusName = Field(
        description="`open`, `applying` while a job is to alter the table, `dismissed`, `applied`, or `judged` once "
        "enough was committed since it was applied."
    )
    changed_at: AwareDatetime | None = Field(description="Time at which it was applied or dismissed; null if open.")
    by_owner: bool = Field(description="Whether the owner changed the table's own properties, without Lakewright.")
    job: str = Field(description="Job that alters the table; empty if there is none.")
    problem: str = Field(description="Why the last attempt to alter the table failed; empty if none did.")
    change: dict[str, str] = Field(description="Properties to set.")
    former: dict[str, str] = Field(
        description="Values of these properties before; empty for one that was not set, or a fan-in that is fitted."
    )
    statement: str = Field(
        description="SQL that makes the change in the table's own properties, after a `CLUSTER BY` if cells of a Delta "
        "table are advised; empty if Spark's SQL has no name for the table, as for one of Iceberg without a catalog."
    )
    needs_owner: bool = Field(description="Whether only the owner can apply it, by the statement.")
    saved_s_per_day: float | None = Field(
        description="Core-seconds per day that the change promises to save; null if that is not known, as of bounds."
    )
    saved_share: float | None = Field(
        description="Promised share of the cost: the smallest of all commits and of each half of them; null as above."
    )
    message: str = Field(description="Human-readable advice.")
    proof: ProofView = Field(description="Figures of the replays.")
    judgement: JudgementView | None = Field(description="What happened since it was applied; null until then.")


class AdviceList(ResponseModel):
    """Advice for all tables, largest saving first."""

    advice: tuple[AdviceView, ...] = Field(description="Advice, largest saving per day first.")
    tables_analyzed: int = Field(description="Number of tables whose history was analyzed.")
    tables_failed: int = Field(description="Number of them whose log could not be read at the last analysis.")
    failed: dict[str, str] = Field(description="The first ten of these by name, with the reason.")
    judged: int = Field(description="Number of applied changes that promised a saving and were judged.")
    predicted_share: float | None = Field(description="Mean share of the cost that these promised to save.")
    saved_share: float | None = Field(description="Mean share of the cost that these saved.")


class TableAdvice(ResponseModel):
    """Advice for one table, and its last analysis."""

    advice: AdviceView | None = Field(description="Advice; null if no change would have saved enough.")
    analyzed_at: AwareDatetime | None = Field(description="Time of the last analysis; null if there was none.")
    analyzed_version: int | None = Field(description="Version at the last analysis.")
    problem: str = Field(description="Why the last analysis failed; empty if it did not.")


def advice_view(advice: Advice, table: TableRef) -> AdviceView:
    """Return an advice for a table."""
    is_known = advice.proof.bounds is None
    return AdviceView(
        id=advice.id,
        table=table.name,
        at=moment(advice.at_ms),
        status=advice.status.value,
        changed_at=moment(advice.changed_ms),
        by_owner=advice.by_owner,
        job=advice.job,
        problem=advice.problem,
        change=dict(advice.change),
        former=former_values(advice),
        statement=statement(advice, table),
        needs_owner=needs_owner(advice),
        saved_s_per_day=round(advice.proof.saved_s_per_day, 1) if is_known else None,
        saved_share=round(advice.proof.saved_share, 4) if is_known else None,
        message=advice.message,
        proof=ProofView.of(advice.proof),
        judgement=None if advice.judgement is None else JudgementView.of(advice.judgement),
    )


def statement(advice: Advice, table: TableRef) -> str:
    """Return the SQL that makes a change in the table's own properties, as Spark reads it; empty if there is none."""
    sql_paths, order = support_of(advice.format).sql_paths, advice.proof.order
    alter = set_properties(table.location, advice.change, sql_paths)
    if order is None or not needs_owner(advice):
        return alter
    return f"{cluster_by(table.location, order.column, sql_paths)}; {alter}"


def advice_list(
    shown: Sequence[tuple[Advice, TableRef]],
    every: Sequence[Advice],
    done: Sequence[Analysis],
    failed: Mapping[str, str],
) -> AdviceList:
    """Return ranked advice; `every` advice there is, the last analyses of all tables, and why some failed by name."""
    ranked = sorted(shown, key=lambda one: (-one[0].proof.saved_s_per_day, one[1].name))
    judged = [one.judgement for one in every if one.judgement is not None and one.proof.bounds is None]
    return AdviceList(
        advice=tuple(advice_view(advice, table) for advice, table in ranked),
        tables_analyzed=len(done),
        tables_failed=sum(bool(one.problem) for one in done),
        failed=dict(failed),
        judged=len(judged),
        predicted_share=round(fmean(one.predicted_share for one in judged), 4) if judged else None,
        saved_share=round(fmean(one.saved_share for one in judged), 4) if judged else None,
    )


router = APIRouter(prefix="/v1", tags=["tables"])

FAILED_SHOWN = 10
"""Tables that are named of those whose analysis failed."""

AdviceId = Annotated[
    str,
    Path(
        pattern="^[0-9a-f]{12}$",
        description="Id of the advice.",
        openapi_examples={"as listed": {"value": "5f0c9a1be2d4"}},
    ),
]


@router.get("/advice", summary="List advice", responses=failures(422))
async def list_advice(
    tables: Tables,
    status: Annotated[
        tuple[StatusName, ...], Query(max_length=5, description="Only advice of these kinds; may be repeated.")
    ] = ("open",),
    limit: Limit = 100,
) -> AdviceList:
    """List changes of policies that would have saved most, found by replaying the tables' own histories.

    Orders are compared by reported reads. Costs are core-seconds of rewriting and of reading.
    """
    every, analyses = await tables.advice.all(), await tables.advice.analyses()
    wanted = sorted((one for one in every if one.status.value in status), key=lambda one: -one.proof.saved_s_per_day)[
        :limit
    ]
    failed = [table for table, one in analyses.items() if one.problem][:FAILED_SHOWN]
    known = await tables.registry.get_many([*(one.table for one in wanted), *failed])
    shown = [(one, known[one.table]) for one in wanted if one.table in known]
    problems = {known[table].name: analyses[table].problem for table in failed if table in known}
    return advice_list(shown, every, tuple(analyses.values()), problems)


@router.get("/tables/{name}/advice", summary="Show the advice for a table", responses=failures(404, 422))
async def table_advice(table: KnownTable, tables: Tables) -> TableAdvice:
    """Show the newest advice for a table with its proof and what became of it, and when the table was analyzed."""
    advice, last = await tables.advice.read(table.id), await tables.advice.analysis(table.id)
    return TableAdvice(
        advice=None if advice is None else advice_view(advice, table),
        analyzed_at=None if last is None else moment(last.at_ms),
        analyzed_version=None if last is None else last.version,
        problem="" if last is None else last.problem,
    )


@router.post("/tables/{name}/advice/{advice}/apply", summary="Apply advice", responses=failures(404, 409, 422))
async def apply_advice(
    table: KnownTable, advice: AdviceId, asked: ApplyRequest, tables: Tables, queue: Queue, requests: Requests
) -> AdviceView:
    """Queue a job that sets the table's own properties with one `ALTER TABLE`, which is `statement`.

    The table's next decision uses them. The commit changes the metadata, and with that Delta aborts every transaction
    that is open on the table. With `override`, the change becomes overrides of the registration, without a commit.
    An order cannot: files are sorted only by the table's own properties. What `needs_owner` is not applied at all.
    """
    await _require(table, advice, tables)
    if asked.override and asked.dry_run:
        raise ApiError(422, "a dry run shows the ALTER TABLE; an override runs none", field="override", allowed="false")
    if asked.override:
        require_undeclared(table, tables)
        made = await requests.advice.override(table, advice)
        await queue.history.tables.mark_properties(table.id, table.properties, {**table.properties, **made.change})
        return advice_view(made, table)
    return advice_view(await requests.advice.apply(table, advice, dry_run=asked.dry_run), table)


@router.post("/tables/{name}/advice/{advice}/dismiss", summary="Dismiss advice", responses=failures(404, 409, 422))
async def dismiss_advice(table: KnownTable, advice: AdviceId, tables: Tables, requests: Requests) -> AdviceView:
    """Dismiss a change: the same change is not advised again for this table; another one is."""
    await _require(table, advice, tables)
    return advice_view(await requests.advice.dismiss(table, advice), table)


async def _require(table: TableRef, advice: str, tables: TableServices) -> None:
    """Raise 404 unless this is the table's advice; an older one may have been replaced by another change."""
    known = await tables.advice.read(table.id)
    if known is None or known.id != advice:
        raise not_found("advice", advice)
