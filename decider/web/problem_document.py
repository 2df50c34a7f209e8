"""The one form of every error: RFC 9457, extended by the field at fault, its value, and what would be accepted."""

from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class FieldProblem(ResponseModel):
    """One field that cannot be used."""

    field: str = Field(description="Where the field stands, such as `partitions.0` or `query.limit`.")
    message: str = Field(description="Why the value cannot be used.")
    value: Any = Field(None, description="The value as it came, shortened if long.")


class ProblemDocument(ResponseModel):
    """Why a call failed, and what to do about it (RFC 9457, `application/problem+json`)."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:lakewright:problem:invalid-input",
                    "title": "The request cannot be used",
                    "status": 422,
                    "detail": "location 'tables/orders' cannot be used: it is a relative path",
                    "field": "location",
                    "value": "tables/orders",
                    "allowed": "an absolute path, or a URI with one of the schemes file, gs, s3",
                    "errors": [],
                }
            ]
        },
    )

    type: str = Field(description="Names the kind of problem; stable, for programs.")
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status of this answer.")
    detail: str = Field(description="What happened, where, and what to do.")
    field: str = Field("", description="The field at fault, the first if there are several; empty if none is.")
    value: Any = Field(None, description="The value of that field as it came, shortened if long.")
    allowed: str = Field("", description="What would have been accepted; empty where the detail says it.")
    errors: tuple[FieldProblem, ...] = Field((), description="Every field at fault, where there are several.")
