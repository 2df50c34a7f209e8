"""The catalog that a table's name belongs to."""

from collections.abc import Mapping
from typing import TypeVar

from shared.errors import InvalidInput
from shared.paths.locations import catalog_name

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
