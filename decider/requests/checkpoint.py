"""Request to write a checkpoint, whatever the number of commits since the last one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, TableRequest
from shared.jobs.payload import CHECKPOINT

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


@dataclass(frozen=True, slots=True)
class CheckpointRequest(TableRequest):
    """Request to write a checkpoint of a table."""

    name: ClassVar[str] = "checkpoint"
    summary: ClassVar[str] = "Write a checkpoint of a table"
    text: ClassVar[str] = "Write a checkpoint of the newest version, and clean up the log by the format's own rules."

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a checkpoint."""
        table.require_runnable(CHECKPOINT)
        return [(CHECKPOINT, None)]
