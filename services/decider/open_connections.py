"""Connections are bounded below the limit of descriptors, and those that send no call cannot keep others out.

Where the limit is reached, a new connection displaces the one that has waited longest without a call in progress: an
honest client sends its head at once, and one that idles between calls connects again. So a crowd of half-open
connections displaces itself. One address has at most half of all; trusted proxies, behind which are many, are exempt.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from ipaddress import ip_address, ip_network
from typing import Protocol

ADDRESS_SHARE = 0.5
"""Share of all connections that one address may have: the other half is left to others while it fills its own."""


class Connection(Protocol):
    """One connection: its client's address, whether it waits for a call, and how it is closed at once."""

    @property
    def address(self) -> str: ...  # noqa: D102
    @property
    def is_waiting(self) -> bool: ...  # noqa: D102
    def abort(self) -> None: ...  # noqa: D102


def is_one_of(networks: Iterable[str]) -> Callable[[str], bool]:
    """Return a test whether an address belongs to one of these addresses or networks."""
    known = [ip_network(one) for one in networks]

    def test(address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in known)
        except ValueError:  # A Unix socket's peer has no address.
            return False

    return test


class OpenConnections:
    """The connections of one server, those that began a call last at the end; `limit` is their number."""

    def __init__(self, limit: int, is_trusted: Callable[[str], bool] = lambda _: False) -> None:
        self._limit = limit
        self._per_address = max(1, int(limit * ADDRESS_SHARE))
        self._is_trusted = is_trusted
        self._open: dict[Connection, None] = {}
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many connections are open."""
        return len(self._open)

    def add(self, new: Connection) -> bool:
        """Take a new connection, if need be in place of one that waits; False if there is no room for it."""
        is_crowded = self._counts[new.address] >= self._per_address and not self._is_trusted(new.address)
        if (is_crowded or len(self._open) >= self._limit) and not self._displace(new.address if is_crowded else None):
            return False
        self._open[new] = None
        self._counts[new.address] += 1
        return True

    def begins_call(self, one: Connection) -> None:
        """Record that a connection has sent the head of a call: it is the last to be displaced."""
        if one in self._open:
            del self._open[one]
            self._open[one] = None

    def remove(self, one: Connection) -> None:
        """Forget a connection that is closed."""
        if one in self._open:
            del self._open[one]
            self._counts[one.address] -= 1
            self._counts += Counter()

    def _displace(self, address: str | None) -> bool:
        """Close the connection that has waited longest, of one address or of all; False if none waits."""
        waiting = (one for one in self._open if one.is_waiting and address in (None, one.address))
        oldest = next(waiting, None)
        if oldest is None:
            return False
        self.remove(oldest)
        oldest.abort()
        return True
