"""What every schema shares: unknown fields of a request are refused by name, and times are RFC 3339 in UTC."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

TABLE_NAME = r"[A-Za-z0-9_-]{1,128}(\.[A-Za-z0-9_-]{1,128}){0,3}"
"""Up to four parts as catalogs have them, the same that an event may name; names are parts of URLs, too."""

MAX_PAGE = 500
"""Rows per page at most: a page is one answer of a few hundred kilobytes."""

TableName = Annotated[
    str,
    Field(
        pattern=f"^{TABLE_NAME}$",
        description="Name of the table: up to four parts joined by dots, of letters, digits, `_` and `-`.",
    ),
]


class ResponseModel(BaseModel):
    """An answer; it cannot be changed once built."""

    model_config = ConfigDict(frozen=True)


class RequestModel(BaseModel):
    """A request; a field that is not known is an error rather than a wish that nobody heard."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def moment(ms: int | None) -> datetime | None:
    """Return milliseconds since 1970 as an aware time; None and 0 are "never"."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None
