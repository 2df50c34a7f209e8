"""Catalogs, through pyiceberg: opened when first used, and every failure is one of our errors.

A catalog that is down, slow or overloaded is a failure of the moment; one that refuses our credentials is not.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from decider.formats.catalog_calls import CatalogCalls
from decider.formats.table_format import CatalogFolder
from shared.errors import InvalidInput, LakewrightError, NoTable, PermanentError, RetryableError, Unsupported

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from decider.formats.iceberg.raw_tables import RawTable

KINDS = ("rest", "sql", "glue", "hive")
"""Kinds of catalogs, as the setting `type` names them; the others of pyiceberg were not tried."""


class NamedCatalog:
    """`decider.formats.table_format.TableCatalog` on one catalog; `options` are pyiceberg's."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        kind = options.get("type", "rest")
        if kind not in KINDS:
            raise InvalidInput(f"catalog {name}: type {kind!r} is unknown", field="type", allowed=", ".join(KINDS))
        self.name = name
        self._options = {"type": kind, **options}
        self._calls = CatalogCalls(name)
        self._opened: Catalog | None = None
        self._opening = threading.Lock()

    async def has_table(self, name: tuple[str, ...]) -> bool:
        """Return whether there is a table of this name; raises Unsupported for a view."""
        return await self._calls.run(self._has_table, name)

    async def folder(self, namespace: tuple[str, ...]) -> CatalogFolder:
        """Return what is right below a namespace."""
        return await self._calls.run(self._folder, namespace)

    async def load(self, name: tuple[str, ...]) -> "RawTable":
        """Load a table; raises NoTable, Unsupported for a view, and what a catalog raises."""
        return await self._calls.run(self._load, name)

    def _load(self, name: tuple[str, ...]) -> "RawTable":
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError  # noqa: PLC0415

        where = f"{self.name}.{'.'.join(name)}"
        with translated(f"catalog {self.name}"):
            try:
                found: Any = self._catalog().load_table(name)
                return cast("RawTable", found)
            except (NoSuchTableError, NoSuchNamespaceError) as missing:
                if self._is_view(name):
                    raise _view(where) from None
                raise NoTable(f"{where}: there is no such table in the catalog", field="location") from missing

    def _has_table(self, name: tuple[str, ...]) -> bool:
        from pyiceberg.exceptions import NoSuchNamespaceError  # noqa: PLC0415

        if len(name) < 2:  # noqa: PLR2004 - a namespace and a name
            return False
        with translated(f"catalog {self.name}"):
            try:
                found = bool(self._catalog().table_exists(name))
            except NoSuchNamespaceError:
                return False
            if not found and self._is_view(name):
                raise _view(f"{self.name}.{'.'.join(name)}")
            return found

    def _folder(self, namespace: tuple[str, ...]) -> CatalogFolder:
        from pyiceberg.exceptions import NoSuchNamespaceError  # noqa: PLC0415

        with translated(f"catalog {self.name}"):
            try:
                found = self._catalog().list_namespaces(namespace)
                tables = self._catalog().list_tables(namespace) if namespace else []
            except NoSuchNamespaceError:
                return CatalogFolder()
        below = {name[len(namespace)] for name in found if len(name) > len(namespace)}
        return CatalogFolder(tuple(below), tuple(name[-1] for name in tables))

    def _is_view(self, name: tuple[str, ...]) -> bool:
        try:
            return bool(self._catalog().view_exists(name))
        except Exception:  # noqa: BLE001 - catalogs without views fail with various errors
            return False

    def _catalog(self) -> "Catalog":
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - takes seconds

        from decider.formats.iceberg.raw_tables import with_raw_tables  # noqa: PLC0415 - with pyiceberg
        from decider.formats.iceberg.rest_client import LimitedRestCatalog  # noqa: PLC0415 - with pyiceberg

        with self._opening:
            if self._opened is None:
                kind = self._options["type"]
                self._opened = (
                    LimitedRestCatalog(self.name, **self._options)
                    if kind == "rest"
                    else with_raw_tables(load_catalog(self.name, **self._options), kind)
                )
            return self._opened


def _view(where: str) -> Unsupported:
    return Unsupported(f"{where} is a view, which has no files of its own", field="location")


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn pyiceberg's errors into ours."""
    from pyiceberg import exceptions  # noqa: PLC0415 - with the rest of pyiceberg

    refused = (exceptions.UnauthorizedError, exceptions.ForbiddenError, exceptions.OAuthError)
    try:
        yield
    except LakewrightError:
        raise
    except refused as problem:
        raise PermanentError(
            f"{doing}: {_first_line(problem)}; check the credentials in LAKEWRIGHT_CATALOGS, and that they may read"
        ) from problem
    except exceptions.NotInstalledError as problem:
        raise PermanentError(f"{doing}: {_first_line(problem)}") from problem
    except exceptions.ValidationError as problem:
        raise PermanentError(f"{doing}: the metadata cannot be read: {_first_line(problem)}") from problem
    except Exception as problem:
        raise RetryableError(f"{doing}: {_first_line(problem)}") from problem


def _first_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}".split("\n", 1)[0][:300]
