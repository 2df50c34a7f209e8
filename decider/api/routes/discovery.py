"""Discovery: show its progress and start it."""

from fastapi import APIRouter
from pydantic import Field

from decider.api.dependencies import Requests
from decider.api.openapi import failures
from decider.background.discovery import Discovery
from decider.store.registry.discovery_lease import DiscoveryProgress
from decider.web.base_model import Moment, ResponseModel, read_from


class RootProgress(
    ResponseModel,
    alias_generator=read_from(
        path="last_path",
        started_at="started_ms",
        updated_at="updated_ms",
        finished_at="finished_ms",
        unreadable_folders="unreadable",
    ),
):
    """Progress of the scan of one root."""

    root: str = Field(description="Allowed root.")
    state: str = Field(description="`waiting` before the first scan, then `running`, `done` or `failed`.")
    path: str = Field(description="Path below the root that was scanned last; any decider resumes from here.")
    folders: int = Field(description="Folders scanned.")
    tables: int = Field(description="Tables found.")
    new_tables: int = Field(description="Tables found that were not registered.")
    started_at: Moment = Field(description="Start of the scan.")
    updated_at: Moment = Field(description="Last progress.")
    finished_at: Moment = Field(description="End of the scan; null while it runs or is requested.")
    unreadable_folders: int = Field(description="Folders skipped because they could not be read.")
    error: str = Field(
        description="Error that ended the scan, or the reason for the last skipped folder; empty otherwise."
    )


class Discoveries(ResponseModel):
    """Table discovery below every allowed root."""

    interval_s: float = Field(description="Seconds between two scans; 0 disables discovery.")
    requests_per_s: float = Field(description="Maximum object store requests per second during a scan.")
    max_depth: int = Field(description="Maximum folder depth below a root.")
    roots: tuple[RootProgress, ...] = Field(description="Allowed roots.")


router = APIRouter(prefix="/v1/discovery", tags=["tables"])


@router.get("", summary="Show discovery progress", responses=failures())
async def show_discovery(requests: Requests) -> Discoveries:
    """Show the scan progress of each allowed root, over all deciders."""
    return await _shown(requests.discovery)


@router.post("", status_code=202, summary="Start discovery", responses=failures())
async def start_discovery(requests: Requests) -> Discoveries:
    """Start a scan of every root that is not being scanned; registered tables stay unchanged."""
    await requests.discovery.call_for()
    return await _shown(requests.discovery)


async def _shown(discovery: Discovery) -> Discoveries:
    known = {found.root: found for found in await discovery.progress()}
    pace = discovery.pace
    return Discoveries(
        interval_s=pace.interval_s,
        requests_per_s=pace.requests_per_s,
        max_depth=pace.depth,
        roots=tuple(_view(root, known.get(root)) for root in discovery.roots),
    )


def _view(root: str, found: DiscoveryProgress | None) -> RootProgress:
    shown = RootProgress.of(found or DiscoveryProgress(root))
    return shown if found else shown.model_copy(update={"state": "waiting"})
