"""Copies of the registry merge to one result in any order, and a table is read once for all that waited."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from decider.events.refresh_queue import RefreshQueue
from decider.store.registry.registry_document import (
    Entries,
    RegistryDocument,
    SavedEntry,
    decode,
    encode,
    merge,
    resolve_names,
)
from shared.table import TableId, TableRef
from tests.support.refreshing import RecordedRefreshes, refreshing
from tests.support.time_limits import scaled

IDS = ("a", "b", "c")


def entry_of(table: str) -> st.SearchStrategy[SavedEntry]:
    values = st.builds(
        lambda name, tenant: {"id": table, "name": name, "tenant": tenant},
        st.sampled_from(["sales", "orders", table]),
        st.sampled_from(["x", "y"]),
    )
    return st.builds(SavedEntry, st.integers(0, 4), st.none() | values)


COPIES: st.SearchStrategy[Entries] = st.fixed_dictionaries({}, optional={f"table/{one}": entry_of(one) for one in IDS})


@given(COPIES, COPIES, COPIES)
def test_merging_is_independent_of_order_and_repetition(one: Entries, two: Entries, three: Entries) -> None:
    merged = merge(merge(one, two), three)
    assert merged == merge(three, merge(two, one)) == merge(one, merge(two, three))
    assert merge(merged, one) == merged == merge(merged, merged)


@given(COPIES, COPIES)
def test_the_later_change_of_each_entry_wins_and_no_entry_is_lost(one: Entries, two: Entries) -> None:
    merged = merge(one, two)
    assert merged.keys() == one.keys() | two.keys()
    for key, entry in merged.items():
        found = [copy[key] for copy in (one, two) if key in copy]
        assert entry in found
        assert entry.changed_ms == max(each.changed_ms for each in found)


@given(COPIES)
def test_every_table_has_a_name_of_its_own_and_one_of_those_with_a_name_keeps_it(copy: Entries) -> None:
    resolved = resolve_names(copy)
    names = [entry.value["name"] for entry in resolved.values() if entry.value]
    assert len(names) == len(set(names))
    assert set(names) >= {entry.value["name"] for entry in copy.values() if entry.value}
    assert resolve_names(resolved) == resolved
    assert all(resolved[key].value == entry.value or resolved[key].rank > entry.rank for key, entry in copy.items())


@given(COPIES, COPIES)
def test_two_deciders_that_exchange_what_they_resolved_agree_on_every_name(one: Entries, two: Entries) -> None:
    """Each resolves names in what it knows; merged again and again, both have the same tables."""
    first, second = resolve_names(merge(one, two)), resolve_names(two)
    for _ in range(len(IDS) + 1):
        first, second = resolve_names(merge(first, second)), resolve_names(merge(second, first))
    assert first == second


@given(COPIES, st.integers(0, 10**9))
def test_a_document_is_read_as_it_was_written(copy: Entries, generation: int) -> None:
    document = RegistryDocument(generation, copy)
    assert decode(encode(document), "here") == document


A, B = (TableRef(TableId(name), name, f"file:///{name}") for name in ("a", "b"))


SWEPT = -1
"""In place of a version: the sweep asks for the table."""


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.none() | st.integers(SWEPT, 9)), max_size=20))
def test_in_any_order_each_table_is_read_once_for_all_that_was_asked(
    events: list[tuple[TableRef, int | None]],
) -> None:
    async def story() -> None:
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        inbox = RefreshQueue(refreshes, workers=2)
        for table, version in events:
            await (inbox.put_swept(table) if version == SWEPT else inbox.put(table, version))
        work = asyncio.create_task(refreshing(inbox))
        await inbox.drained()
        work.cancel()
        asked = {table.name: [None if v == SWEPT else v for t, v in events if t is table] for table in (A, B)}
        assert sorted(refreshes.seen, key=lambda refresh: refresh[0]) == [
            (name, None if None in versions else max(v for v in versions if v is not None))
            for name, versions in asked.items()
            if versions
        ]

    asyncio.run(asyncio.wait_for(story(), scaled(20)))
