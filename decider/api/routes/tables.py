"""Tables: the registered ones by name, with what is known of their last read."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from decider.api.dependencies import Limit, PageToken, Requests, Tables
from decider.api.openapi import failures
from decider.store.registry.table_query import TableCondition
from decider.store.registry.table_registry import StoredRefusal
from decider.store.tables.table_state import TableState
from decider.web.base_model import ResponseModel, Time, read_from
from shared.refusals import Refusal

router = APIRouter(prefix="/v1/tables", tags=["tables"])


CONDITION = (
    "`refused`, `unread`, `failing` (a job is quarantined), `invalid_properties`, `disabled`, `paused`, `running`, "
    "`outside_window` (its jobs wait for its work window), `over_budget` (a job waits for a budget), "
    "`waiting` for an actor, `backing_off` after a failure, `not_due` (more can be gained, but a rewrite now would be "
    "repeated later, or waits for others), or `compact`."
)

Tenant = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
PropertyName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9.-]*$", max_length=100)]
PropertyText = Annotated[str, Field(max_length=2_000)]


class TableView(ResponseModel, alias_generator=read_from(declared="is_declared")):
    """A registered table."""

    id: str = Field(description="Stable id, derived from the location.")
    name: str = Field(description="Display name; the id if none was given.")
    location: str = Field(description="Canonical URI of the table.")
    tenant: str = Field(description="Tenant.")
    properties: dict[str, str] = Field(
        description="Property overrides; they take precedence over the table's own properties."
    )
    declared: bool = Field(description="Whether the tables file declares it; calls then do not change it.")


class TableRefusal(ResponseModel, alias_generator=read_from(at="at_ms", since="since_ms", missing="is_missing")):
    """Reason why a table is not optimized; checked again with every event and sweep."""

    at: Time = Field(description="Time of the last check.")
    since: Time = Field(description="Time since which the table has been refused without interruption.")
    missing: bool = Field(description="Whether there is no table at the location; its jobs and state are deleted.")
    code: str = Field(
        description="`unsafe_feature`, `unknown_protocol`, `qbeast` or `unreadable_log`; empty if the log is damaged "
        "or missing."
    )
    reason: str = Field(description="Reason and remedy.")


class ListedTable(TableView):
    """A registered table and the result of its last read."""

    condition: TableCondition = Field(description=CONDITION)
    version: int | None = Field(description="Table version of the rolling state; null if the table was not read yet.")
    files: int | None = Field(description="Number of live files.")
    files_needed: int | None = Field(description="Number of files that would do for the same bytes.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")
    error: str = Field(description="Error of this decider's last read if it failed temporarily; empty otherwise.")


class TableList(ResponseModel):
    """A page of tables, ordered by name."""

    tables: tuple[ListedTable, ...] = Field(description="Tables.")
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last page.")


def now_refused(noted: StoredRefusal | None, cursor: TableState | None, by_rule: Refusal | None) -> TableRefusal | None:
    """Return the current refusal: the state's, or the one with which the last refresh ended.

    The refresh stores a refusal by rule after the state has moved; until then the state is right.
    """
    if noted is not None and (not noted.code or cursor is None or (by_rule is not None and noted.code == by_rule.code)):
        return TableRefusal.of(noted)
    if cursor is None or by_rule is None:
        return None
    return TableRefusal.of(StoredRefusal(cursor.folded_ms, by_rule.message, code=by_rule.code))


@router.get("", summary="List tables", responses=failures(422))
async def list_tables(
    tables: Tables,
    requests: Requests,
    prefix: Annotated[str, Query(max_length=200, description="Name prefix.", examples=["sales."])] = "",
    limit: Limit = 100,
    page_token: PageToken = None,
) -> TableList:
    """List registered tables by name, with the condition of each."""
    page = await tables.registry.page(prefix=prefix, after=page_token or "", limit=limit)
    listed = (
        ListedTable(
            **TableView.of(table).model_dump(),
            condition=row.condition(jobs),
            version=row.version,
            files=row.summary.files if row.summary else None,
            files_needed=row.summary.files_needed if row.summary else None,
            error=requests.refresh_queue.problem(table.id),
            refusal=TableRefusal.of(row.refusal) if row.refusal else None,
        )
        for table, (row, jobs) in zip(page.tables, await tables.index.rows(page.tables), strict=True)
    )
    return TableList(tables=tuple(listed), next_page_token=page.next_after)
