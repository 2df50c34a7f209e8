"""Requests to delete files of a table: those that no version inside the retention needs, or the whole history."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, RequestPreview, TableRequest, counted, option, shown
from shared.errors import InvalidInput
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import CHECKPOINT, VACUUM

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable

MAX_HOURS = 24 * 3_660
"""Maximum retention of one request: ten years."""

LISTED_FILES = 100_000
"""Files that the answer of a dry run lists; the totals count all."""


@dataclass(frozen=True, slots=True)
class DeletionView:
    """A file that would be deleted."""

    name: str = shown("Name below the table's folder.")
    bytes: int = shown("Size in bytes.")
    orphan: bool = shown("Whether no commit names it.")


@dataclass(frozen=True, slots=True)
class VacuumDryRun(RequestPreview):
    """Dry run of a vacuum; nothing is changed."""

    removed_before_ms: int = shown("Files removed before this moment go, in milliseconds since 1970.")
    files: int = shown("Number of files that would be deleted.")
    bytes: int = shown("Their size in bytes.")
    orphan_files: int = shown("Number of them that no commit names.")
    orphan_bytes: int = shown("Their size in bytes.")
    deletions: tuple[DeletionView, ...] = shown("The files; at most 100,000 are listed.")


@dataclass(frozen=True, slots=True)
class VacuumRequest(TableRequest):
    """Request to delete files that no version inside the retention needs."""

    name: ClassVar[str] = "vacuum"
    summary: ClassVar[str] = "Vacuum a table"
    text: ClassVar[str] = "Delete files that no version inside the retention needs; force needs the role admin."
    answer: ClassVar[type[RequestPreview] | None] = VacuumDryRun

    dry_run: bool = option("List what would be deleted without changing anything.")
    orphans: bool = option("Also list the store for files that no commit names.")
    retain_hours: int | None = option("Retention of this run in hours; default: the table's.", None, ge=0, le=MAX_HOURS)
    force: bool = option("Allow a retention below the table's.")

    @property
    def needs_admin(self) -> bool:
        """True if it would delete what the table's retention keeps, as a purge does."""
        return self.force and not self.dry_run

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a vacuum. Raises InvalidInput for a retention below the table's own that is not forced."""
        return [(VACUUM, replace(await self._options(table), requested_ms=table.now_ms))]

    async def preview(self, table: "RequestedTable") -> VacuumDryRun:
        """List what would be deleted now."""
        options = await self._options(table)
        if table.refusal is not None:
            return VacuumDryRun(table.version, table.refusal.message, 0, 0, 0, 0, 0, ())
        found = await table.reader.plan_vacuum(table.policy, options, table.now_ms)
        refusal = None if found.refusal is None or VACUUM in found.refusal.allows else found.refusal
        orphans = [one for one in found.deletions if one.is_orphan]
        size_bytes, orphan_bytes = (sum(one.size_bytes for one in some) for some in (found.deletions, orphans))
        message = f"{counted(len(found.deletions), 'file')} with {size_bytes} bytes would be deleted; {len(orphans)} "
        message += "of them in no commit."
        message += f" {counted(found.snapshots, 'snapshot')} would expire." if found.snapshots else ""
        if found.delete_files:
            message += f" {counted(found.delete_files, 'delete file')} without data files would leave the table."
        return VacuumDryRun(
            found.version,
            f"{message} {found.left_out}".strip() if refusal is None else refusal.message,
            found.cutoff_ms,
            len(found.deletions),
            size_bytes,
            len(orphans),
            orphan_bytes,
            tuple(DeletionView(one.name, one.size_bytes, one.is_orphan) for one in found.deletions[:LISTED_FILES]),
        )

    async def _options(self, table: "RequestedTable") -> VacuumOptions:
        await table.require_one_name()
        table.require_runnable(VACUUM)
        options = VacuumOptions(self.orphans, self.force, _seconds(self.retain_hours))
        least_s = table.policy.retention_s
        if options.retain_s is not None and options.retain_s < least_s and not options.force:
            raise InvalidInput(
                f"a retention of {options.retain_s / 3600:g} hours is below the table's retention of "
                f"{least_s / 3600:g} hours: readers and writers that still use older files would fail; repeat "
                "with force to delete them anyway",
                field="retain_hours",
                allowed=f"{least_s / 3600:g} hours or more",
            )
        return options


@dataclass(frozen=True, slots=True)
class ReclaimRequest(TableRequest):
    """Request to delete all history outside the retention, immediately and permanently."""

    name: ClassVar[str] = "reclaim"
    summary: ClassVar[str] = "Purge the history of a table"
    text: ClassVar[str] = "Delete all files and commits outside the retention, immediately and permanently."

    confirm: str = option("The table's name, as a confirmation.", "", max_length=500)
    retain_hours: int | None = option(
        "Hours of history that stay, even below the table's retention; default: its whole retention.",
        None,
        ge=0,
        le=MAX_HOURS,
    )

    @property
    def needs_admin(self) -> bool:
        """True: only the role admin may request it."""
        return True

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a vacuum with orphans, and a log cleanup.

        Without hours, the actor computes the retention by the newest properties. Raises InvalidInput unless `confirm`
        is the table's name.
        """
        if self.confirm != table.ref.name:
            raise InvalidInput(
                f"history of the table {table.ref.name} is deleted permanently: confirm with its name", field="confirm"
            )
        await table.require_one_name()
        table.require_runnable(VACUUM)
        retain_s = _seconds(self.retain_hours)
        options = VacuumOptions(
            with_orphans=True,
            force=retain_s is not None,
            retain_s=retain_s,
            requested_ms=table.now_ms,
        )
        wanted: list[RequestedJob] = [(VACUUM, options), (CHECKPOINT, None)]
        return [one for one in wanted if table.policy.runs(one[0])]


def _seconds(hours: int | None) -> int | None:
    return None if hours is None else hours * 3_600
