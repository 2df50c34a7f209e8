"""Request to compute statistics of an Iceberg table's columns, whatever share of its rows has changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, TableRequest
from shared.jobs.payload import COMPUTE_STATISTICS

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


@dataclass(frozen=True, slots=True)
class StatisticsRequest(TableRequest):
    """Request to compute statistics of the columns of an Iceberg table."""

    name: ClassVar[str] = "compute-statistics"
    summary: ClassVar[str] = "Compute statistics of the columns of a table"
    text: ClassVar[str] = "Compute statistics of the columns of an Iceberg table, if a row has changed since the last."

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return the computation. Raises Unsupported where the format has no place for statistics."""
        table.require_runnable(COMPUTE_STATISTICS)
        return [(COMPUTE_STATISTICS, None)]
