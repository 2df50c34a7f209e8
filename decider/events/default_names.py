"""Default name and tenant of a table, derived from the folders below its root; the first one is the tenant.

Below the root `s3://lake`, `s3://lake/sales/orders` is `sales.orders` of the tenant `sales`, as in a catalog.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from shared.paths.locations import is_under

PARTS = 4
"""Parts of a name at most, as in catalogs; a deeper place is named by its last ones."""

PART_CHARS = 100
NO_TENANT = "default"
FROM_PATH = "path"
"""The setting that takes the tenant from the path; any other word is the tenant itself."""


def name_at(location: str, roots: Iterable[str]) -> str | None:
    """Return the name that a canonical location gives to a table; None if it lies below no root or is one."""
    parts = _parts(location, roots)[-PARTS:]
    return ".".join(parts) or None


def tenant_at(location: str, roots: Iterable[str], setting: str = FROM_PATH) -> str:
    """Return the tenant of a canonical location."""
    if setting != FROM_PATH:
        return setting
    parts = _parts(location, roots)
    return parts[0] if len(parts) > 1 else NO_TENANT


def _parts(location: str, roots: Iterable[str]) -> list[str]:
    root = max((root for root in roots if is_under(location, [root])), key=len, default=None)
    if root is None:
        return []
    below = location[len(root.rstrip("/")) :].strip("/")
    return [_word(unquote(part)) for part in below.split("/") if part]


def _word(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", part)[:PART_CHARS].strip("-") or "-"
