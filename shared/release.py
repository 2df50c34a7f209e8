"""The release of this code, which both services and their records name; a test compares it with `pyproject.toml`."""

import re

RELEASE = "0.1.0"
"""Version of the package: a newer release tries again what an older one refused."""


def is_newer(release: str, other: str) -> bool:
    """Return whether a release is newer than another; one that is not known is older than all."""
    return _numbers(release) > _numbers(other)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"[0-9]+", release)))
