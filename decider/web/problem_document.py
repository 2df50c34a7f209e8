"""The form of every error: RFC 9457, extended by the invalid field, its value, and the accepted values."""

from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class FieldProblem(ResponseModel):
    """One invalid field."""

    field: str = Field(description="Field path, such as `partitions.0` or `query.limit`.")
    message: str = Field(description="Reason.")
    value: Any = Field(None, description="Value from the request, truncated if long.")


class ProblemDocument(ResponseModel):
    """Problem details (RFC 9457, `application/problem+json`)."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:lakewright:problem:invalid-input",
                    "title": "Invalid request",
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

    type: str = Field(description="Machine-readable problem type.")
    title: str = Field(description="Human-readable problem type.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="Human-readable cause and remedy.")
    field: str = Field("", description="Invalid field, the first if there are several; empty if none.")
    value: Any = Field(None, description="Value of that field, truncated if long.")
    allowed: str = Field("", description="Accepted values; empty if the detail lists them.")
    errors: tuple[FieldProblem, ...] = Field((), description="All invalid fields.")
