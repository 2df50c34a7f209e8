"""Request to cluster a table with `CLUSTER BY`, whatever share of its bytes is not clustered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, RequestPreview, TableRequest, counted, option, shown
from shared.errors import InvalidInput
from shared.jobs.cluster_options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.partition_stats import CUBE_TAG

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


@dataclass(frozen=True, slots=True)
class ClusterDryRun(RequestPreview):
    """Dry run of clustering; nothing is changed."""

    due: bool = shown("Whether an automatic run is due.")
    reason: str = shown("Machine-readable reason.")
    unclustered_files: int = shown("Files outside of Z-cubes.")
    unclustered_bytes: int = shown("Their size in bytes.")
    clustered_bytes: int = shown("Size of the files in Z-cubes, in bytes.")
    rewritten_bytes: int = shown("Bytes that a run would read and write, at most.")


@dataclass(frozen=True, slots=True)
class ClusterRequest(TableRequest):
    """Request to cluster a table with `CLUSTER BY`."""

    name: ClassVar[str] = "cluster"
    summary: ClassVar[str] = "Cluster a table"
    text: ClassVar[str] = "Run the format's own OPTIMIZE on a table with CLUSTER BY, which clusters its files."
    answer: ClassVar[type[RequestPreview] | None] = ClusterDryRun

    dry_run: bool = option("Count what would be rewritten without changing anything.")

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a run. Raises InvalidInput for a table without `CLUSTER BY`."""
        if table.refusal is not None:
            return []
        _require_clustered(table)
        return [(CLUSTER, ClusterOptions(force=True))]

    async def preview(self, table: "RequestedTable") -> ClusterDryRun:
        """Count what a run would rewrite now."""
        files = ClusteredFiles.of((file.size_bytes, CUBE_TAG in file.tags) for file in table.files)
        if table.refusal is None:
            _require_clustered(table)
        message = (
            f"{counted(files.unclustered_files, 'file')} with {files.unclustered_bytes} bytes are not clustered; a run "
            f"would rewrite {files.rewritten_bytes} bytes."
        )
        need = files.need(table.policy)
        return ClusterDryRun(
            table.version,
            message if table.refusal is None else table.refusal.message,
            need.is_due and table.refusal is None,
            need,
            files.unclustered_files,
            files.unclustered_bytes,
            files.clustered_bytes,
            files.rewritten_bytes,
        )


def _require_clustered(table: "RequestedTable") -> None:
    """Raise InvalidInput for a table that its format's own OPTIMIZE does not cluster."""
    if not table.policy.clusters:
        raise InvalidInput(
            f"the table {table.ref.name} is not clustered: there is no CLUSTER BY; compaction and sort-by are for "
            "tables without it",
            field="table",
        )
