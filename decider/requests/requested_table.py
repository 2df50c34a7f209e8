"""The table that a request is about, at one version: its policy in effect, its reader, and what it does not allow."""

from dataclasses import dataclass

from decider.formats.table_format import TableReader
from decider.state.effective_policy import EffectivePolicy
from decider.tracking.tracker import TableTracker
from shared.errors import Unsupported
from shared.formats.registry import support_of
from shared.formats.support import FormatSupport
from shared.policy.policy import Policy
from shared.refusals import Refusal
from shared.table import DataFile, TableMetadata, TableRef


@dataclass(frozen=True, slots=True)
class RequestedTable:
    """A table as its state knows it, or as it is live, with its files; `now_ms`: time of the request."""

    ref: TableRef
    version: int
    metadata: TableMetadata
    in_force: EffectivePolicy
    reader: TableReader
    tracker: TableTracker
    now_ms: int
    files: tuple[DataFile, ...] = ()

    @property
    def policy(self) -> Policy:
        """Policy in effect."""
        return self.in_force.policy

    @property
    def refusal(self) -> Refusal | None:
        """Reason why the table is not optimized; None if it is."""
        return self.in_force.refusal

    @property
    def support(self) -> FormatSupport:
        """Support for tables of its format."""
        return support_of(self.metadata.format)

    def require_runnable(self, kind: str) -> None:
        """Raise Unsupported if no actor can run jobs of this kind on tables of this format."""
        if lacking := self.support.lacks.get(kind):
            raise Unsupported(
                f"{self.support.title} tables have no {lacking}, and {self.ref.name} is one: nothing was queued",
                field="format",
            )
        if self.policy.runs(kind):
            return
        advice = self.support.instead.get(kind, "see the documentation of the format")
        raise Unsupported(
            f"Lakewright runs no {kind} of {self.support.title} tables, and {self.ref.name} is one: nothing was "
            f"queued; {advice}",
            field="format",
        )

    async def require_one_name(self) -> None:
        """Raise Unsupported for a table that is registered under other names, too: these may need any of its files."""
        twins = await self.tracker.twins(self.ref, self.metadata)
        if twins:
            raise Unsupported(
                f"{self.ref.name} and {', '.join(twins)} are one table (id {self.metadata.table_uuid}), with metadata "
                "under each name: what expires by one of them may be current by another; nothing is deleted; drop the "
                "names that are not used from their catalogs, and unregister them here",
                field="table",
            )
