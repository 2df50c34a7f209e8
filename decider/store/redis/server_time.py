"""The clock of Redis, by which all deciders and actors go."""


def milliseconds(clock: tuple[int, int]) -> int:
    """Return the server's time, in seconds and microseconds, as milliseconds since 1970."""
    return int(clock[0]) * 1_000 + int(clock[1]) // 1_000
