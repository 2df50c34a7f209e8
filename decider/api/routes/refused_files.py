"""Files that actors refused, over all tables."""

from datetime import datetime
from itertools import islice

from fastapi import APIRouter
from pydantic import Field

from decider.api.dependencies import Limit, Requests, Tables
from decider.api.openapi import failures
from decider.api.services import TableServices
from decider.optimize.partition_selector import label
from decider.store.stored_values import moment
from decider.store.tables.table_state import TableState
from decider.web.base_model import ResponseModel
from shared.partition_refusals import TableFingerprint
from shared.policy.policy import Policy
from shared.refusals import explain
from shared.table import TableRef


class RefusedFilesView(ResponseModel):
    """Files of one partition that are not rewritten as they are; the partition's other files are."""

    table: str = Field(description="Name of the table.")
    partition_key: str = Field(description="Partition key.")
    partition_label: str = Field(description="Partition label.")
    reason: str = Field(description="Machine-readable reason.")
    reason_text: str = Field(description="Human-readable reason.")
    message: str = Field(description="Message of the actor that refused them.")
    remedy: str = Field(
        description="What to do. A change of the files, the schema, the properties or the release lifts a refusal, too."
    )
    files: int = Field(description="Number of files.")
    paths: tuple[str, ...] = Field(description="Paths of the first files, as the table spells them.")
    since: datetime | None = Field(description="When they were refused.")


class RefusedFilesList(ResponseModel):
    """Refused files of all tables."""

    partitions: int = Field(description="Number of partitions with refused files, over all tables.")
    refused: tuple[RefusedFilesView, ...] = Field(description="The first of them, by table and partition.")


SHOWN = 20
"""Partitions with refused files that a table shows."""


async def refused_files(
    table: TableRef, state: TableState, policy: Policy, tables: TableServices, *, limit: int = SHOWN
) -> tuple[RefusedFilesView, ...]:
    """Return the refusals that hold for a table, of its first partitions that have any."""
    found = await tables.states.refusals(table.id, limit=limit)
    known = found.in_force(TableFingerprint.of(state.metadata, policy), state.version)
    every = (
        RefusedFilesView(
            table=table.name,
            partition_key=partition,
            partition_label=label(partition, state.metadata.partition_columns),
            reason=one.reason,
            reason_text=explain(one.reason)[0],
            message=one.message,
            remedy=explain(one.reason)[1],
            files=one.count,
            paths=one.paths,
            since=moment(one.at_ms),
        )
        for partition, refusals in sorted(known.items())
        for one in refusals.all
    )
    return tuple(islice(every, limit))


router = APIRouter(prefix="/v1/refused-files", tags=["tables"])

MAX_TABLES = 100
"""Tables whose refusals one call reads: a second of round trips at most."""


@router.get("", summary="List refused files", responses=failures(422))
async def list_refused_files(
    tables: Tables,
    requests: Requests,
    limit: Limit = 100,
) -> RefusedFilesList:
    """List files that actors refused and that no job is queued for, with the reason and what to do."""
    refusing = await tables.states.refusing_tables()
    found: list[RefusedFilesView] = []
    for table_id in sorted(refusing)[:MAX_TABLES]:
        table, state = await tables.registry.get(table_id), await tables.states.state(table_id)
        if table is not None and state is not None and len(found) < limit:
            policy = requests.tracker.effective(table, state).policy
            found += await refused_files(table, state, policy, tables, limit=limit - len(found))
    return RefusedFilesList(partitions=sum(refusing.values()), refused=tuple(found[:limit]))
