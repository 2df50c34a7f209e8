"""Positions are ordered along the chain of main, and one outside of it is never taken for one on it."""

from dataclasses import replace

import pytest

from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.positions import (
    chain_versions,
    digest_snapshot,
    newest_position,
    position_digest,
    positions,
    snapshots_after,
)
from shared.table import BEFORE_FIRST, Position, TableMetadata, TableProtocol


def table(*chain: tuple[int, int | None, int], current: int | None = None, updated_ms: int = 0) -> TableHead:
    """Return a table of snapshots, each with id, parent and time; the last one is current unless one is named."""
    snapshots = {one: SnapshotRecord(one, parent, 0, at, "m", "append") for one, parent, at in chain}
    newest = current or (chain[-1][0] if chain else None)
    updated_ms = updated_ms or (snapshots[newest].timestamp_ms if newest in snapshots else 1)
    return TableHead("file:///t", TableMetadata("u-1"), TableProtocol(2, 2), updated_ms, newest, {}, snapshots, {})


LINE = table((1, None, 100), (2, 1, 200), (3, 2, 300))


def at(snapshot: int | None, version: int = 0) -> Position:
    return Position(version, position_digest("u-1", snapshot))


def test_versions_are_times_and_grow_although_clocks_differ() -> None:
    assert chain_versions([100, 200, 150, 150, 400]) == [100, 200, 201, 202, 400]
    assert chain_versions([]) == []
    assert [one.version for one in positions(LINE).values()] == [100, 200, 300]


def test_a_digest_names_its_snapshot_and_its_table() -> None:
    assert digest_snapshot(position_digest("u-1", 7), "u-1") == 7
    assert digest_snapshot(position_digest("u-1", None), "u-1") is None
    for other in ("u-2.7", "u-1", "", "u-1.x"):
        with pytest.raises(ValueError, match=r"position|invalid"):
            digest_snapshot(other, "u-1")


def test_what_follows_a_position_are_the_snapshots_after_its_own() -> None:
    assert [one.id for one in snapshots_after(LINE, at(1)) or ()] == [2, 3]
    assert snapshots_after(LINE, at(3)) == []
    assert [one.id for one in snapshots_after(LINE, at(None)) or ()] == [1, 2, 3]
    assert [one.id for one in snapshots_after(LINE, BEFORE_FIRST) or ()] == [1, 2, 3]


def test_the_parent_of_the_oldest_retained_snapshot_is_the_oldest_position() -> None:
    expired = table((2, 1, 200), (3, 2, 300))
    assert [one.id for one in snapshots_after(expired, at(1)) or ()] == [2, 3]
    assert snapshots_after(expired, at(None)) is None
    assert snapshots_after(expired, BEFORE_FIRST) is None
    assert snapshots_after(table((3, 2, 300)), at(1)) is None


def test_a_position_that_main_no_longer_leads_through_has_nothing_after_it() -> None:
    rolled_back = table((1, None, 100), (2, 1, 200), (3, 1, 300))
    assert snapshots_after(rolled_back, at(2)) is None
    assert snapshots_after(LINE, Position(100, "u-2.1")) is None
    assert snapshots_after(table(), at(1)) is None
    assert snapshots_after(table(), at(None)) == []


def test_the_newest_position_moves_with_the_metadata_too() -> None:
    assert newest_position(LINE) == at(3, 300)
    assert newest_position(replace(LINE, updated_ms=350)) == at(3, 350)
    assert newest_position(replace(LINE, updated_ms=250)) == at(3, 301)
    assert newest_position(table(updated_ms=9)) == at(None, 9)
    assert newest_position(table((1, None, 5), current=8, updated_ms=9)) == at(8, 9)
