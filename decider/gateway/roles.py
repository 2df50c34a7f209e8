"""Every call has its role in this one table, and what is not in it is the administrator's alone.

A route that somebody adds and forgets here is closed rather than open; a test walks all routes and names it.
"""

import re
from collections.abc import Mapping

from decider.gateway.credentials import Role

OPEN: frozenset[tuple[str, str]] = frozenset(
    {
        ("GET", "/livez"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("OPTIONS", "/v1/events"),
        ("OPTIONS", "/v1/events/{source}"),
    }
)
"""Calls that need nothing: probes and scrapers, which carry no tokens, and a handshake that only says who may send."""

ROLES: Mapping[tuple[str, str], Role] = {
    ("POST", "/v1/events"): Role.HOOK,
    ("POST", "/v1/events/{source}"): Role.HOOK,
    ("POST", "/v1/tables"): Role.OPERATOR,
    ("GET", "/v1/tables"): Role.VIEWER,
    ("GET", "/v1/tables/{name}"): Role.VIEWER,
    ("PATCH", "/v1/tables/{name}"): Role.OPERATOR,
    ("DELETE", "/v1/tables/{name}"): Role.ADMIN,
    ("GET", "/v1/tables/{name}/partitions"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/decisions"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/optimizations"): Role.VIEWER,
    ("POST", "/v1/tables/{name}/optimize"): Role.OPERATOR,
    ("POST", "/v1/tables/{name}/what-if"): Role.VIEWER,
    ("POST", "/v1/tables/{name}/pause"): Role.OPERATOR,
    ("POST", "/v1/tables/{name}/resume"): Role.OPERATOR,
    ("GET", "/v1/scheduled"): Role.VIEWER,
    ("GET", "/v1/discovery"): Role.VIEWER,
    ("POST", "/v1/discovery"): Role.OPERATOR,
    ("GET", "/v1/jobs"): Role.VIEWER,
    ("GET", "/v1/jobs/{job}"): Role.VIEWER,
    ("DELETE", "/v1/jobs/{job}"): Role.OPERATOR,
    ("POST", "/v1/jobs/{job}/expedite"): Role.OPERATOR,
    ("POST", "/v1/jobs/{job}/requeue"): Role.OPERATOR,
    ("GET", "/v1/queue"): Role.VIEWER,
    ("GET", "/v1/queue/settings"): Role.VIEWER,
    ("PATCH", "/v1/queue/settings"): Role.ADMIN,
    ("PUT", "/v1/queue/weights"): Role.ADMIN,
    ("POST", "/v1/queue/pause"): Role.OPERATOR,
    ("POST", "/v1/queue/resume"): Role.OPERATOR,
    ("POST", "/v1/queue/audit"): Role.OPERATOR,
    ("GET", "/v1/actors"): Role.VIEWER,
    ("POST", "/v1/actors/{actor}/drain"): Role.OPERATOR,
    ("GET", "/v1/status"): Role.VIEWER,
    ("GET", "/v1/stream"): Role.VIEWER,
    ("GET", "/openapi.json"): Role.VIEWER,
    ("GET", "/docs"): Role.VIEWER,
    ("GET", "/docs/assets/{name}"): Role.VIEWER,
}
"""The least that a caller must be; registering makes us read a place with our own credentials, hence an operator."""

EVENTS = "/v1/events"
"""Where webhooks arrive: only here do signatures, passwords and keys in the query count."""


def needed(method: str, path: str) -> Role | None:
    """Return the role that a call needs, None if it needs nothing; HEAD is a GET without the answer's body."""
    asked = "GET" if method == "HEAD" else method
    if any(asked == known and _fits(path, template) for known, template in OPEN):
        return None
    fitting = (role for (known, template), role in ROLES.items() if asked == known and _fits(path, template))
    return next(fitting, Role.ADMIN)


def takes_events(path: str) -> bool:
    """Say whether webhooks arrive at a path."""
    return path == EVENTS or path.startswith(f"{EVENTS}/")


def _fits(path: str, template: str) -> bool:
    if "{" not in template:
        return path == template
    return re.fullmatch(re.sub(r"\{[a-z_]+\}", "[^/]+", template), path) is not None
