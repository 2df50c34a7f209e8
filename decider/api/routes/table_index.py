"""The index of a table on several columns, read from its own log."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from decider.api.dependencies import Http, KnownTable, Tables
from decider.api.openapi import failures
from decider.web.base_model import Moment, ResponseModel, Rounded2, read_from
from decider.web.errors import ApiError
from shared.formats.registry import support_of
from shared.index.status import IndexQuery
from shared.policy.policy import PropertyIssue
from shared.refusals import Refusal


class IndexRevisionView(ResponseModel, alias_generator=read_from("metrics")):
    """One revision of the index: its parameters, its state, and what is eligible for a rewrite."""

    id: int = Field(description="Number of the revision.")
    desired_cube_size: int = Field(description="Rows that a cube is to hold.")
    columns: tuple[str, ...] = Field(description="Indexed columns, each with the way its values are mapped.")
    rows: int = Field(description="Rows of all blocks.")
    bytes: int = Field(description="Total size of the files in bytes.")
    files: int = Field(description="Number of live files.")
    cubes: int = Field(description="Number of cubes with a block.")
    blocks: int = Field(description="Number of blocks: parts of files that hold rows of one cube.")
    height: int = Field(description="Levels of the tree of cubes.")
    min_height: int = Field(description="Levels of a balanced tree of as many rows.")
    fanout: Rounded2 = Field(description="Mean number of children of a cube that has any.")
    fragmentation: Rounded2 = Field(description="Blocks per cube; 1 right after everything was optimized.")
    blocks_per_file: Rounded2 = Field(description="Mean blocks of a file.")
    max_blocks_per_file: int = Field(description="Maximum blocks of a file.")
    max_blocks_per_cube: int = Field(description="Maximum blocks of a cube.")
    overhang_blocks: int = Field(description="Blocks that may hold rows that belong to descendants of their cube.")
    offset_rows: int = Field(description="Estimated number of such rows.")
    hidden_blocks: int = Field(description="Blocks with a row that samples may miss; 0 unless others broke the index.")
    zero_block_files: int = Field(description="Files without rows, which are never rewritten.")
    files_by_level: dict[int, int] = Field(description="Number of files by the power of ten of their largest block.")
    eligible_groups: int = Field(description="Groups of blocks that are eligible for a rewrite.")
    eligible_bytes: int = Field(description="Bytes of their files.")


class NextRewriteView(ResponseModel, alias_generator=read_from(files="paths")):
    """Files that one iteration would rewrite."""

    strategy: str = Field(
        description="`unindexed`: files that are not indexed yet. `leveled`: leveled compaction. "
        "`sampling`: files of which queries on a sample read too much."
    )
    bytes: int = Field(description="Size of the files in bytes.")
    files: tuple[str, ...] = Field(description="Paths of the files.")


class SampleView(ResponseModel):
    """Files and bytes that a sampling query reads."""

    fraction: float = Field(description="Fraction of the rows that it reads.")
    files: int = Field(description="Number of files that it opens.")
    bytes: int = Field(description="Their size in bytes.")
    rewrite_files: int = Field(description="Number of files whose rewrite lowers that.")
    rewrite_bytes: int = Field(description="Their size in bytes.")


class ForecastStepView(ResponseModel):
    """One iteration, and the index after it; estimated, except for the bytes of the first."""

    bytes: int = Field(description="Bytes that it rewrites.")
    fragmentation: Rounded2 = Field(description="Blocks per cube after it.")
    blocks: int = Field(description="Number of blocks after it.")
    overhang_blocks: int = Field(description="Blocks after it that may hold rows of descendants of their cube.")
    files: int = Field(description="Number of files after it.")


class IndexForecastView(ResponseModel, alias_generator=read_from(complete="is_complete")):
    """The iterations under one selection, if nothing else is written."""

    selection: str = Field(
        description="`leveled`: leveled compaction. `sampling`: rewrites for a sample alone. `everything`: all files "
        "of the revision at once."
    )
    budget_bytes: int | None = Field(description="Bytes of one iteration, 0 for its first group; null for everything.")
    bytes: int = Field(description="Bytes that all its iterations rewrite.")
    complete: bool = Field(description="Whether nothing is eligible afterwards.")
    steps: tuple[ForecastStepView, ...] = Field(description="The iterations in order.")


def _refusal_text(value: Any) -> Any:
    return "" if value is None else value.message if isinstance(value, Refusal) else value


def _issue_text(value: Any) -> Any:
    return f"{value.property} = {value.value}: {value.reason}" if isinstance(value, PropertyIssue) else value


_RefusalText = Annotated[str, BeforeValidator(_refusal_text)]
_IssueText = Annotated[str, BeforeValidator(_issue_text)]


class TableIndexResponse(
    ResponseModel,
    alias_generator=read_from(
        "rewrites",
        unindexed_bytes="unindexed.bytes",
        oldest_unindexed_at="unindexed.oldest_ms",
        ignored_properties="issues",
    ),
):
    """The index of a table, from its log alone."""

    kind: str = Field(description="Kind of index.")
    version: int = Field(description="Table version.")
    last_revision: int = Field(description="Newest revision; 0 where nothing is indexed yet.")
    revisions: tuple[IndexRevisionView, ...] = Field(description="Revisions, oldest first.")
    files_by_class: dict[str, int] = Field(
        description="Number of live files that are `indexed`, `unindexed`, have `foreign_tags` that hide them from the "
        "index, are of its `legacy` format, or `malformed`."
    )
    unindexed_bytes: int = Field(description="Bytes of the files that are not indexed.")
    oldest_unindexed_at: Moment = Field(description="When the oldest of them was written.")
    first_problem: str = Field(description="The first malformed file and what is wrong with it; empty if none.")
    refusal: _RefusalText = Field(description="Why the index must not be optimized; empty if it may be.")
    ignored_properties: tuple[_IssueText, ...] = Field(
        description="Properties about the index that have no effect, and why."
    )
    next: NextRewriteView | None = Field(description="What is rewritten first; null if nothing is.")
    sample: SampleView | None = Field(description="What a sampling query reads; null if none is requested.")
    forecasts: tuple[IndexForecastView, ...] = Field(
        description="Iterations to come under the table's own selection and others; empty if not requested."
    )


router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.get("/{name}/index", summary="Show the index of a table", responses=failures(404, 422, 502))
async def show_table_index(  # noqa: PLR0913, PLR0917 - each is a parameter of the call
    table: KnownTable,
    tables: Tables,
    http: Http,
    revision: Annotated[
        int | None, Query(ge=0, lt=2**31, description="Revision to optimize; default: as in the table's properties.")
    ] = None,
    bytes_per_iter: Annotated[
        int | None,
        Query(ge=0, lt=2**63, description="Bytes of one iteration, 0 for its first group; default: as `revision`."),
    ] = None,
    sample: Annotated[
        float | None, Query(gt=0, lt=1, description="Fraction of the rows that a sampling query reads.")
    ] = None,
    what_if: Annotated[
        bool, Query(description="Also estimate the iterations to come under several selections.")
    ] = False,
) -> TableIndexResponse:
    """Show a Qbeast index: revisions, fragmentation, files that are not indexed, and what is eligible for a rewrite.

    404 for a table without an index. Nothing is rewritten.
    """
    async with http.expensive_calls.table_reads.turn():
        snapshot = await tables.formats.open(table.location).snapshot()
        read = support_of(snapshot.metadata.format).index_status
        found = await asyncio.to_thread(
            read, snapshot, IndexQuery(revision, bytes_per_iter, sample, is_forecast=what_if)
        )
    if found is None:
        raise ApiError(404, f"{table.name} has no index", field="name", allowed="a table with a Qbeast index")
    return TableIndexResponse.of(found)
