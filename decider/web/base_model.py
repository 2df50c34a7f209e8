"""Base of all schemas: unknown request fields are rejected, and times are RFC 3339 in UTC."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from shared.table import TABLE_NAME

MAX_PAGE = 500
"""Maximum rows per page, which is a response of a few hundred kilobytes."""

TableName = Annotated[
    str,
    Field(
        pattern=f"^{TABLE_NAME}$",
        description="Table name: up to four parts of letters, digits, `_` and `-`, joined by dots.",
    ),
]


class ResponseModel(BaseModel):
    """An immutable response."""

    model_config = ConfigDict(frozen=True)


class RequestModel(BaseModel):
    """A request; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def moment(ms: int | None) -> datetime | None:
    """Return milliseconds since 1970 as an aware time; None and 0 are "never"."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None
