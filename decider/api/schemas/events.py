"""Schemas of event deliveries: accepted and ignored events."""

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class IgnoredEvents(ResponseModel):
    """Number of ignored events for one reason."""

    reason: str = Field(description="Machine-readable reason, such as `unknown_table` or `not_a_commit`.")
    count: int = Field(description="Number of events.", ge=0)


class EventsAccepted(ResponseModel):
    """Result of a delivery.

    An accepted event triggers a refresh of the table; state is read from the table's log only.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"accepted": 1, "ignored": [{"reason": "not_a_commit", "count": 2}]}]},
    )

    accepted: int = Field(description="Number of events that matched a known table.", ge=0)
    ignored: tuple[IgnoredEvents, ...] = Field(description="Ignored events by reason.")


class SubscriptionValidation(ResponseModel):
    """Response to the validation handshake of Azure Event Grid."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"validationResponse": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"}]},
    )

    validationResponse: str = Field(description="Validation code from the request.")  # noqa: N815 - Event Grid's name for it
