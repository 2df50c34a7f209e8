"""Names of tables: hints from names and locations, and the default name and tenant that a location gives.

A name matches a table only if the table is registered under it. Both are normalized before they are compared; a text
that can be neither is an error or ignored, as the event format requires.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from decider.events.field_reader import wrong
from decider.events.table_hint import IgnoredReason, TableHint
from decider.formats.metadata_folders import metadata_folder
from shared.errors import InvalidInput
from shared.paths.locations import CATALOG, canonical_location, catalog_name, is_under, key_location

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}(?:\.[A-Za-z0-9_-]{1,128}){0,3}")
"""A name of up to four parts, as catalogs have them."""


def table_hint(text: str, field: str, version: int | None = None) -> TableHint:
    """Return the hint for a name or a location; text with a slash or a colon is a location. Raises InvalidInput."""
    if "/" not in text and ":" not in text:
        if not _NAME.fullmatch(text):
            raise wrong(field, text, "a name such as db.table, or a URI")
        return TableHint(name=text, version=version)
    return TableHint(_location(text, field), version=version)


def name_hint(*parts: str) -> TableHint | IgnoredReason:
    """Return the hint for the parts of a catalog's name, unless no table can be registered under it."""
    name = ".".join(parts)
    return TableHint(name=name) if _NAME.fullmatch(name) else IgnoredReason.BAD_NAME


def catalog_hint(*parts: str) -> TableHint | IgnoredReason:
    """Return the hint for namespaces and name of a table in a catalog, or for the name that a table was registered by.

    A part that no location can have is ignored: the hint leads to `catalog://CATALOG/NAMESPACE/TABLE`.
    """
    name = ".".join(parts)
    try:
        location = key_location(f"{CATALOG}any", "/".join(parts))
    except InvalidInput:
        return IgnoredReason.BAD_NAME
    if catalog_name(location) != ("any", parts):
        return IgnoredReason.BAD_NAME
    return TableHint(name=name if _NAME.fullmatch(name) else None, catalog_path=parts)


def metadata_hint(metadata_file: str) -> TableHint | IgnoredReason:
    """Return the hint for a metadata file of a table in a catalog."""
    folder = metadata_folder(metadata_file)
    return IgnoredReason.NOT_A_LOCATION if folder is None else TableHint(metadata_folder=folder)


def _location(text: str, field: str) -> str:
    try:
        return canonical_location(text)
    except InvalidInput as problem:
        raise InvalidInput(f"{field}: {problem}", field=field, allowed=problem.allowed) from problem


PARTS = 4
"""Parts of a name at most, as in catalogs; a deeper place is named by its last ones."""

PART_CHARS = 100
NO_TENANT = "default"
FROM_PATH = "path"
"""The setting that takes the tenant from the path; any other word is the tenant itself."""


def name_at(location: str, roots: Iterable[str]) -> str | None:
    """Return the name that a canonical location gives to a table; None if it lies below no root or is one.

    Below the root `s3://lake`, `s3://lake/sales/orders` is `sales.orders` of the tenant `sales`, as in a catalog.
    """
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
