"""The tables of one Unity catalog as the decider asks for them: in threads of their own, by name, and with credentials.

A catalog that does not answer delays no table of another.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from decider.formats.catalog_calls import CatalogCalls
from decider.formats.table_format import CatalogFolder
from shared.errors import InvalidInput, NoTable
from shared.unity.catalog import UnityCatalog
from shared.unity.options import CredentialSource
from shared.unity.table_info import NAME_PARTS, UnityTable
from shared.unity.temporary_credentials import TemporaryCredentials

RENEW_BEFORE_S = 300
"""Seconds before they expire at which credentials are requested again: the read of a large log takes minutes, and
clouds give them for a quarter of an hour at least."""


class UnityTables:
    """`decider.formats.table_format.TableCatalog` on a Unity catalog."""

    def __init__(self, catalog: UnityCatalog) -> None:
        self._catalog = catalog
        self._calls = CatalogCalls(catalog.name)

    async def has_table(self, name: tuple[str, ...]) -> bool:
        """Return whether there is a table of this name; raises Unsupported, with the reason, for one not served."""
        if len(name) != NAME_PARTS:
            return False
        try:
            await self.table(name)
        except NoTable:
            return False
        return True

    async def folder(self, namespace: tuple[str, ...]) -> CatalogFolder:
        """Return what is right below a namespace: catalogs, schemas of a catalog, or Delta tables of a schema."""
        try:
            match namespace:
                case ():
                    return CatalogFolder(namespaces=await self._calls.run(self._catalog.catalogs))
                case (catalog,):
                    return CatalogFolder(namespaces=await self._calls.run(self._catalog.schemas, catalog))
                case (catalog, schema):
                    return CatalogFolder(tables=await self._calls.run(self._catalog.tables, catalog, schema))
                case _:
                    return CatalogFolder()
        except NoTable:
            return CatalogFolder()

    async def table(self, name: tuple[str, ...]) -> UnityTable:
        """Return the table of a full name; raises what `UnityCatalog.table` raises."""
        return await self._calls.run(self._catalog.table, name)

    def credentials(self, table: UnityTable) -> "VendedCredentials | None":
        """Return credentials to read a table's files; None where Lakewright's own are to be used."""
        if self._catalog.credential_source is CredentialSource.OWN or table.storage_location.startswith("file:"):
            return None
        return VendedCredentials(lambda: self._calls.run(self._catalog.credentials, table))


class VendedCredentials:
    """Credentials for one table's files, as obstore asks for them: requested again before they expire.

    Held in memory alone, and by no other table.
    """

    refresh_threshold = timedelta(seconds=RENEW_BEFORE_S)
    """How long before they expire obstore asks again; it reads this attribute."""

    def __init__(
        self, request: Callable[[], Awaitable[TemporaryCredentials]], now_s: Callable[[], float] = time.time
    ) -> None:
        self._request = request
        self._now_s = now_s
        self._held: TemporaryCredentials | None = None

    async def renew(self) -> TemporaryCredentials:
        """Return credentials that do not expire soon; raises what the catalog raises, InvalidInput if it has none."""
        if self._held is None or self._expires_soon(self._held):
            found = await self._request()
            if not found.values:
                raise InvalidInput(
                    "the catalog gives no credentials for a table that lies in an object store; set `credentials` to "
                    "`own` in LAKEWRIGHT_CATALOGS, and LAKEWRIGHT_STORE_OPTIONS",
                    field="credentials",
                )
            self._held = found
        return self._held

    async def __call__(self) -> dict[str, Any]:
        """Return them as obstore's credential provider does."""
        held = await self.renew()
        expires_at = None if held.expires_ms is None else datetime.fromtimestamp(held.expires_ms / 1000, UTC)
        return {**held.values, "expires_at": expires_at}

    def _expires_soon(self, held: TemporaryCredentials) -> bool:
        return held.expires_ms is not None and held.expires_ms / 1000 - self._now_s() < RENEW_BEFORE_S
