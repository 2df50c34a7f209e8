"""Intake: a hint becomes a known table worth looking at, or a counted reason why it does not.

Hints are never trusted beyond that. A table is known by name or location; an unknown one is registered only if it
lies under an allowed root and its log is there, and only so many places are looked at for one delivery: whoever can
send events can neither fill the registry nor have us read without end.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from decider.events.default_names import FROM_PATH, name_at, tenant_at
from decider.events.refresh_queue import RefreshQueue
from decider.events.table_hint import TableHint
from decider.store.table_registry import TableRegistry
from shared.boundary import Boundary
from shared.errors import InvalidInput, LakewrightError, Unsupported
from shared.locations import canonical_location, is_under, table_id
from shared.table import TableId, TableRef

NEW_PLACES = 64
"""Unknown places that one delivery may have us look at, a request each; more wait for their next event."""

LOOKS_AT_ONCE = 8
"""Such requests at once over all deliveries, so that strangers' tables do not hold up the known ones."""

MAX_LOOKS = 256
"""Such requests in progress or waiting over all deliveries: at a store that takes a second each, half a minute's."""

log = structlog.get_logger()


class TableProbe(Protocol):
    """Tells where tables are below a root."""

    async def has_table(self, path: str) -> bool:
        """Say whether there is a table at a path below the root."""

    def path_of(self, location: str) -> str:
        """Return the path below the root of a canonical location that lies there."""


@dataclass(frozen=True, slots=True)
class AllowedRoots:
    """Where tables may be taken from: the allowed roots, how one is opened, and whose tables lie there.

    `tenant` is the tenant of tables that nobody gave one, or `path`: the first folder below the root.
    """

    roots: Sequence[str] = ()
    open_lake: Callable[[str], TableProbe] | None = None
    tenant: str = FROM_PATH
    boundary: Boundary = field(default_factory=Boundary)

    def root_of(self, location: str) -> str | None:
        """Return the allowed root that a location lies under."""
        return next((root for root in self.roots if is_under(location, [root])), None)


@dataclass(frozen=True, slots=True)
class Registration:
    """What whoever registers a table says about it; `is_found`: nobody did, discovery or an event came upon it."""

    name: str | None = None
    tenant: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    is_found: bool = False


@dataclass(slots=True)
class _EventBatch:
    """What has been made of one delivery so far: the known tables by id and name, and why places led to none."""

    by_place: Mapping[str, TableId]
    by_name: Mapping[str, TableRef]
    known: dict[TableId, TableRef]
    refused: dict[str, str] = field(default_factory=dict)

    def table(self, hint: TableHint) -> TableRef | None:
        """Return the table that a hint means, if it is known by now."""
        if hint.location is None:
            return self.by_name.get(hint.name or "")
        return self.known.get(self.by_place[hint.location])

    def why_not(self, hint: TableHint) -> str:
        """Return why a hint led to no table."""
        return "unknown_table" if hint.location is None else self.refused.get(hint.location, "")


