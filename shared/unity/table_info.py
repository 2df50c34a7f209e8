"""A table as its Unity catalog describes it, and why Lakewright may not touch one.

A name leads to a place, and the place is rewritten: an answer about another table, or a place in which the catalog is
not believed, is refused before anything there is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import InvalidInput, PermanentError, Unsupported
from shared.formats.delta import catalog_feature
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location, is_under

NAME_PARTS = 3
"""A table's full name: catalog, schema and table."""

DELTA = "DELTA"
FILES = ("MANAGED", "EXTERNAL")
"""Types of tables that have files of their own; the others are views, or the results of pipelines."""


@dataclass(frozen=True, slots=True)
class UnityTable:
    """Full name, the catalog's own id, and the canonical location of a table's files."""

    full_name: str
    table_id: str
    storage_location: str


def is_served(info: Mapping[str, Any]) -> bool:
    """Return whether a listed table can be one that is served; a request for it alone says why it is not."""
    return info.get("data_source_format") == DELTA and info.get("table_type") in FILES


def decode_table(info: Mapping[str, Any], name: tuple[str, ...], doing: str, boundary: Boundary) -> UnityTable:
    """Decode the answer to a request for the table of a name.

    `boundary` has the places in which the catalog is believed. Raises Unsupported for a table that is not served,
    PermanentError for an answer that is not about it.
    """
    own = tuple(_text(info, field, doing) for field in ("catalog_name", "schema_name", "name"))
    if own != name:
        _refuse_other(own, name, doing)
    kind, source = _text(info, "table_type", doing), info.get("data_source_format") or "none"
    if kind not in FILES:
        raise Unsupported(
            f"{doing}: it is a {kind}, which has no files of its own; register the tables that it reads",
            field="table_type",
            allowed=", ".join(FILES),
        )
    if source != DELTA:
        raise Unsupported(
            f"{doing}: its format is {source}; only Delta tables are served by a Unity catalog's name",
            field="data_source_format",
            allowed=DELTA,
        )
    properties = info.get("properties")
    feature = catalog_feature(properties if isinstance(properties, dict) else {})
    if feature:
        raise Unsupported(
            f"{doing}: by its property {feature} the catalog makes its commits, and the log alone does not define the "
            "table; let the catalog optimize it",
            field="properties",
        )
    place = _place(_text(info, "storage_location", doing), doing, boundary)
    return UnityTable(".".join(name), _text(info, "table_id", doing), place)


def _place(text: str, doing: str, boundary: Boundary) -> str:
    try:
        place = canonical_location(text)
    except InvalidInput as problem:
        raise PermanentError(f"{doing}: its storage location cannot be used: {problem}") from problem
    if not is_under(place, boundary.roots):
        raise Unsupported(
            f"{doing}: it lies at {place}, outside of the catalog's `locations` in LAKEWRIGHT_CATALOGS; add that "
            "location if every user who can register tables in the catalog may have Lakewright rewrite tables there",
            field="location",
            allowed=", ".join(boundary.roots),
        )
    try:
        boundary.check_table(place)
    except Unsupported as problem:
        raise Unsupported(
            f"{doing}: {problem} (here the roots are the catalog's `locations`)", field="location"
        ) from problem
    return place


def _refuse_other(own: tuple[str, ...], name: tuple[str, ...], doing: str) -> None:
    """Raise for an answer with another name; the catalog's own spelling of it is the only one that is served.

    Two spellings of one table would be two tables with two states.
    """
    found = ".".join(own)
    if [part.casefold() for part in own] == [part.casefold() for part in name]:
        raise Unsupported(f"{doing}: the catalog spells this name {found}; register it so", field="name", allowed=found)
    raise PermanentError(f"{doing}: the catalog answered with another table, {found}")


def _text(info: Mapping[str, Any], name: str, doing: str) -> str:
    value = info.get(name)
    if not isinstance(value, str) or not value:
        raise PermanentError(f"{doing}: the answer has no text as {name}")
    return value
