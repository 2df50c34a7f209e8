"""Schemas of reported reads."""

from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel

FILTER_EXAMPLE: dict[str, Any] = {"filter": {"type": "eq", "term": "customer", "value": "(hash-1a2b3c4d)"}, "times": 30}


class ReadsCounted(ResponseModel):
    """Result of a delivery of reports."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"reads": 31, "unknown_tables": ["lake.sales.drafts"]}]}
    )

    reads: int = Field(description="Number of reads that were counted.", ge=0)
    unknown_tables: tuple[str, ...] = Field(description="Reported tables that are not registered; the first 100.")


class UsedFilter(ResponseModel):
    """A filter of reads, and how often it was used."""

    filter: Any = Field(description="Iceberg expression.")
    times: int = Field(description="Number of reads with this filter.")


class TableReadsView(ResponseModel):
    """Reported reads of a table."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"reads_per_hour": 12.5, "read_weight": 8.0, "filters": [FILTER_EXAMPLE]}]},
    )

    reads_per_hour: float = Field(description="Reads per hour over the last seven days; 0 if none were reported.")
    read_weight: float = Field(description="Weight of the table's reads in the order of jobs.")
    filters: tuple[UsedFilter, ...] = Field(description="Filters that compare columns, most frequent first.")
