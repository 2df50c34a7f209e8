"""One Unity catalog: its tables by name, and what it lists.

It holds no state, so any number of threads may ask; every answer is the catalog's of that moment.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.paths.boundary import Boundary
from shared.paths.locations import catalog_name
from shared.unity.exchange import Send, UnityRequest, decode_answer
from shared.unity.table_info import NAME_PARTS, UnityTable, decode_table, is_served

MAX_PAGES = 2_000
"""Pages of one listing: a hundred thousand names at the fifty of the open server; more is a catalog that never ends."""

_AS_THEY_ARE = {"read_streaming_table_as_managed": "false", "read_materialized_view_as_managed": "false"}
"""Without these, the catalog calls the results of pipelines managed tables."""


class UnityCatalog:
    """The catalog `name` of the settings; `boundary` has the places in which it is believed."""

    def __init__(self, name: str, send: Send, boundary: Boundary) -> None:
        self.name = name
        self._send = send
        self._boundary = boundary

    def table(self, name: tuple[str, ...]) -> UnityTable:
        """Return the table of a full name.

        Raises NoTable where there is none, Unsupported for one that is not served, RetryableError where the catalog
        does not answer, PermanentError where it refuses to or answers with something else.
        """
        full_name = ".".join(name)
        doing = f"catalog {self.name}: reading {full_name}"
        if len(name) != NAME_PARTS or not all(name) or "." in "".join(name):
            raise InvalidInput(
                f"{doing}: a table of a Unity catalog has the location catalog://{self.name}/CATALOG/SCHEMA/TABLE, and "
                "no part has a dot",
                field="location",
            )
        request = UnityRequest(f"tables/{quote(full_name, safe='')}", _AS_THEY_ARE)
        return decode_table(decode_answer(self._send(request), doing), name, doing, self._boundary)

    def catalogs(self) -> tuple[str, ...]:
        """Return the names of its catalogs; raises what `table` raises, as do the other listings."""
        return tuple(_name(one, "catalogs", self.name) for one in self._listed("catalogs", {}))

    def schemas(self, catalog: str) -> tuple[str, ...]:
        """Return the names of the schemas of a catalog."""
        return tuple(_name(one, "schemas", self.name) for one in self._listed("schemas", {"catalog_name": catalog}))

    def tables(self, catalog: str, schema: str) -> tuple[str, ...]:
        """Return the names of the Delta tables of a schema; whether each is served shows when it is read."""
        query = {"catalog_name": catalog, "schema_name": schema, "omit_columns": "true"}
        return tuple(_name(one, "tables", self.name) for one in self._listed("tables", query) if is_served(one))

    def _listed(self, what: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """Yield what all pages of a listing have; an empty page with a token is followed by another."""
        doing, token, seen = f"catalog {self.name}: listing its {what}", "", set[str]()
        for _ in range(MAX_PAGES):
            page = {"page_token": token} if token else {}
            found = decode_answer(self._send(UnityRequest(what, {**query, **page})), doing)
            listed = found.get(what)
            if not isinstance(listed, list | None) or not all(isinstance(one, dict) for one in listed or ()):
                raise PermanentError(f"{doing}: the answer has no list of objects as {what}")
            yield from listed or ()
            token = found.get("next_page_token") or ""
            if not isinstance(token, str):
                raise PermanentError(f"{doing}: next_page_token is no text")
            if not token:
                return
            if token in seen:
                raise RetryableError(f"{doing}: the page after {len(seen) + 1} is one that was read before")
            seen.add(token)
        raise PermanentError(f"{doing}: it has more than {MAX_PAGES} pages")


def _name(one: Mapping[str, Any], what: str, catalog: str) -> str:
    name = one.get("name")
    if not isinstance(name, str) or not name:
        raise PermanentError(f"catalog {catalog}: listing its {what}: one has no name")
    return name


Catalog = TypeVar("Catalog")


def find_catalog(location: str, catalogs: Mapping[str, Catalog]) -> tuple[Catalog, tuple[str, ...]] | None:
    """Return the catalog of a location and the parts of the name in it; None for a table known by its place.

    Raises InvalidInput where the settings have no such catalog.
    """
    named = catalog_name(location)
    if named is None:
        return None
    catalog, parts = named
    if catalog not in catalogs:
        raise InvalidInput(
            f"{location}: there is no catalog {catalog!r}; add it to LAKEWRIGHT_CATALOGS", field="location"
        )
    return catalogs[catalog], parts
