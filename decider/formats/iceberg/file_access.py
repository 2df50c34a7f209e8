"""Reads files of a catalog's table with the options of the settings and the catalog, never with the table's.

pyiceberg adds the table's own properties, which everyone who may write to the table sets. They could name a class that
the decider imports (`py-io-impl`), another host for its requests and their tokens (`s3.endpoint`), or other keys.
Neither may a catalog name a class.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.io import PY_IO_IMPL, load_file_io

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO


def ignore_table_properties(catalog: "Catalog") -> "Catalog":
    """Have a catalog that vends no options read the files of every table with its own."""

    def own_file_io(_properties: Mapping[str, str] | None = None, location: str | None = None) -> "FileIO":
        return load_file_io(dict(catalog.properties), location)

    replaced: Any = catalog
    replaced._load_file_io = own_file_io  # noqa: SLF001 - the one place where pyiceberg joins both
    return catalog


def without_class(options: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the class of the settings, or none."""
    kept = {name: value for name, value in options.items() if name != PY_IO_IMPL}
    return kept | ({PY_IO_IMPL: given[PY_IO_IMPL]} if PY_IO_IMPL in given else {})
