"""Spark's SQL as text: quoted names, literals, and the one statement that sets properties of a table."""

from collections.abc import Mapping
from urllib.parse import unquote

from shared.locations import CATALOG


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a string as an SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def table_name(location: str) -> str:
    """Return how SQL names the table at a location: by its path, or by the names of catalog, namespaces and table."""
    if location.startswith(CATALOG):
        return ".".join(quoted(unquote(part)) for part in location.removeprefix(CATALOG).split("/"))
    return f"delta.{quoted(location)}"


def set_properties(location: str, values: Mapping[str, str]) -> str:
    """Return the statement that sets properties of the table at a location."""
    pairs = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in values.items())
    return f"ALTER TABLE {table_name(location)} SET TBLPROPERTIES ({pairs})"
