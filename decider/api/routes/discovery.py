"""Discovery: show its progress and start it."""

from fastapi import APIRouter

from decider.api.dependencies import Requests
from decider.api.openapi import failures
from decider.api.schemas.discovery import Discoveries, RootProgress
from decider.background.discovery import Discovery
from decider.store.discovery_lease import DiscoveryProgress
from decider.web.base_model import moment

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
    shown = found or DiscoveryProgress(root)
    return RootProgress(
        root=root,
        state=shown.state if found else "waiting",
        path=shown.last_path,
        folders=shown.folders,
        tables=shown.tables,
        new_tables=shown.new_tables,
        started_at=moment(shown.started_ms),
        updated_at=moment(shown.updated_ms),
        finished_at=moment(shown.finished_ms),
        unreadable_folders=shown.unreadable,
        error=shown.error,
    )
