"""Request to merge the delete files of an Iceberg table, however many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, RequestPreview, TableRequest, counted, option, shown
from shared.jobs.payload import MERGE_DELETES
from shared.layout.delete_files import DeleteFileCount, DeleteFilesReason, delete_files_need

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


@dataclass(frozen=True, slots=True)
class MergeDeletesDryRun(RequestPreview):
    """Dry run of a merge of delete files; nothing is changed."""

    due: bool = shown("Whether a merge is due by `merge-deletes-at` or `convert-deletes-at`.")
    reason: str = shown("Machine-readable reason.")
    delete_files: int = shown("Delete files by position of the newest snapshot; vectors count, too.")
    superfluous: int = shown("Those of them that are to be merged.")
    by_value: int = shown("Delete files by value; they are converted only with `convert-deletes-at`.")


@dataclass(frozen=True, slots=True)
class MergeDeletesRequest(TableRequest):
    """Request to merge the delete files of an Iceberg table."""

    name: ClassVar[str] = "merge-deletes"
    summary: ClassVar[str] = "Merge the delete files of a table"
    text: ClassVar[str] = "Merge the delete files by position of an Iceberg table, without rewriting data."
    answer: ClassVar[type[RequestPreview] | None] = MergeDeletesDryRun
    is_live: ClassVar[bool] = False

    dry_run: bool = option("Count the delete files without changing anything.")

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a merge. Raises Unsupported where a format has no delete files."""
        table.require_runnable(MERGE_DELETES)
        return [(MERGE_DELETES, None)]

    async def preview(self, table: "RequestedTable") -> MergeDeletesDryRun:
        """Count the delete files."""
        table.require_runnable(MERGE_DELETES)
        found = await table.reader.delete_files()
        need = delete_files_need(found, table.policy.merge_deletes_at, table.policy.convert_deletes_at)
        files = found or DeleteFileCount(0, 0)
        message = f"{counted(files.count, 'delete file')} by position; {files.excess} are to be merged."
        message += f" {counted(files.by_value, 'delete file')} by value." if files.by_value else ""
        return MergeDeletesDryRun(
            table.version,
            message if table.refusal is None else table.refusal.message,
            need in (DeleteFilesReason.MANY, DeleteFilesReason.MANY_VALUES) and table.refusal is None,
            need,
            files.count,
            files.excess,
            files.by_value,
        )