class EventResolver:
    """Resolves hints to tables and puts these into the inbox."""

    def __init__(self, registry: TableRegistry, inbox: RefreshQueue, places: AllowedRoots | None = None) -> None:
        self._registry = registry
        self._inbox = inbox
        self._places = places or AllowedRoots()
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)
        self.looking = 0
        self._lakes: dict[str, TableProbe] = {}

    async def take(self, hints: Iterable[TableHint]) -> tuple[int, Counter[str]]:
        """Take hints; return how many led to a table, and counts of the reasons why the others did not."""
        wanted = tuple(hints)
        by_place = {hint.location: table_id(hint.location) for hint in wanted if hint.location is not None}
        names = {hint.name for hint in wanted if hint.location is None and hint.name}
        by_name = await self._registry.named(names)
        delivery = _EventBatch(by_place, by_name, await self._registry.many(set(by_place.values())))
        # The known ones first: to look at strangers' places may take long.
        await self._ask(wanted, delivery)
        strangers = [place for place, identity in by_place.items() if identity not in delivery.known]
        if strangers:
            await self._meet(strangers, delivery)
            new = set(strangers)
            await self._ask([hint for hint in wanted if hint.location in new], delivery)
        ignored = Counter(delivery.why_not(hint) for hint in wanted if delivery.table(hint) is None)
        return len(wanted) - ignored.total(), ignored

    async def _ask(self, hints: Iterable[TableHint], delivery: _EventBatch) -> None:
        """Put the tables of hints that are known into the inbox, each once."""
        asked: dict[TableId, tuple[TableRef, int | None]] = {}
        for hint in hints:
            table = delivery.table(hint)
            if table is not None:
                asked[table.id] = (table, _newest(asked.get(table.id), hint.version))
        for table, version in asked.values():
            await self._inbox.put(table, version)

    async def _meet(self, strangers: Sequence[str], delivery: _EventBatch) -> None:
        """Register the places that are tables, and note of the others why they are none."""
        below: list[str] = []
        for place in strangers:
            if self._places.root_of(place) is None:
                delivery.refused[place] = "outside_allowed_roots"
            elif len(below) >= min(NEW_PLACES, MAX_LOOKS - self.looking):
                delivery.refused[place] = "unknown_table_limit"
            else:
                below.append(place)
        self.looking += len(below)
        try:
            outcomes = await asyncio.gather(*map(self._is_table, below))
        finally:
            self.looking -= len(below)
        for place, outcome in zip(below, outcomes, strict=True):
            if outcome:
                delivery.refused[place] = outcome
            else:
                table = await self.adopt(place)
                delivery.known[table.id] = table

    async def _is_table(self, location: str) -> str:
        """Look for a log; return why the place is not taken, nothing if it is."""
        root = self._places.root_of(location)
        if self._places.open_lake is None or root is None:
            return ""
        async with self._looks:
            try:
                lake = self._lakes.get(root) or self._places.open_lake(root)
                self._lakes[root] = lake
                return "" if await lake.has_table(lake.path_of(location)) else "table_not_found"
            except Unsupported as problem:
                log.warning("location_rejected", location=location, error=str(problem))
                return "outside_allowed_roots"
            except LakewrightError as problem:
                log.warning("location_probe_failed", location=location, error=str(problem))
                return "location_unreadable"

    async def discovered(self, location: str) -> bool:
        """Register a table that was found below a root; return whether it was new."""
        if await self._registry.get(table_id(location)) is not None:
            return False
        await self.adopt(location)
        return True

    async def adopt(self, location: str) -> TableRef:
        """Register a table that was found at a place, named by the place; it is known to lie below a root."""
        name = name_at(location, self._places.roots)
        try:
            return await self._enter(location, Registration(name, is_found=True))
        except InvalidInput:
            # Another table has that name already; the id belongs to nobody else.
            return await self._enter(location, Registration(is_found=True))

    async def register(self, location: str, wanted: Registration | None = None) -> TableRef:
        """Register a table and look at it; returns what is known if it was registered before.

        A table that was only found so far gets the name, tenant and properties that are wanted. Raises InvalidInput for
        a location outside the allowed roots, where there are any, links resolved: whoever may call us must not make us
        read with our credentials where we were not told to.
        """
        canonical = canonical_location(location)
        roots = self._places.roots
        if roots and not is_under(canonical, roots):
            raise InvalidInput(
                f"{canonical} lies outside the allowed roots; add its root to LAKEWRIGHT_ROOTS",
                field="location",
                allowed=", ".join(roots),
            )
        try:
            self._places.boundary.check_table(canonical)
        except Unsupported as problem:
            raise InvalidInput(str(problem), field="location", allowed=", ".join(roots)) from problem
        return await self._enter(canonical, wanted or Registration())

    async def _enter(self, location: str, wanted: Registration) -> TableRef:
        canonical = canonical_location(location)
        identity = table_id(canonical)
        tenant = wanted.tenant or tenant_at(canonical, self._places.roots, self._places.tenant)
        said = dict(wanted.properties)
        table = TableRef(identity, wanted.name or identity, canonical, tenant, said, is_found=wanted.is_found)
        known = await self._registry.get(identity)
        if known is None and not await self._registry.register(table):
            known = await self._registry.get(identity)
        if known is not None and (wanted.is_found or not known.is_found):
            return known
        if known is not None:
            name, tenant = wanted.name or known.name, wanted.tenant or known.tenant
            table = replace(known, name=name, tenant=tenant, properties=said, is_found=False)
            await self._registry.change(known, table)
        await self._inbox.put(table, None)
        log.info("table_registered", table=table.name, location=canonical)
        return table


def _newest(before: tuple[TableRef, int | None] | None, version: int | None) -> int | None:
    if before is None:
        return version
    return None if before[1] is None or version is None else max(before[1], version)
