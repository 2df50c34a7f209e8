"""Base of all schemas: unknown request fields are rejected, times are RFC 3339 in UTC.

An answer is read from the attributes of the value that it shows (`View.of(value)`), so no field is named twice.
"""

from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)
from pydantic.config import JsonDict

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


def examples(*bodies: JsonDict) -> JsonDict:
    """Return the examples of a request for its schema: `class R(RequestModel, json_schema_extra=examples({...}))`."""
    return {"examples": list(bodies)}


def _time(value: Any) -> Any:
    return datetime.fromtimestamp(value / 1000, UTC) if isinstance(value, int) else value


Time = Annotated[datetime, BeforeValidator(_time)]
"""A time, read from milliseconds since 1970."""

Moment = Annotated[datetime | None, BeforeValidator(lambda value: None if value == 0 else _time(value))]
"""The same; 0 and None are null, as for what never was."""

Seconds = Annotated[float, BeforeValidator(lambda value: value / 1000)]
"""Seconds, read from milliseconds."""

# Numbers with so many digits behind the point.
Rounded2 = Annotated[float, AfterValidator(partial(round, ndigits=2))]
Rounded3 = Annotated[float, AfterValidator(partial(round, ndigits=3))]
Rounded4 = Annotated[float, AfterValidator(partial(round, ndigits=4))]
Rounded6 = Annotated[float, AfterValidator(partial(round, ndigits=6))]


def read_from(*parts: str, **paths: str) -> AliasGenerator:
    """Return where an answer's fields are in the value that it shows, for those that have another name there.

    `class V(ResponseModel, alias_generator=read_from("summary", at="at_ms"))`: `at` is `value.at_ms`; any other field
    is the attribute of its name, of the value or of `value.summary`.
    """

    def sources(field: str) -> AliasChoices:
        path = paths.get(field, field).split(".")
        return AliasChoices(AliasPath(*path), *(AliasPath(part, *path) for part in parts))

    return AliasGenerator(validation_alias=sources)


class ResponseModel(BaseModel):
    """An immutable response."""

    model_config = ConfigDict(frozen=True, from_attributes=True, validate_by_name=True)

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the answer that shows a value."""
        return cls.model_validate(value)


class RequestModel(BaseModel):
    """A request; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
