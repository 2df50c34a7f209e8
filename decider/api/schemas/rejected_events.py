"""Schemas of messages of event queues that were set aside."""

from datetime import datetime

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class RejectedEventView(ResponseModel):
    """A message that could not be used."""

    at: datetime = Field(description="When it was set aside.")
    source: str = Field(description="Queue that delivered it.")
    reason: str = Field(description="Why it could not be used.")
    body: str = Field(description="Beginning of the message.")


class RejectedEventList(ResponseModel):
    """Newest messages that were set aside."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "rejected": [
                        {
                            "at": "2026-01-01T14:03:00Z",
                            "source": "https://sqs.eu-west-1.amazonaws.com/123456789012/lake-commits",
                            "reason": "body: expected JSON",
                            "body": "hello",
                        }
                    ]
                }
            ]
        },
    )

    rejected: tuple[RejectedEventView, ...] = Field(description="Messages, the newest first.")
