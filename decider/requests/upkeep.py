"""Requests for upkeep of a table's metadata, however little there is to do: one for each kind, by its description."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decider.requests.table_request import RequestedJob, RequestPreview, TableRequest, option, shown
from shared.layout.upkeep import UPKEEP, UpkeepFound, UpkeepKind

if TYPE_CHECKING:
    from decider.requests.requested_table import RequestedTable


@dataclass(frozen=True, slots=True)
class UpkeepDryRun(RequestPreview):
    """Dry run of upkeep of a table's metadata; nothing is changed."""

    due: bool = shown("Whether an automatic run is due.")
    reason: str = shown("Machine-readable reason.")
    count: int = shown("Manifests or delete files of the newest snapshot, or all rows.")
    excess: int = shown(
        "How many of them would be saved or merged, or have changed since the newest statistics; without those that "
        "the last run refused."
    )
    bytes: int = shown("Size in bytes of the manifests, or of all files; 0 for delete files.")


@dataclass(frozen=True, slots=True)
class UpkeepRequest(TableRequest):
    """Request for upkeep of the kind `of`."""

    of: ClassVar[UpkeepKind]
    answer: ClassVar[type[RequestPreview] | None] = UpkeepDryRun
    is_live: ClassVar[bool] = False

    dry_run: bool = option("Count what there is to do without changing anything.")

    async def jobs(self, table: "RequestedTable") -> Sequence[RequestedJob]:
        """Return a run. Raises Unsupported where the format has no such metadata."""
        table.require_runnable(self.of.kind)
        return [(self.of.kind, None)]

    async def preview(self, table: "RequestedTable") -> UpkeepDryRun:
        """Count what a run would find."""
        kind = self.of.kind
        table.require_runnable(kind)
        examined = await table.tracker.examined(table.ref, table.metadata, table.policy, table.version)
        known = (await table.reader.upkeep([kind], examined)).get(kind)
        need, found, refusal = self.of.need(known, table.policy), known or UpkeepFound(0, 0), table.refusal
        return UpkeepDryRun(
            table.version,
            self.of.describe(found) if refusal is None else refusal.message,
            need is self.of.due and refusal is None,
            need,
            *(found.count, found.excess, found.bytes),
        )


def _request(kind: UpkeepKind) -> type[UpkeepRequest]:
    """Return the class of a kind's requests, such as `MergeDeletesRequest`."""
    title = f"{kind.kind.title().replace('_', '')}Request"
    texts = {"of": kind, "name": kind.request, "summary": kind.summary, "text": kind.text, "__doc__": kind.text}
    return dataclass(frozen=True, slots=True)(type(title, (UpkeepRequest,), {"__module__": __name__, **texts}))


UPKEEP_REQUESTS = tuple(map(_request, UPKEEP))
"""Requests of all kinds."""
