"""Limits of requests: one value for the settings that state them and the middleware that applies them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits per request and client.

    max_body_bytes: 1 MiB fits thousands of events and bounds memory per request. body_timeout_s: time to receive a
    body. events_per_s, calls_per_s: requests per client.
    """

    max_body_bytes: int = 1_048_576
    body_timeout_s: float = 10.0
    events_per_s: float = 1_000.0
    calls_per_s: float = 200.0
