"""A queue of SQS as a source of messages; boto3 is only imported where a queue is configured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from decider.events.message_handler import Message
from shared.errors import InvalidInput, RetryableError

BATCH = 10
"""Messages of one request, the most that SQS returns."""

WAIT_S = 5
"""Seconds for which a request waits for messages: a decider that stops waits for the end of it."""

HIDDEN_S = 120
"""Seconds until a message that was not acknowledged is delivered again: longer than reading unknown tables takes."""


@dataclass(frozen=True, slots=True)
class SqsMessage:
    """A message with the handle by which it is deleted."""

    message: Message
    receipt: str


class SqsQueue:
    """One queue; the calls block, for threads."""

    def __init__(self, url: str, *, hidden_s: int = HIDDEN_S) -> None:
        """Use AWS's usual settings for credentials, region and endpoint. Raises InvalidInput without boto3."""
        try:
            import boto3  # noqa: PLC0415 - an extra
            from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # noqa: PLC0415
        except ImportError as problem:
            raise InvalidInput("LAKEWRIGHT_SQS_QUEUES needs boto3: pip install 'lakewright[sqs]'") from problem
        self.url = url
        self._hidden_s = hidden_s
        region = url.partition("://sqs.")[2].partition(".")[0] or None
        self._failures = (BotoCoreError, ClientError)
        try:
            self._client: Any = boto3.client("sqs", region_name=region)
        except BotoCoreError as problem:
            raise InvalidInput(f"{url}: {problem} (AWS_DEFAULT_REGION)") from problem

    def receive(self) -> list[SqsMessage]:
        """Wait for messages, and return them. Raises RetryableError if SQS does not answer."""
        asked = {"MaxNumberOfMessages": BATCH, "WaitTimeSeconds": WAIT_S, "VisibilityTimeout": self._hidden_s}
        names = ["ApproximateReceiveCount"]
        found = self._call("receive_message", **asked, MessageSystemAttributeNames=names).get("Messages", [])
        return [
            SqsMessage(
                Message(self.url, one["Body"].encode(), int(one.get("Attributes", {}).get(names[0], 1))),
                one["ReceiptHandle"],
            )
            for one in found
        ]

    def delete(self, messages: Sequence[SqsMessage]) -> None:
        """Acknowledge messages. Raises RetryableError if one stays: it is delivered again."""
        entries = [{"Id": str(number), "ReceiptHandle": one.receipt} for number, one in enumerate(messages)]
        failed = self._call("delete_message_batch", Entries=entries).get("Failed", [])
        if failed:
            raise RetryableError(f"{self.url}: {len(failed)} messages were not deleted: {failed[0].get('Message')}")

    def _call(self, name: str, **arguments: Any) -> dict[str, Any]:
        try:
            found: dict[str, Any] = getattr(self._client, name)(QueueUrl=self.url, **arguments)
        except self._failures as problem:
            raise RetryableError(f"{self.url}: {name} failed: {problem}") from problem
        return found
