"""Spark's SQL as text: quoted names, literals, and the statements that set properties and columns of a table."""

from collections.abc import Mapping
from urllib.parse import unquote

from shared.paths.locations import CATALOG


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a string as an SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def table_name(location: str, sql_paths: str) -> str:
    """Return how SQL names the table at a location: by the names of catalog, namespaces and table, or by its path.

    sql_paths: the name that SQL has before a path of this format; empty where it has none. Then the result is empty,
    too, for a table without a catalog.
    """
    if location.startswith(CATALOG):
        return ".".join(quoted(unquote(part)) for part in location.removeprefix(CATALOG).split("/"))
    return f"{sql_paths}.{quoted(location)}" if sql_paths else ""


def set_properties(location: str, values: Mapping[str, str], sql_paths: str) -> str:
    """Return the statement that sets properties of the table at a location; empty where SQL cannot name the table."""
    pairs = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in values.items())
    name = table_name(location, sql_paths)
    return f"ALTER TABLE {name} SET TBLPROPERTIES ({pairs})" if name else ""


def cluster_by(location: str, columns: str, sql_paths: str) -> str:
    """Return the statement that clusters a table by columns, quoted where needed; empty where SQL cannot name it."""
    name = table_name(location, sql_paths)
    return f"ALTER TABLE {name} CLUSTER BY ({columns})" if name else ""
