"""Requests to delete rows: older ones of a key, and rows that are over. How many is in the data: a dry run is a job."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, TableRequest, option
from shared.errors import InvalidInput
from shared.jobs.options import DeduplicateOptions, ExpiryOptions
from shared.jobs.payload import DEDUPLICATE, EXPIRE

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


@dataclass(frozen=True, slots=True)
class ExpireRequest(TableRequest):
    """Request to delete rows that are over."""

    name: ClassVar[str] = "expire"
    summary: ClassVar[str] = "Delete rows that are over"
    text: ClassVar[str] = "Delete rows that are older than the table's own lakewright.delete-rows-after."

    dry_run: bool = option("Name the files in a job that changes nothing.")

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a deletion. Raises InvalidInput if the table's own properties name no age."""
        table.require_runnable(EXPIRE)
        if table.policy.delete_rows_after is None:
            raise InvalidInput(
                f"no row of the table {table.ref.name} is ever over: its owner has not set "
                "lakewright.delete-rows-after as a property of the table itself",
                field="delete-rows-after",
            )
        return [(EXPIRE, ExpiryOptions(time.time_ns() // 1_000_000, dry_run=self.dry_run))]
