"""Locations as people type them: a URI, a path on this machine, or the name of a registered table."""

import re
from pathlib import Path

from services.settings import format_options
from shared.paths.locations import CATALOG, canonical_location, key_location

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_location(table: str) -> bool:
    """Return whether a path, a URI or a name in one of our catalogs is meant; other names are names at the decider."""
    return "/" in table or table in (".", "..") or _catalog_location(table) is not None


def _catalog_location(table: str) -> str | None:
    """Return the location of CATALOG.NAMESPACE.TABLE, None where there is no such catalog in the settings."""
    catalog, *parts = table.split(".")
    if len(parts) < 2 or not all(parts) or catalog not in format_options().catalogs:  # noqa: PLR2004 - namespace, name
        return None
    return key_location(f"{CATALOG}{catalog}", "/".join(parts))


def location_of(table: str) -> str:
    """Return the canonical location of a path, a URI or a name in a catalog; a path is taken literally, links resolved.

    Raises InvalidInput for what is no location.
    """
    named = _catalog_location(table) if "/" not in table else None
    return named or canonical_location(table if _URI.match(table) else str(Path(table).resolve()))


def absolute(location: str) -> str:
    """Return a relative path as an absolute one, for a decider elsewhere; anything else as it is."""
    is_path = location in (".", "..") or ("/" in location and not _URI.match(location))
    return str(Path(location).absolute()) if is_path else location
