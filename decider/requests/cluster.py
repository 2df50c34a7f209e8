"""Request to cluster a table, whatever share of it is not clustered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, RequestPreview, TableRequest, counted, option, shown
from shared.errors import InvalidInput
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.counts import CellFiles
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.partition_stats import CUBE_TAG

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


@dataclass(frozen=True, slots=True)
class ClusterDryRun(RequestPreview):
    """Dry run of clustering; nothing is changed."""

    due: bool = shown("Whether an automatic run is due.")
    reason: str = shown("Machine-readable reason.")
    unclustered_files: int = shown("Files outside of Z-cubes; in a table in cells, files that others wrote.")
    unclustered_bytes: int = shown("Their size in bytes.")
    clustered_bytes: int = shown("Size of all other files, in bytes.")
    rewritten_bytes: int = shown("Bytes that a run would read and write, at most.")


@dataclass(frozen=True, slots=True)
class ClusterRequest(TableRequest):
    """Request to cluster a table."""

    name: ClassVar[str] = "cluster"
    summary: ClassVar[str] = "Cluster a table"
    text: ClassVar[str] = (
        "Run the clustering of a table with CLUSTER BY, or with lakewright.cluster-by: its format's own OPTIMIZE, or "
        "rewrites into cells until nothing is due, as lakewright.cluster is set."
    )
    answer: ClassVar[type[RequestPreview] | None] = ClusterDryRun

    dry_run: bool = option("Count what would be rewritten without changing anything.")

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a run. Raises InvalidInput for a table that is not clustered."""
        if table.refusal is not None:
            return []
        _require_clustered(table)
        return [(CLUSTER, ClusterOptions(force=True))]

    async def preview(self, table: "RequestedTable") -> ClusterDryRun:
        """Count what a run would rewrite now."""
        policy = table.policy
        tag = CELL_TAG if policy.has_cells else CUBE_TAG
        files = ClusteredFiles.of((file.size_bytes, tag in file.tags) for file in table.files)
        if table.refusal is None:
            _require_clustered(table)
        if policy.has_cells:
            cells = CellFiles(files)
            need, rewritten_bytes = cells.need(policy), cells.rewritten_bytes(policy)
            are, more = "new", " at most, and what the last one left"
        else:
            need, rewritten_bytes = files.need(policy), files.rewritten_bytes
            are, more = "not clustered", ""
        message = (
            f"{counted(files.unclustered_files, 'file')} with {files.unclustered_bytes} bytes are {are}; a run would "
            f"rewrite {rewritten_bytes} bytes{more}."
        )
        return ClusterDryRun(
            table.version,
            message if table.refusal is None else table.refusal.message,
            need.is_due and table.refusal is None,
            need,
            files.unclustered_files,
            files.unclustered_bytes,
            files.clustered_bytes,
            rewritten_bytes,
        )


def _require_clustered(table: "RequestedTable") -> None:
    """Raise InvalidInput for a table that is not clustered."""
    if not table.policy.clusters:
        raise InvalidInput(
            f"the table {table.ref.name} is not clustered: it has no CLUSTER BY, or, as an Iceberg table, not both of "
            "lakewright.cluster=cells and lakewright.cluster-by; other tables are compacted",
            field="table",
        )
