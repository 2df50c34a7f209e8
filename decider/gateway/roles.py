"""Required role of every operation; operations that are not listed require the role admin.

A new route is therefore closed until it is listed; a test checks that all routes are.
"""

import re
from collections.abc import Mapping

from decider.gateway.credentials import Role

EVENTS = "/v1/events"
SCAN_REPORTS = "/v1/scan-reports"
"""Paths of webhooks: only here are signatures, passwords and query keys accepted."""

OPEN: frozenset[tuple[str, str]] = frozenset(
    {
        ("GET", "/"),
        ("GET", "/page/{name}"),
        ("GET", "/livez"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("OPTIONS", "/v1/events"),
        ("OPTIONS", "/v1/events/{source}"),
    }
)
"""Operations without authentication: the page's files, probes, scrapes, and the webhook validation."""

ROLES: Mapping[tuple[str, str], Role] = {
    ("POST", "/v1/events"): Role.HOOK,
    ("POST", "/v1/events/{source}"): Role.HOOK,
    ("POST", SCAN_REPORTS): Role.HOOK,
    ("GET", "/v1/rejected-events"): Role.OPERATOR,
    ("GET", "/v1/refused-files"): Role.VIEWER,
    ("POST", "/v1/tables"): Role.OPERATOR,
    ("GET", "/v1/tables"): Role.VIEWER,
    ("GET", "/v1/table-rows"): Role.VIEWER,
    ("GET", "/v1/tables/{name}"): Role.VIEWER,
    ("PATCH", "/v1/tables/{name}"): Role.OPERATOR,
    ("DELETE", "/v1/tables/{name}"): Role.ADMIN,
    ("GET", "/v1/tables/{name}/partitions"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/decisions"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/layout-history"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/history"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/index"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/reads"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/optimizations"): Role.VIEWER,
    ("POST", "/v1/tables/{name}/optimize"): Role.OPERATOR,
    ("POST", "/v1/tables/{name}/actions/reclaim"): Role.ADMIN,
    ("POST", "/v1/tables/{name}/actions/{action}"): Role.OPERATOR,
    ("POST", "/v1/tables/{name}/what-if"): Role.VIEWER,
    ("GET", "/v1/advice"): Role.VIEWER,
    ("GET", "/v1/tables/{name}/advice"): Role.VIEWER,
    ("POST", "/v1/tables/{name}/advice/{advice}/apply"): Role.OPERATOR,
    ("POST", "/v1/tables/{name}/advice/{advice}/dismiss"): Role.OPERATOR,
    ("POST", "/v1/tables/resume"): Role.OPERATOR,
    ("POST", "/v1/tables/{name}/pause"): Role.OPERATOR,
    ("POST", "/v1/tables/{name}/resume"): Role.OPERATOR,
    ("GET", "/v1/discovery"): Role.VIEWER,
    ("POST", "/v1/discovery"): Role.OPERATOR,
    ("GET", "/v1/jobs"): Role.VIEWER,
    ("GET", "/v1/jobs/{job}"): Role.VIEWER,
    ("DELETE", "/v1/jobs/{job}"): Role.OPERATOR,
    ("POST", "/v1/jobs/{job}/expedite"): Role.OPERATOR,
    ("POST", "/v1/jobs/{job}/requeue"): Role.OPERATOR,
    ("GET", "/v1/groups"): Role.VIEWER,
    ("GET", "/v1/queue"): Role.VIEWER,
    ("GET", "/v1/backlog"): Role.VIEWER,
    ("GET", "/v1/queue/settings"): Role.VIEWER,
    ("PATCH", "/v1/queue/settings"): Role.ADMIN,
    ("PUT", "/v1/queue/weights"): Role.ADMIN,
    ("POST", "/v1/queue/pause"): Role.OPERATOR,
    ("POST", "/v1/queue/resume"): Role.OPERATOR,
    ("POST", "/v1/queue/audit"): Role.OPERATOR,
    ("GET", "/v1/actors"): Role.VIEWER,
    ("POST", "/v1/actors/{actor}/drain"): Role.OPERATOR,
    ("GET", "/v1/status"): Role.VIEWER,
    ("GET", "/v1/history"): Role.VIEWER,
    ("GET", "/v1/me"): Role.VIEWER,
    ("GET", "/v1/stream"): Role.VIEWER,
    ("GET", "/openapi.json"): Role.VIEWER,
    ("GET", "/docs"): Role.VIEWER,
    ("GET", "/docs/assets/{name}"): Role.VIEWER,
}
"""Minimum role; registering reads a location with the service's credentials, hence operator."""


def needed(method: str, path: str) -> Role | None:
    """Return the required role of an operation, None for open ones; HEAD counts as GET."""
    asked = "GET" if method == "HEAD" else method
    if any(asked == known and _fits(path, template) for known, template in OPEN):
        return None
    fitting = (role for (known, template), role in ROLES.items() if asked == known and _fits(path, template))
    return next(fitting, Role.ADMIN)


def takes_events(path: str) -> bool:
    """Return whether a path is one of webhooks, which post events and reports."""
    return path in (EVENTS, SCAN_REPORTS) or path.startswith(f"{EVENTS}/")


def _fits(path: str, template: str) -> bool:
    if "{" not in template:
        return path == template
    return re.fullmatch(re.sub(r"\{[a-z_]+\}", "[^/]+", template), path) is not None
