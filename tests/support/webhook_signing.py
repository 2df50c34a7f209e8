"""Headers of a signed webhook, made as a sender with the library of Standard Webhooks makes them."""

from datetime import UTC, datetime

from standardwebhooks import Webhook

MESSAGE_ID = "msg_for_tests"


def signed_headers(*secrets: bytes, at_s: int, body: bytes, message_id: str = MESSAGE_ID) -> dict[str, str]:
    """Return the three headers of a body that is signed with every secret."""
    at = datetime.fromtimestamp(at_s, UTC)
    signatures = [Webhook(secret).sign(message_id, at, body.decode()) for secret in secrets]
    return {"webhook-id": message_id, "webhook-timestamp": str(at_s), "webhook-signature": " ".join(signatures)}
