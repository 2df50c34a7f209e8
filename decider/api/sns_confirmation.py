"""SNS subscriptions are confirmed for allowed topics only, at the host that the topic's ARN implies.

Anything else would be request forgery by the sender: the host is computed from the ARN and not taken from the event,
and redirects are not followed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qs, urlsplit

import httpx
import structlog

from decider.events.table_hint import SubscriptionConfirmation
from shared.errors import RetryableError

log = structlog.get_logger()

TIMEOUT_S = 5.0
"""Longest wait for the topic's host; it answers in a fraction of a second."""

_ARN_PARTS = 6
_DOMAINS = {"aws": "amazonaws.com", "aws-us-gov": "amazonaws.com", "aws-cn": "amazonaws.com.cn"}


class ConfirmationResult(StrEnum):
    """Result of a confirmation, as the reason of an ignored event."""

    CONFIRMED = "subscription_confirmed"
    NOT_LISTED = "subscription_topic_not_allowed"
    BAD_URL = "subscription_url_mismatch"


@dataclass(frozen=True, slots=True)
class SubscriptionConfirmer:
    """Confirms subscriptions of allowed topics; `transport` replaces the network in tests."""

    topics: Collection[str] = ()
    transport: httpx.AsyncBaseTransport | None = None

    async def confirm(self, asked: SubscriptionConfirmation) -> ConfirmationResult:
        """Confirm a subscription if its topic is allowed. Raises RetryableError without a response."""
        if asked.topic not in self.topics:
            log.warning("subscription_rejected", topic=asked.topic[:256], reason="topic not in LAKEWRIGHT_SNS_TOPICS")
            return ConfirmationResult.NOT_LISTED
        if not is_page_of(asked.topic, asked.url):
            log.warning("subscription_rejected", topic=asked.topic, reason="URL is not of the topic's host")
            return ConfirmationResult.BAD_URL
        try:
            async with httpx.AsyncClient(transport=self.transport, timeout=TIMEOUT_S, trust_env=False) as client:
                answer = await client.get(asked.url, follow_redirects=False)
        except httpx.InvalidURL:
            # Line breaks, which the check above does not see, or more characters than a page's address has.
            log.warning("subscription_rejected", topic=asked.topic, reason="invalid URL")
            return ConfirmationResult.BAD_URL
        except httpx.TransportError as problem:
            raise RetryableError(f"the host of {asked.topic} does not respond: {type(problem).__name__}") from problem
        if not answer.is_success:
            raise RetryableError(f"the host of {asked.topic} answered {answer.status_code} to the confirmation")
        log.info("subscription_confirmed", topic=asked.topic)
        return ConfirmationResult.CONFIRMED


def is_page_of(topic: str, url: str) -> bool:
    """Return whether a URL is the page that confirms a subscription to a topic, and nothing else."""
    parts = topic.split(":")
    if len(parts) != _ARN_PARTS or parts[:1] != ["arn"] or parts[2] != "sns" or parts[1] not in _DOMAINS:
        return False
    try:
        found = urlsplit(url)
    except ValueError:
        return False
    query = parse_qs(found.query)
    return (
        found.scheme == "https"
        and found.netloc == f"sns.{parts[3]}.{_DOMAINS[parts[1]]}"
        and found.path in ("", "/")
        and query.get("Action") == ["ConfirmSubscription"]
        and query.get("TopicArn") == [topic]
    )
