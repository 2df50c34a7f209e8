"""Schemas of a table's index on several columns."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel

INDEX_EXAMPLE: dict[str, Any] = {
    "kind": "qbeast",
    "version": 41,
    "last_revision": 1,
    "revisions": [
        {
            "id": 1,
            "desired_cube_size": 5_000_000,
            "columns": ["price:linear", "user:linear"],
            "rows": 12_000_000,
            "bytes": 480_000_000,
            "files": 60,
            "cubes": 21,
            "blocks": 480,
            "height": 3,
            "min_height": 2,
            "fanout": 4.0,
            "fragmentation": 22.86,
            "blocks_per_file": 8.0,
            "max_blocks_per_file": 21,
            "max_blocks_per_cube": 60,
            "overhang_blocks": 118,
            "offset_rows": 2_400_000,
            "zero_block_files": 0,
            "files_by_level": {"5": 60},
            "eligible_groups": 4,
            "eligible_bytes": 400_000_000,
        }
    ],
    "files_by_class": {"indexed": 60, "unindexed": 1, "foreign_tags": 0, "legacy": 0, "malformed": 0},
    "unindexed_bytes": 1_048_576,
    "oldest_unindexed_at": "2026-01-01T14:03:06Z",
    "first_problem": "",
    "refusal": "",
    "ignored_properties": [],
    "next": {"strategy": "unindexed", "bytes": 1_048_576, "files": ["part-00000-6d1e.parquet"]},
    "sample": {"fraction": 0.1, "files": 60, "bytes": 480_000_000, "rewrite_files": 20, "rewrite_bytes": 160_000_000},
    "forecasts": [
        {
            "selection": "leveled",
            "budget_bytes": 1_000_000_000,
            "bytes": 400_000_000,
            "complete": True,
            "steps": [
                {"bytes": 400_000_000, "fragmentation": 1.52, "blocks": 32, "overhang_blocks": 2, "files": 9},
            ],
        }
    ],
}


class IndexRevisionView(ResponseModel):
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
    fanout: float = Field(description="Mean number of children of a cube that has any.")
    fragmentation: float = Field(description="Blocks per cube; 1 right after everything was optimized.")
    blocks_per_file: float = Field(description="Mean blocks of a file.")
    max_blocks_per_file: int = Field(description="Maximum blocks of a file.")
    max_blocks_per_cube: int = Field(description="Maximum blocks of a cube.")
    overhang_blocks: int = Field(description="Blocks that may hold rows that belong to descendants of their cube.")
    offset_rows: int = Field(description="Estimated number of such rows.")
    zero_block_files: int = Field(description="Files without rows, which are never rewritten.")
    files_by_level: dict[int, int] = Field(description="Number of files by the power of ten of their largest block.")
    eligible_groups: int = Field(description="Groups of blocks that are eligible for a rewrite.")
    eligible_bytes: int = Field(description="Bytes of their files.")


class NextRewriteView(ResponseModel):
    """Files that one iteration would rewrite."""

    strategy: str = Field(
        description="`unindexed`: files that are not indexed yet. `leveled`: leveled compaction. "
        "`sampling`: files of which queries on a sample read too much."
    )
    bytes: int = Field(description="Size of the files in bytes.")
    files: tuple[str, ...] = Field(description="Paths of the files.")


class SampleView(ResponseModel):
    """What a sampling query reads."""

    fraction: float = Field(description="Fraction of the rows that it reads.")
    files: int = Field(description="Number of files that it opens.")
    bytes: int = Field(description="Their size in bytes.")
    rewrite_files: int = Field(description="Number of files whose rewrite lowers that.")
    rewrite_bytes: int = Field(description="Their size in bytes.")


class ForecastStepView(ResponseModel):
    """One iteration, and the index after it; estimated, except for the bytes of the first."""

    bytes: int = Field(description="Bytes that it rewrites.")
    fragmentation: float = Field(description="Blocks per cube after it.")
    blocks: int = Field(description="Number of blocks after it.")
    overhang_blocks: int = Field(description="Blocks after it that may hold rows of descendants of their cube.")
    files: int = Field(description="Number of files after it.")


class IndexForecastView(ResponseModel):
    """The iterations under one selection, if nothing else is written."""

    selection: str = Field(
        description="`leveled`: leveled compaction. `sampling`: rewrites for a sample alone. `everything`: all files "
        "of the revision at once."
    )
    budget_bytes: int | None = Field(description="Bytes of one iteration, 0 for its first group; null for everything.")
    bytes: int = Field(description="Bytes that all its iterations rewrite.")
    complete: bool = Field(description="Whether nothing is eligible afterwards.")
    steps: tuple[ForecastStepView, ...] = Field(description="The iterations in order.")


class TableIndexResponse(ResponseModel):
    """The index of a table, from its log alone."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [INDEX_EXAMPLE]})

    kind: str = Field(description="Kind of index.")
    version: int = Field(description="Table version.")
    last_revision: int = Field(description="Newest revision; 0 where nothing is indexed yet.")
    revisions: tuple[IndexRevisionView, ...] = Field(description="Revisions, oldest first.")
    files_by_class: dict[str, int] = Field(
        description="Number of live files that are `indexed`, `unindexed`, have `foreign_tags` that hide them from the "
        "index, are of its `legacy` format, or `malformed`."
    )
    unindexed_bytes: int = Field(description="Bytes of the files that are not indexed.")
    oldest_unindexed_at: datetime | None = Field(description="When the oldest of them was written.")
    first_problem: str = Field(description="The first malformed file and what is wrong with it; empty if none.")
    refusal: str = Field(description="Why the index must not be optimized; empty if it may be.")
    ignored_properties: tuple[str, ...] = Field(description="Properties about the index that have no effect, and why.")
    next: NextRewriteView | None = Field(description="What is rewritten first; null if nothing is.")
    sample: SampleView | None = Field(description="What a sampling query reads; null if none is requested.")
    forecasts: tuple[IndexForecastView, ...] = Field(
        description="Iterations to come under the table's own selection and others; empty if not requested."
    )
