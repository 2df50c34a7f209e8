"""Resolves table hints to tables and queues their refresh, or counts the reason why a hint is ignored.

A hint is a name or a location; nothing else of an event is trusted. An unknown location is registered only if it
lies below an allowed root and has a log, and the number of probes is limited: a sender of events can neither fill the
registry nor cause unbounded reads.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from decider.events.refresh_queue import RefreshQueue
from decider.events.table_hint import IgnoredReason, TableHint
from decider.events.table_names import FROM_PATH, name_at, tenant_at
from decider.formats.metadata_folders import MetadataFolders
from decider.store.registry.table_registry import TableRegistry
from shared.errors import InvalidInput, LakewrightError, RetryableError, Unsupported
from shared.paths.boundary import Boundary
from shared.paths.locations import CATALOG, canonical_location, catalog_name, is_under, key_location, table_id
from shared.table import TableId, TableRef

MAX_PROBES_PER_DELIVERY = 64
"""Maximum unknown locations probed per delivery, one request each; others wait for their next event."""

CONCURRENT_PROBES = 8
"""Concurrent probes over all deliveries, so that unknown locations do not delay known tables."""

MAX_PROBES = 256
"""Maximum probes running or waiting over all deliveries: half a minute at a store that takes a second each."""

log = structlog.get_logger()


class TableProbe(Protocol):
    """Probes locations below a root for tables."""

    async def has_table(self, path: str) -> bool:
        """Return whether there is a table at a path below the root."""

    def path_of(self, location: str) -> str:
        """Return the path of a canonical location relative to the root."""


@dataclass(frozen=True, slots=True)
class AllowedRoots:
    """Allowed roots of tables, how one is opened, and the tenant of tables below them.

    `tenant` is the default tenant, or `path`: the first folder below the root. `folders`: where tables of catalogs keep
    their metadata. `hold` pauses a table before it is registered unasked; None: such tables are rewritten at once.
    """

    roots: Sequence[str] = ()
    open_lake: Callable[[str], TableProbe] | None = None
    tenant: str = FROM_PATH
    boundary: Boundary = field(default_factory=Boundary)
    folders: MetadataFolders = field(default_factory=MetadataFolders)
    hold: Callable[[TableId], Awaitable[None]] | None = None

    def root_of(self, location: str) -> str | None:
        """Return the allowed root that a location lies under."""
        return next((root for root in self.roots if is_under(location, [root])), None)

    def require_allowed(self, location: str) -> None:
        """Raise InvalidInput for a canonical location outside the allowed roots, if any, links resolved."""
        if self.roots and not is_under(location, self.roots):
            raise InvalidInput(
                f"{location} is outside the allowed roots; add its root to LAKEWRIGHT_ROOTS",
                field="location",
                allowed=", ".join(self.roots),
            )
        try:
            self.boundary.check_table(location)
        except Unsupported as problem:
            raise InvalidInput(str(problem), field="location", allowed=", ".join(self.roots)) from problem

    def locations_of(self, hint: TableHint) -> tuple[str, ...]:
        """Return where the table of a hint may be: its location or its name in a catalog, in each that is a root.

        For a location, also the tables of catalogs that this process knows to lie there.

        For a metadata file, the tables that this process knows to have it.
        """
        if hint.metadata_folder is not None:
            return tuple(place for place in self.folders.tables(hint.metadata_folder) if self.root_of(place))
        if hint.location is not None:
            return (hint.location, *self.folders.tables(hint.location))
        if not hint.catalog_path:
            return ()
        found = (catalog_name(root) for root in self.roots)
        catalogs = dict.fromkeys(named[0] for named in found if named is not None)
        try:
            places = [key_location(f"{CATALOG}{catalog}", "/".join(hint.catalog_path)) for catalog in catalogs]
        except InvalidInput:  # Too long.
            return ()
        return tuple(place for place in places if self.root_of(place) is not None)


@dataclass(frozen=True, slots=True)
class Registration:
    """Name, tenant and overrides of a registration; `is_discovered`: registered by discovery or an event."""

    name: str | None = None
    tenant: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    is_found: bool = False


@dataclass(slots=True)
class _EventBatch:
    """One delivery: known tables by id and name, and the reasons of ignored locations."""

    places: Mapping[TableHint, Sequence[str]]
    by_place: Mapping[str, TableId]
    by_name: Mapping[str, TableRef]
    known: dict[TableId, TableRef]
    refused: dict[str, str] = field(default_factory=dict)

    def tables(self, hint: TableHint) -> list[TableRef]:
        """Return the known tables of a hint: several where catalogs have tables of one name."""
        named = self.by_name.get(hint.name or "") if hint.location is None else None
        found = [self.known.get(self.by_place[place]) for place in self.places[hint]]
        return list({table.id: table for table in (named, *found) if table is not None}.values())

    def ignored_reason(self, hint: TableHint) -> str:
        """Return the reason why a hint has no table."""
        if hint.location is not None:
            return self.refused.get(hint.location, "")
        unknown = IgnoredReason.UNKNOWN_TABLE if hint.metadata_folder is None else IgnoredReason.ICEBERG
        reasons = {self.refused.get(place) for place in self.places[hint]} - {None, IgnoredReason.NO_TABLE}
        return min(filter(None, reasons), default=unknown)


class EventResolver:
    """Resolves hints to tables and queues their refresh."""

    def __init__(
        self, registry: TableRegistry, refresh_queue: RefreshQueue, places: AllowedRoots | None = None
    ) -> None:
        self._registry = registry
        self._refresh_queue = refresh_queue
        self.places = places or AllowedRoots()
        self._probes = asyncio.Semaphore(CONCURRENT_PROBES)
        self.probing = 0
        self._lakes: dict[str, TableProbe] = {}

    async def accept(self, hints: Iterable[TableHint]) -> tuple[int, Counter[str]]:
        """Resolve hints; return the number of accepted ones, and counts of the reasons of the others."""
        wanted = tuple(hints)
        places = {hint: self.places.locations_of(hint) for hint in wanted}
        by_place = {place: table_id(place) for found in places.values() for place in found}
        names = {hint.name for hint in wanted if hint.location is None and hint.name}
        by_name = await self._registry.find_many(names)
        delivery = _EventBatch(places, by_place, by_name, await self._registry.get_many(set(by_place.values())))
        # Known tables first: probing unknown locations may take long.
        await self._enqueue_known(wanted, delivery)
        unknown = [hint for hint in places if not delivery.tables(hint)]
        unknown_locations = list(dict.fromkeys(place for hint in unknown for place in places[hint]))
        if unknown_locations:
            await self._probe_unknown(unknown_locations, delivery)
            new = set(unknown)
            await self._enqueue_known([hint for hint in wanted if hint in new], delivery)
        ignored = Counter(delivery.ignored_reason(hint) for hint in wanted if not delivery.tables(hint))
        return len(wanted) - ignored.total(), ignored

    async def _enqueue_known(self, hints: Iterable[TableHint], delivery: _EventBatch) -> None:
        """Queue the refresh of known tables, each once."""
        asked: dict[TableId, tuple[TableRef, int | None]] = {}
        for hint in hints:
            for table in delivery.tables(hint):
                asked[table.id] = (table, _newest(asked.get(table.id), hint.version))
        for table, version in asked.values():
            await self._refresh_queue.put(table, version)

    async def _probe_unknown(self, unknown_locations: Sequence[str], delivery: _EventBatch) -> None:
        """Probe unknown locations and register those with a table, unless a person removed it."""
        below: list[str] = []
        removed = await self._registry.removed([delivery.by_place[place] for place in unknown_locations])
        for place in unknown_locations:
            if self.places.root_of(place) is None:
                delivery.refused[place] = IgnoredReason.OUTSIDE_ROOTS
            elif delivery.by_place[place] in removed:
                delivery.refused[place] = IgnoredReason.REMOVED
            elif len(below) >= min(MAX_PROBES_PER_DELIVERY, MAX_PROBES - self.probing):
                delivery.refused[place] = IgnoredReason.UNKNOWN_LIMIT
            else:
                below.append(place)
        self.probing += len(below)
        try:
            outcomes = await asyncio.gather(*map(self._probe, below))
        finally:
            self.probing -= len(below)
        for place, outcome in zip(below, outcomes, strict=True):
            if outcome:
                delivery.refused[place] = outcome
            else:
                table = await self.register_discovered(place)
                delivery.known[table.id] = table

    async def _probe(self, location: str) -> str:
        """Probe a location; return the reason for ignoring it, empty for a table."""
        root = self.places.root_of(location)
        if self.places.open_lake is None or root is None:
            return ""
        async with self._probes:
            try:
                lake = self._lakes.get(root) or self.places.open_lake(root)
                self._lakes[root] = lake
                return "" if await lake.has_table(lake.path_of(location)) else IgnoredReason.NO_TABLE
            except Unsupported as problem:
                log.warning("location_rejected", location=location, error=str(problem))
                return IgnoredReason.OUTSIDE_ROOTS
            except LakewrightError as problem:
                log.warning("location_probe_failed", location=location, error=str(problem))
                return IgnoredReason.UNREADABLE

    async def register_if_new(self, location: str) -> bool:
        """Register a table found below a root unless it is known or was removed; return whether it was new."""
        identity = table_id(location)
        if await self._registry.get(identity) is not None or await self._registry.removed([identity]):
            return False
        await self.register_discovered(location)
        return True

    async def register_discovered(self, location: str) -> TableRef:
        """Register a table found below a root, named after its location, and paused first where that is the rule."""
        if self.places.hold is not None:
            await self.places.hold(table_id(location))
        name = name_at(location, self.places.roots)
        try:
            return await self._upsert(location, Registration(name, is_found=True))
        except InvalidInput:
            # Another table has that name; the id is unique.
            return await self._upsert(location, Registration(is_found=True))

    async def register(self, location: str, wanted: Registration | None = None) -> TableRef:
        """Register a table and queue its refresh; returns the registered table if it is known.

        A discovered table gets the given name, tenant and properties. Raises InvalidInput for a location outside the
        allowed roots, if any, links resolved: a client must not make the service read elsewhere with its credentials.
        """
        canonical = canonical_location(location)
        self.places.require_allowed(canonical)
        return await self._upsert(canonical, wanted or Registration())

    async def _upsert(self, location: str, wanted: Registration) -> TableRef:
        canonical = canonical_location(location)
        identity = table_id(canonical)
        tenant = wanted.tenant or tenant_at(canonical, self.places.roots, self.places.tenant)
        overrides = dict(wanted.properties)
        table = TableRef(identity, wanted.name or identity, canonical, tenant, overrides, is_discovered=wanted.is_found)
        known = await self._registry.get(identity)
        if known is None and not await self._registry.register(table):
            known = await self._registry.get(identity)
        if known is not None and (wanted.is_found or not known.is_discovered):
            return known
        if known is not None:
            table = await self._adopt(identity, wanted)
        await self._refresh_queue.put(table, None)
        log.info("table_registered", table=table.name, location=canonical)
        return table

    async def _adopt(self, table: TableId, wanted: Registration) -> TableRef:
        """Register a discovered table as a person requested."""
        adopted = await self._registry.update(
            table,
            lambda known: replace(
                known,
                name=wanted.name or known.name,
                tenant=wanted.tenant or known.tenant,
                properties=dict(wanted.properties),
                is_discovered=False,
            ),
        )
        if adopted is None:
            raise RetryableError(f"{table} was unregistered meanwhile; try again")
        return adopted


def _newest(before: tuple[TableRef, int | None] | None, version: int | None) -> int | None:
    if before is None:
        return version
    return None if before[1] is None or version is None else max(before[1], version)
