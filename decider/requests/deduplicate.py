"""Request to keep only the newest row of each key; how many rows that removes is in the data, so a dry run is a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, TableRequest, option
from shared.errors import InvalidInput
from shared.jobs.options import DeduplicateOptions
from shared.jobs.payload import DEDUPLICATE

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


@dataclass(frozen=True, slots=True)
class DeduplicateRequest(TableRequest):
    """Request to remove rows for which a newer row of the same key exists."""

    name: ClassVar[str] = "deduplicate"
    summary: ClassVar[str] = "Keep only the newest row of each key"
    text: ClassVar[str] = "Delete rows for which a newer row of the same primary key exists."

    dry_run: bool = option("Count the rows in a job that changes nothing.")

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a removal from all partitions. Raises InvalidInput if the table has no primary key."""
        table.require_runnable(DEDUPLICATE)
        if not table.policy.has_key:
            raise InvalidInput(
                f"the table {table.ref.name} has no key: set lakewright.primary-key and lakewright.sequence-by",
                field="primary-key",
            )
        return [(DEDUPLICATE, DeduplicateOptions(dry_run=self.dry_run))]
