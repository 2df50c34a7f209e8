"""The role of the caller's token, so that a client offers only what will be permitted."""

from fastapi import APIRouter, Request
from pydantic import Field

from decider.api.dependencies import Http
from decider.api.openapi import failures
from decider.gateway.authentication import CALLER_ROLE
from decider.gateway.credentials import MAY_ACT_AS, Role
from decider.web.base_model import ResponseModel


class CallerView(ResponseModel):
    """The caller's role."""

    role: str = Field(description="`viewer`, `operator` or `admin`.")
    may_act_as: tuple[str, ...] = Field(description="Roles whose operations are permitted.")
    token_required: bool = Field(description="Whether requests need a token.")
    release: str = Field(description="Release of this decider.")


router = APIRouter(prefix="/v1/me", tags=["status"])


@router.get("", summary="Show the caller's role", responses=failures())
async def show_caller(request: Request, http: Http) -> CallerView:
    """Show the role of the token; without tokens, clients on the loopback address have the role admin."""
    required = http.settings.credentials.are_needed
    role: Role = request.scope.get(CALLER_ROLE, Role.VIEWER) if required else Role.ADMIN
    return CallerView(
        role=role, may_act_as=tuple(sorted(MAY_ACT_AS[role])), token_required=required, release=http.settings.release
    )
