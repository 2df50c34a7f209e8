"""Messages of event queues that could not be used."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from decider.api.dependencies import Requests
from decider.api.openapi import failures
from decider.store.registry.rejected_events import KEPT
from decider.web.base_model import ResponseModel, Time, read_from


class RejectedEventView(ResponseModel, alias_generator=read_from(at="at_ms")):
    """A message that could not be used."""

    at: Time = Field(description="When it was set aside.")
    source: str = Field(description="Queue that delivered it.")
    reason: str = Field(description="Why it could not be used.")
    body: str = Field(description="Beginning of the message.")


class RejectedEventList(ResponseModel):
    """Newest messages that were set aside."""

    rejected: tuple[RejectedEventView, ...] = Field(description="Messages, the newest first.")


router = APIRouter(prefix="/v1/rejected-events", tags=["events"])


@router.get("", summary="List rejected events", responses=failures(422))
async def list_rejected_events(
    requests: Requests,
    limit: Annotated[int, Query(ge=1, le=KEPT, description="Maximum number of items to return.")] = 100,
) -> RejectedEventList:
    """List the newest messages of event queues that were set aside, with the reason; the newest thousand are kept."""
    found = await requests.rejected.newest(limit)
    return RejectedEventList(rejected=tuple(map(RejectedEventView.of, found)))
