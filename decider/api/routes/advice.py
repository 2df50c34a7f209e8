"""Advice: which settings would have served tables better, found in the background; people apply or dismiss it."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from typing import Annotated

from fastapi import APIRouter, Path, Query

from decider.api.declared_tables import require_undeclared
from decider.api.dependencies import KnownTable, Requests, Tables
from decider.api.openapi import failures
from decider.api.schemas.advice import AdviceList, AdviceView, ApplyRequest, StatusName, TableAdvice
from decider.api.services import TableServices
from decider.api.views.advice import advice_list, advice_view
from decider.web.base_model import MAX_PAGE, moment
from decider.web.errors import ApiError, not_found
from shared.table import TableRef

router = APIRouter(prefix="/v1", tags=["tables"])

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
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of items to return.")] = 100,
) -> AdviceList:
    """List changes of policies that would have saved most, found by replaying the tables' own histories.

    Costs are core-seconds of rewriting and of opening files, as in what-if.
    """
    every = await tables.advice.all()
    wanted = sorted((one for one in every if one.status.value in status), key=lambda one: -one.proof.saved_s_per_day)[
        :limit
    ]
    known = await tables.registry.get_many([one.table for one in wanted])
    shown = [(one, known[one.table]) for one in wanted if one.table in known]
    return advice_list(shown, every, tuple((await tables.advice.analyses()).values()))


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
    table: KnownTable, advice: AdviceId, asked: ApplyRequest, tables: Tables, requests: Requests
) -> AdviceView:
    """Queue a job that sets the table's own properties with one `ALTER TABLE`, which is `statement`.

    The table's next decision uses them. The commit changes the metadata, and with that Delta aborts every transaction
    that is open on the table. With `override`, the change becomes overrides of the registration, without a commit.
    """
    await _require(table, advice, tables)
    if asked.override and asked.dry_run:
        raise ApiError(422, "a dry run shows the ALTER TABLE; an override runs none", field="override", allowed="false")
    if asked.override:
        require_undeclared(table, tables)
        return advice_view(await requests.advice.override(table, advice), table)
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
