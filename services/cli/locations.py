"""What a person types for a table: a URI, a path on this machine, or the name of a registered table."""

import re
from pathlib import Path

from shared.locations import canonical_location

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_location(table: str) -> bool:
    """Return whether a path or URI is meant: names have no slash."""
    return "/" in table or table in (".", "..")


def location_of(table: str) -> str:
    """Return the canonical location of a path or URI as it was typed; a path is taken literally, links resolved.

    Raises InvalidInput for what is no location.
    """
    return canonical_location(table if _URI.match(table) else str(Path(table).resolve()))
