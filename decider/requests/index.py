"""Request to optimize a table's index, until nothing in it is eligible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, TableRequest, option
from shared.errors import InvalidInput
from shared.jobs.options import IndexJobOptions
from shared.jobs.payload import INDEX
from shared.policy.names import REVISION_REWRITE
from shared.policy.parsers import boolean
from shared.policy.properties import parse_first

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable

STRATEGIES = ("unindexed", "leveled", "sampling")
"""Ways to choose files, of which a run may use one alone."""


@dataclass(frozen=True, slots=True)
class IndexRequest(TableRequest):
    """Request to optimize the index of a table."""

    name: ClassVar[str] = "index"
    summary: ClassVar[str] = "Optimize the index of a table"
    text: ClassVar[str] = "Optimize the index of a table: rewrite what is eligible, in iterations, until nothing is."

    revision: int | None = option("Revision to optimize; default: by the table's properties.", None, ge=1, lt=2**31)
    bytes_per_iter: int | None = option(
        "Bytes of one iteration, 0 for its first group; default: by the table's properties.", None, ge=0, lt=2**63
    )
    revision_rewrite: bool | None = option(
        "Rewrite all files of the revision at once, unless it is as compact as it can be; default: by the table's "
        "properties.",
        None,
    )

    strategy: str | None = option(
        "Rewrite only files that are chosen so: `unindexed`, `leveled` or `sampling`; default: all that the table's "
        "properties allow.",
        None,
    )

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a run. Raises InvalidInput for a table without an index."""
        if table.refusal is not None:
            return []
        if not table.policy.traits.is_indexed:
            raise InvalidInput(f"the table {table.ref.name} has no Qbeast index", field="table")
        whole = self.revision_rewrite
        if whole is None:
            own, _, _ = parse_first(table.metadata.configuration, (("whole", REVISION_REWRITE, boolean),))
            whole = own.get("whole", False)
        if self.strategy not in (None, *STRATEGIES):
            raise InvalidInput(f"there is no strategy {self.strategy}", field="strategy", allowed=", ".join(STRATEGIES))
        return [(INDEX, IndexJobOptions(self.revision, self.bytes_per_iter, whole, strategy=self.strategy))]


INDEX_RUN_TYPES = {
    **dict.fromkeys(("compaction", "leveledcompaction", "cubedefragmentation"), IndexRequest()),
    **{strategy: IndexRequest(strategy=strategy, revision_rewrite=False) for strategy in STRATEGIES},
    "revisionrewrite": IndexRequest(revision_rewrite=True),
}
"""Requests by the value of `use.optimization.type`, in small letters alone, of a table with an index."""
