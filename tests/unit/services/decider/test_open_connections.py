"""Connections are bounded; who waits longest without a call gives way, and one address cannot take all."""

from dataclasses import dataclass

import pytest

from services.decider.open_connections import OpenConnections, is_one_of


@dataclass(eq=False, slots=True)
class Conn:
    """A connection of a client."""

    address: str = "192.0.2.1"
    is_waiting: bool = True
    is_open: bool = True

    def abort(self) -> None:
        self.is_open = False


def taken(connections: OpenConnections, *wanted: Conn) -> list[bool]:
    return [connections.add(one) for one in wanted]


def test_at_the_limit_the_one_that_waits_longest_gives_way() -> None:
    connections = OpenConnections(4)
    held = [Conn(f"192.0.2.{number}") for number in range(4)]
    assert taken(connections, *held) == [True] * 4
    connections.begins_call(held[0])
    assert taken(connections, Conn("192.0.2.9")) == [True]
    assert [one.is_open for one in held] == [True, False, True, True]
    assert len(connections) == 4


def test_a_connection_whose_call_is_in_progress_never_gives_way() -> None:
    connections = OpenConnections(2)
    busy = [Conn(f"192.0.2.{number}", is_waiting=False) for number in range(2)]
    assert taken(connections, *busy, Conn("192.0.2.9")) == [True, True, False]
    assert all(one.is_open for one in busy)


def test_an_address_with_half_of_all_displaces_its_own_and_leaves_the_others_alone() -> None:
    connections = OpenConnections(8)
    others = [Conn("198.51.100.1") for _ in range(3)]
    own = [Conn() for _ in range(20)]
    taken(connections, *others, *own)
    assert all(one.is_open for one in others)
    assert [one.is_open for one in own] == [False] * 16 + [True] * 4


def test_a_trusted_proxy_may_have_all_because_many_are_behind_it() -> None:
    connections = OpenConnections(8, is_one_of(("192.0.2.0/24",)))
    own = [Conn() for _ in range(8)]
    assert taken(connections, *own) == [True] * 8
    assert all(one.is_open for one in own)


def test_a_closed_connection_leaves_room_and_may_be_closed_twice() -> None:
    connections = OpenConnections(2)
    first = Conn()
    taken(connections, first)
    connections.remove(first)
    connections.remove(first)
    connections.begins_call(first)
    assert len(connections) == 0
    assert taken(connections, Conn()) == [True]


@pytest.mark.parametrize(
    ("address", "expected"), [("10.1.2.3", True), ("11.0.0.1", False), ("::1", True), ("", False), ("10.1", False)]
)
def test_a_proxy_is_known_by_its_address_or_network(address: str, expected: bool) -> None:
    assert is_one_of(("10.0.0.0/8", "::1"))(address) is expected
