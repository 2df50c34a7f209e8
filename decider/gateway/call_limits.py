"""Limits of requests: one value for the settings that state them and the middleware that applies them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits per request and client.

    max_body_bytes: 1 MiB fits thousands of events and bounds memory per request. body_timeout_s: time to receive a
    body. events_per_s, calls_per_s: requests per client. max_connections: connections of all clients; fewer where the
    limit of descriptors is lower. request_timeout_s: time for a response, after which it is given up.
    """

    max_body_bytes: int = 1_048_576
    body_timeout_s: float = 10.0
    events_per_s: float = 1_000.0
    calls_per_s: float = 200.0
    max_connections: int = 2_048
    request_timeout_s: float = 30.0
