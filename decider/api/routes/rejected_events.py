"""Messages of event queues that could not be used."""

from typing import Annotated

from fastapi import APIRouter, Query

from decider.api.dependencies import Requests
from decider.api.openapi import failures
from decider.api.schemas.rejected_events import RejectedEventList, RejectedEventView
from decider.store.rejected_events import KEPT
from decider.web.base_model import moment

router = APIRouter(prefix="/v1/rejected-events", tags=["events"])


@router.get("", summary="List rejected events", responses=failures(422))
async def list_rejected_events(
    requests: Requests,
    limit: Annotated[int, Query(ge=1, le=KEPT, description="Maximum number of items to return.")] = 100,
) -> RejectedEventList:
    """List the newest messages of event queues that were set aside, with the reason; the newest thousand are kept."""
    found = await requests.rejected.newest(limit)
    views = ((moment(one.at_ms), one) for one in found)
    return RejectedEventList(
        rejected=tuple(
            RejectedEventView(at=at, source=one.source, reason=one.reason, body=one.body) for at, one in views if at
        )
    )
