"""Values as Redis holds them, read for people: times in milliseconds, and texts that should be JSON objects."""

import json
from datetime import UTC, datetime
from typing import Any


def moment(ms: int | None) -> datetime | None:
    """Return milliseconds since 1970 as an aware time; None and 0 are "never"."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def json_object(text: str) -> dict[str, Any]:
    """Return a JSON object; empty for any other text, such as the report of a run that another release wrote."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def milliseconds(clock: tuple[int, int]) -> int:
    """Return the server's time, in seconds and microseconds, as milliseconds since 1970."""
    return int(clock[0]) * 1_000 + int(clock[1]) // 1_000
