"""Request to rewrite the manifests of an Iceberg table, however many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, RequestPreview, TableRequest, counted, option, shown
from shared.jobs.payload import REWRITE_MANIFESTS
from shared.layout.manifest_files import ManifestFiles, ManifestReason, manifests_need

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


@dataclass(frozen=True, slots=True)
class ManifestsDryRun(RequestPreview):
    """Dry run of a rewrite of manifests; nothing is changed."""

    due: bool = shown("Whether a rewrite is due by `rewrite-manifests-at`.")
    reason: str = shown("Machine-readable reason.")
    manifests: int = shown("Manifests of the newest snapshot.")
    bytes: int = shown("Their size in bytes.")
    needed: int = shown("Manifests of the target size that hold as many bytes.")
    mean_bytes: int = shown("Mean size of a manifest in bytes.")


@dataclass(frozen=True, slots=True)
class ManifestsRequest(TableRequest):
    """Request to rewrite the manifests of an Iceberg table."""

    name: ClassVar[str] = "rewrite-manifests"
    summary: ClassVar[str] = "Rewrite the manifests of a table"
    text: ClassVar[str] = "Write the manifests of an Iceberg table again, as few as their bytes need."
    answer: ClassVar[type[RequestPreview] | None] = ManifestsDryRun
    is_live: ClassVar[bool] = False

    dry_run: bool = option("Count the manifests without changing anything.")

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a rewrite. Raises Unsupported where a format has no manifests."""
        table.require_runnable(REWRITE_MANIFESTS)
        return [(REWRITE_MANIFESTS, None)]

    async def preview(self, table: "RequestedTable") -> ManifestsDryRun:
        """Count the manifests."""
        table.require_runnable(REWRITE_MANIFESTS)
        found = await table.reader.manifests()
        need = manifests_need(found, table.policy.rewrite_manifests_at)
        files = found or ManifestFiles(0, 0, 0)
        message = f"{counted(files.count, 'manifest')} with {files.bytes} bytes; {files.needed} would be enough."
        return ManifestsDryRun(
            table.version,
            message if table.refusal is None else table.refusal.message,
            need is ManifestReason.MANY and table.refusal is None,
            need,
            files.count,
            files.bytes,
            files.needed,
            files.mean_bytes,
        )
