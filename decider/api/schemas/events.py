"""The answer to an event: how many hints were taken, and why the others were not."""

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class IgnoredEvents(ResponseModel):
    """Hints that led nowhere, for one reason."""

    reason: str = Field(description="Why, as a stable word such as `unknown_table` or `not_a_commit`.")
    count: int = Field(description="How many hints.", ge=0)


class EventsAccepted(ResponseModel):
    """What became of a delivery. A taken hint makes the table be looked at; state comes from its log alone."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"accepted": 1, "ignored": [{"reason": "not_a_commit", "count": 2}]}]},
    )

    accepted: int = Field(description="Hints that led to a known table.", ge=0)
    ignored: tuple[IgnoredEvents, ...] = Field(description="The others, by reason.")


class SubscriptionValidation(ResponseModel):
    """The answer to Azure's Event Grid, which sends a code before the first event and wants it back."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"validationResponse": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"}]},
    )

    validationResponse: str = Field(description="The code as it came.")  # noqa: N815 - Event Grid's name for it
