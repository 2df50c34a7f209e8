"""Schemas of partitions and of file layouts."""

from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


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
    mse_bytes2: float = Field(description="Entropy: mean squared shortfall against the target, in bytes squared.")
    rms_shortfall: float = Field(description="Root of the entropy as a share of the target: 0 is optimal, 1 is worst.")
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


PARTITION_EXAMPLE: dict[str, Any] = {
    "partition_key": '{"dt":"2026-01-01"}',
    "partition_label": "dt=2026-01-01",
    "partition": {"dt": "2026-01-01"},
    "layout": {
        "files": 12,
        "bytes": 12582912,
        "small_files": 12,
        "small_bytes": 12582912,
        "deletion_vector_files": 0,
        "deleted_rows": 0,
        "mse_bytes2": 1.7732923532771328e16,
        "rms_shortfall": 0.9921875,
        "depth": 0,
        "levels": [{"level": 3, "from_bytes": 262144, "below_bytes": 2097152, "files": 12, "bytes": 12582912}],
    },
    "decisions": [
        {
            "action": "compact",
            "decision": "enqueue",
            "reason": "eligible",
            "reason_text": "The expected gain exceeds the tolerance, and a file group reaches a higher level.",
        }
    ],
}


class PartitionList(ResponseModel):
    """A page of partitions, ordered by key."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"version": 41, "partitions": [PARTITION_EXAMPLE], "next_page_token": None}]},
    )

    version: int = Field(description="Table version of the state.")
    partitions: tuple[PartitionView, ...] = Field(description="Partitions.")
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last page.")
