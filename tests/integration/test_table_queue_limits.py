"""Queue limits that a table's policy set are removed with it, whatever happens in between."""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from decider.store.tables import table_queue_limits
from decider.store.tables.ingest import ingest
from decider.store.tables.table_queue_limits import apply_queue_limits
from decider.tracking import rebuild
from decider.tracking.table_context import FollowedTable
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings

pytestmark = pytest.mark.redis

LIMIT = "lakewright.max-concurrent-jobs"
LIMITS = {LIMIT: "1", "lakewright.weight": "2"}
ONE = {**LIMITS, "lakewright.fan-in": "4"}
"""Limits, and a value whose change has the table counted again."""


@pytest.fixture
def decider(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveDecider]:
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", -1)
    with LiveDecider(decider_settings(redis_url)) as live:
        yield live


def queue_limits(decider: LiveDecider) -> list[str]:
    return sorted(
        name.partition(":")[0]
        for name in decider.run(decider.services.queue.admin.weights_and_limits())
        if "table" in name
    )


def say(decider: LiveDecider, name: str, stated: dict[str, str]) -> None:
    assert decider.client.patch(f"/v1/tables/{name}", json={"properties": stated}).status_code == 200


def set_properties(table: WrittenTable, stated: dict[str, str]) -> None:
    DeltaTable(str(table.path)).alter.set_table_properties(stated, raise_if_not_exists=False)


async def dies(*_: Any, **__: Any) -> bool:
    """What a process does that ends before the cursor moves."""
    raise RuntimeError("the process ended")


def test_a_table_made_again_where_another_one_was_has_none_of_its_queue_limits(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders")
    name = decider.register(table.path)
    say(decider, name, ONE)
    decider.drain()
    assert queue_limits(decider) == ["limit", "weight"]
    shutil.rmtree(table.path)
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["refusal"]["missing"] is True
    assert queue_limits(decider) == []


def cut_short(decider: LiveDecider, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Register a table whose queue limits a rebuild has set before it died, and return its name."""
    name = decider.register(WrittenTable(folder / "orders").path)
    monkeypatch.setattr(rebuild, "ingest", dies)
    say(decider, name, ONE)
    decider.drain()
    assert queue_limits(decider) == ["limit", "weight"]
    return name


def test_a_queue_limit_set_by_a_rebuild_that_a_crash_cut_short_is_taken_back(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = cut_short(decider, tmp_path, monkeypatch)
    monkeypatch.setattr(rebuild, "ingest", ingest)
    say(decider, name, {})
    decider.drain()
    assert queue_limits(decider) == []


def test_a_change_of_limits_alone_counts_no_table_again_and_is_finished_after_a_crash_or_taken_back(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = WrittenTable(tmp_path / "orders")
    name = decider.register(table.path)
    decider.drain()
    set_properties(table, LIMITS)
    with monkeypatch.context() as dying:
        dying.setattr(table_queue_limits, "apply_queue_limits", dies)
        decider.sweep()
    assert queue_limits(decider) == []
    decider.sweep()
    assert queue_limits(decider) == ["limit", "weight"]
    with monkeypatch.context() as dying:
        dying.setattr(table_queue_limits, "apply_queue_limits", applied_by_a_process_that_dies)
        set_properties(table, {LIMIT: "off", "lakewright.weight": "1"})
        decider.sweep()
    assert queue_limits(decider) == []
    set_properties(table, LIMITS)
    decider.sweep()
    assert queue_limits(decider) == ["limit", "weight"]
    assert decider.get(f"/v1/tables/{name}")["state"]["rebuilds"] == 0


async def applied_by_a_process_that_dies(*args: Any) -> None:
    await apply_queue_limits(*args)
    raise RuntimeError("the process ended")


def test_who_loses_the_race_for_the_cursor_leaves_the_queue_limits_as_the_winner_set_them(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a rebuild sets its limits, another decider sees the properties removed, and moves the cursor first."""
    table = WrittenTable(tmp_path / "orders")
    name = decider.register(table.path)
    known = decider.run(decider.services.tables.registry.find(name))
    assert known is not None
    follower = copy(decider.services.requests.tracker)
    follower._followed = defaultdict(FollowedTable)  # As in another process.
    races: list[str] = []

    async def late(*args: Any) -> None:
        if not races:
            races.append(known.id)
            set_properties(table, {LIMIT: "off", "lakewright.weight": "1"})
            await follower.follow(known)
        await apply_queue_limits(*args)
        races.append(args[-1])

    set_properties(table, ONE)
    monkeypatch.setattr(rebuild, "apply_queue_limits", late)
    decider.sweep()
    assert races == [known.id, "", "2|1", ""]
    assert queue_limits(decider) == []


def test_forgetting_a_table_lifts_what_a_cut_short_rebuild_had_set(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = cut_short(decider, tmp_path, monkeypatch)
    assert decider.client.delete(f"/v1/tables/{name}").status_code == 204
    assert queue_limits(decider) == []
