"""Times as Redis holds them, read for people: in milliseconds."""

from datetime import UTC, datetime


def moment(ms: int | None) -> datetime | None:
    """Return milliseconds since 1970 as an aware time; None and 0 are "never"."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def milliseconds(clock: tuple[int, int]) -> int:
    """Return the server's time, in seconds and microseconds, as milliseconds since 1970."""
    return int(clock[0]) * 1_000 + int(clock[1]) // 1_000
