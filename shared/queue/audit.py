"""Audit: every index, count and path is computed again from the jobs, and differences are repaired, a page per call.

Jobs are found by SCAN from outside, because a script must not search for keys; each page is a command of its own, so
that the server is never blocked for long. On a consistent queue nothing is written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shared.queue import decode, keys
from shared.queue.command import Command
from shared.queue.keys import KeyKind
from shared.queue.limits import require_count
from shared.queue.lua_library import ScriptName
from shared.queue.model import JobState, Scope

PAGE = 100
"""Jobs or entries per call."""

LOST_LEASE_MS = 60_000
"""A running job whose lease was lost gets a new one of this length: its actor may still be alive and beat."""

MAX_LEASES = 10_000
"""Leases that one script counts, some 10 ms; a queue with more running jobs has its counts left alone."""


@dataclass(frozen=True, slots=True)
class PageAudit:
    """Entries that remain on a page, which is where the next one begins, and the number of repairs."""

    kept: int
    repaired: int


def jobs(queue: str, ids: Sequence[str]) -> Command[int]:
    """Put each job into the one index that its state names; returns the number of repairs."""
    require_count(len(ids), "jobs", PAGE)
    return Command(ScriptName.AUDIT_JOBS, (keys.prefix(queue),), (LOST_LEASE_MS, *ids), int)


def flow(queue: str, name: str, which: str, offset: int) -> Command[PageAudit]:
    """Drop from a flow (`band|tenant|table`) every entry that is no `queued` job of it, or none set `aside`."""
    band, tenant, table = name.split("|")
    return Command(ScriptName.AUDIT_FLOW, (keys.prefix(queue),), (band, tenant, table, which, offset), _page)


def node(queue: str, name: str, which: str, offset: int) -> Command[PageAudit]:
    """Put the `ready`, `held` or `aside` children of a node of the tree where the nodes below them require."""
    return Command(ScriptName.AUDIT_NODE, (keys.prefix(queue),), (name, which, offset), _page)


def index(queue: str, state: JobState, offset: int) -> Command[PageAudit]:
    """Drop from a state's index every job that is not in that state."""
    return Command(ScriptName.AUDIT_INDEX, (keys.prefix(queue),), (state.value, offset), _page)


def in_flight(queue: str) -> Command[int]:
    """Count the running jobs again; returns the number of counts repaired, -1 if there are too many."""
    return Command(ScriptName.AUDIT_IN_FLIGHT, (keys.prefix(queue),), (MAX_LEASES,), int)


def throttled(queue: str, scope: Scope, name: str) -> Command[int]:
    """Readmit members that are throttled without a reason; returns the number of repairs."""
    return Command(ScriptName.AUDIT_THROTTLED, (keys.prefix(queue),), (scope.value, name), int)


def _page(raw: Any) -> PageAudit:
    kept, repaired = raw
    return PageAudit(int(kept), int(repaired))


@dataclass(frozen=True, slots=True)
class AuditedKey:
    """One key of the queue that an audit goes through; `name` is what follows the kind."""

    kind: KeyKind
    name: str

    @property
    def is_throttled(self) -> bool:
        """True if it says who is parked, which is read last."""
        return self.kind is KeyKind.THROTTLED


def parse_key(queue: str, key: bytes | str) -> AuditedKey | None:
    """Read a key that SCAN returned; None if audits do not read such keys."""
    found = keys.kind_and_name(queue, decode.text(key))
    return AuditedKey(*found) if found else None


STATES = tuple(JobState)


def steps(queue: str, keys_found: Sequence[AuditedKey]) -> Iterator[Command[int] | Command[PageAudit]]:
    """Plan the calls for these keys, in the order in which they build on one another; `next_page` continues a page."""
    ids = [one.name for one in keys_found if one.kind is KeyKind.JOB]
    for first in range(0, len(ids), PAGE):
        yield jobs(queue, ids[first : first + PAGE])
    for one in keys_found:
        match one.kind:
            case KeyKind.FLOW:
                yield flow(queue, one.name, "queued", 0)
            case KeyKind.ASIDE_FLOW:
                yield flow(queue, one.name, "aside", 0)
            case KeyKind.READY:
                yield node(queue, one.name, "ready", 0)
            case KeyKind.HELD:
                yield node(queue, one.name, "held", 0)
            case KeyKind.ASIDE:
                yield node(queue, one.name, "aside", 0)


def final_steps(queue: str, keys_found: Sequence[AuditedKey]) -> Iterator[Command[int] | Command[PageAudit]]:
    """Plan the calls that depend on the other keys: the indexes of states, the running jobs, the throttled members."""
    for state in STATES:
        yield index(queue, state, 0)
    yield in_flight(queue)
    for one in keys_found:
        if one.is_throttled:
            level, _, name = one.name.partition("|")
            yield throttled(queue, Scope(level), name)


def next_page(previous: Command[Any], page: PageAudit) -> Command[PageAudit] | None:
    """Return the call for the next page, None if this was the last one."""
    if page.kept < PAGE:
        return None
    *head, offset = previous.args
    return Command(previous.script, previous.keys, (*head, int(offset) + page.kept), _page)
