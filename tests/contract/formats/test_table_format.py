"""What the decider takes for granted of a table format; each format passes it before its tables are decided on."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest

from decider.formats.table_format import TableReader
from shared.errors import InvalidInput, NoTable
from shared.formats.registry import support_of
from shared.jobs.payload import VACUUM
from shared.layout.upkeep import UPKEEP
from shared.refusals import Refusal
from shared.table import BEFORE_FIRST, Commit, FileKey, Position, Snapshot, TableMetadata
from tests.contract.formats.worlds import WORLDS, FormatWorld, access

FIRST, SECOND = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
"""Ids of two tables, in the form that every format accepts."""

T = TypeVar("T")


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> FormatWorld:
    """A table of every format, with a history: created, written to, deleted from, rewritten by us, written to."""
    path = tmp_path / "lake" / "t"
    path.mkdir(parents=True)
    made = WORLDS[request.param](path)
    made.create(FIRST, {"lakewright.enabled": "true"})
    made.append([100, 200, 300])
    made.append([400])
    made.delete()
    made.rewrite("job-1", 7)
    made.append([500, 600])
    return made


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def opened(world: FormatWorld) -> TableReader:
    return world.format.open(world.path.as_uri())


async def collected(changes: AsyncGenerator[Commit, None]) -> list[Commit]:
    return [commit async for commit in changes]


def commits(
    world: FormatWorld,
    after: Position = BEFORE_FIRST,
    until: int | None = None,
    metadata: TableMetadata | None = None,
) -> list[Commit]:
    metadata = metadata or run(opened(world).snapshot()).metadata
    return run(collected(opened(world).changes(after, metadata, until=until)))


def snapshot(world: FormatWorld, at: Position | None = None) -> Snapshot:
    return run(opened(world).snapshot(at))


def test_a_table_is_found_by_its_metadata_and_not_by_a_name(world: FormatWorld, tmp_path: Path) -> None:
    place = access().reader(world.path.parent.as_uri())
    (world.path.parent / "empty" / world.folder).mkdir(parents=True)
    assert run(world.format.probe(place, "t"))
    assert not run(world.format.probe(place, "empty"))
    assert not run(world.format.probe(place, "nothing"))
    assert run(world.format.probe(access().reader(world.path.as_uri())))
    others = [made(tmp_path / "other").format for made in WORLDS.values()]
    assert not any(run(other.probe(place, "t")) for other in others if other.name != world.format.name)


def test_a_probe_costs_one_request(world: FormatWorld) -> None:
    storage = access()
    run(world.format.probe(storage.reader(world.path.as_uri())))
    assert sum(storage.meter.counts.values()) == 1


def test_a_place_without_a_table_is_no_table(world: FormatWorld) -> None:
    world.drop()
    world.path.mkdir(exist_ok=True)
    with pytest.raises(NoTable):
        snapshot(world)
    with pytest.raises(NoTable):
        run(world.format.rewrites(world.path.as_uri()).page(limit=1))


def test_metadata_names_the_format_that_decoded_it(world: FormatWorld) -> None:
    found = snapshot(world).metadata
    assert (found.format, found.table_uuid, found.configuration) == (
        world.format.name,
        FIRST,
        {"lakewright.enabled": "true"},
    )


def test_positions_are_totally_ordered_and_end_at_the_snapshot(world: FormatWorld) -> None:
    found = [commit.position for commit in commits(world)]
    assert found == sorted(found, key=lambda one: one.version)
    assert all(one < other for one, other in pairwise(found))
    assert all(one > BEFORE_FIRST for one in found)
    assert snapshot(world).position == found[-1]
    assert all(one.digest for one in found)


def test_changes_lead_from_any_position_to_the_snapshot_of_any_later_one(world: FormatWorld) -> None:
    found = commits(world)
    for start, commit in enumerate(found):
        live = {file.key: file for file in snapshot(world, commit.position).files}
        for later in commits(world, commit.position):
            for gone in later.removed:
                assert live.pop(gone.key).size_bytes == gone.size_bytes
            live |= {file.key: file for file in later.added}
            assert live.keys() == {file.key for file in snapshot(world, later.position).files}
        assert len(commits(world, commit.position)) == len(found) - start - 1


def test_changes_reach_a_version_that_no_commit_has_with_the_next_one(world: FormatWorld) -> None:
    """Versions may have gaps, and an event may name any: a reader that stayed before it would ask again and again."""
    found = commits(world)
    for before, after in pairwise(found):
        if after.version > before.version + 1:
            assert commits(world, before.position, until=before.version + 1) == [after]


def test_changes_end_where_they_are_asked_to_and_at_the_newest_commit(world: FormatWorld) -> None:
    found = commits(world)
    assert commits(world, found[0].position, until=found[2].version) == found[1:3]
    assert commits(world, found[1].position, until=found[1].version) == []
    assert commits(world, found[-1].position) == []
    assert run(opened(world).end_of_history(found[-1].position)).is_end


def test_a_commit_after_the_end_is_found_from_the_last_position(world: FormatWorld) -> None:
    last = commits(world)[-1].position
    world.append([700])
    end = run(opened(world).end_of_history(last))
    assert (end.is_end, end.lost) == (False, "")
    (new,) = commits(world, last)
    assert [file.size_bytes for file in new.added] == [700]
    assert last < new.position


def test_a_table_made_again_does_not_go_through_the_positions_of_the_one_before(world: FormatWorld) -> None:
    before = [commit.position for commit in commits(world)]
    assert all(run(opened(world).contains(position)) for position in before)
    world.drop()
    world.path.mkdir(exist_ok=True)
    world.create(SECOND)
    while len(commits(world)) < len(before):
        world.append([1])
    again = [commit.position for commit in commits(world)]
    assert [one.version for one in again] == [one.version for one in before]
    assert not any(run(opened(world).contains(position)) for position in before)
    assert snapshot(world).metadata.table_uuid == SECOND


def test_lost_commits_are_reported_to_be_lost_and_never_skipped(world: FormatWorld) -> None:
    found = commits(world)
    metadata = snapshot(world).metadata
    world.lose(3)
    first = found[0].position
    assert run(collected(opened(world).changes(first, metadata))) == []
    end = run(opened(world).end_of_history(first))
    assert (end.is_end, bool(end.lost)) == (False, True)
    kept = run(opened(world).retained())
    assert [one.version for one in kept.positions] == [one.version for one in found[3:]]
    assert not kept.is_whole
    again = run(collected(opened(world).changes(found[2].position, metadata)))
    # The tags of a file may be lost with the commit that added it.
    assert [(one.position, one.added) for one in again] == [(one.position, one.added) for one in found[3:]]
    assert [{file.key for file in one.removed} for one in again] == [{f.key for f in one.removed} for one in found[3:]]


def test_what_is_retained_is_the_whole_history_of_a_young_table(world: FormatWorld) -> None:
    kept = run(opened(world).retained())
    assert [one.version for one in kept.positions] == [commit.version for commit in commits(world)]
    assert (kept.is_whole, kept.missing) == (True, None)


def test_our_own_commits_say_so_and_change_no_data(world: FormatWorld) -> None:
    ours = [commit for commit in commits(world) if commit.origin is not None]
    assert [(one.origin.job, one.origin.token, one.data_change) for one in ours if one.origin] == [("job-1", 7, False)]
    assert sum(file.size_bytes for file in ours[0].added) == sum(file.size_bytes or 0 for file in ours[0].removed)
    assert all(one.data_change for one in commits(world) if one.added and one.origin is None)


def test_a_table_that_must_not_be_rewritten_is_refused_at_once(world: FormatWorld) -> None:
    free = snapshot(world)
    assert free.refusal is None
    last = commits(world)[-1].position
    world.configure(world.frozen)
    frozen = snapshot(world)
    assert isinstance(frozen.refusal, Refusal)
    assert frozen.refusal.message
    assert opened(world).refusal(frozen.metadata, frozen.protocol) == frozen.refusal
    (changed,) = commits(world, last, metadata=free.metadata)
    assert last < changed.position
    assert changed.metadata is not None
    assert opened(world).refusal(changed.metadata, frozen.protocol) == frozen.refusal
    world.configure({})
    assert snapshot(world).refusal is None


def test_our_rewrites_are_listed_newest_first_and_by_pages(world: FormatWorld) -> None:
    world.append([900])
    world.rewrite("job-2", 8)
    found = commits(world)
    own = [commit for commit in found if commit.origin is not None]

    def page(**asked: Any) -> Any:
        return run(world.format.rewrites(world.path.as_uri()).page(**asked))

    events = page(limit=9).events
    assert [one.version for one in events] == [one.version for one in reversed(own)]
    assert [one.mark.origin.job for one in events] == ["job-2", "job-1"]
    assert (events[0].inputs.num_files, events[0].outputs.num_files) == (2, 1)
    first = page(limit=1)
    assert first.before is not None
    second = page(limit=1, before=first.before)
    assert [one.version for one in (*first.events, *second.events)] == [one.version for one in events]
    assert page(limit=9, before=own[0].version).events == ()


def test_totals_are_true_or_absent(world: FormatWorld) -> None:
    newest = snapshot(world)
    reported = run(opened(world).totals(newest.position))
    counted = (len(newest.files), sum(file.size_bytes for file in newest.files))
    assert reported is None or (reported.files, reported.bytes) == counted


def test_every_live_file_is_listed_once(world: FormatWorld) -> None:
    keys: list[FileKey] = [file.key for file in snapshot(world).files]
    assert len(keys) == len(set(keys)) > 1


def test_readers_share_nothing(world: FormatWorld) -> None:
    """Any number of deciders read one table, each with readers of its own, and agree."""
    one, other = opened(world), opened(world)
    before = run(one.snapshot())
    world.append([111])
    assert run(one.snapshot()) == run(other.snapshot()) != before


def test_ranges_of_a_column_are_read_or_refused_and_never_made_up(world: FormatWorld) -> None:
    """The tables of this suite have no such column."""
    with pytest.raises(InvalidInput, match="absent"):
        run(opened(world).snapshot_with_ranges("absent"))


def test_upkeep_is_read_where_the_format_has_it_and_for_the_kinds_that_are_asked_for(world: FormatWorld) -> None:
    reader, kinds = opened(world), [one.kind for one in UPKEEP]
    lacks = support_of(world.format.name).lacks
    found = run(reader.upkeep([VACUUM, *kinds]))
    assert found.keys() <= {*kinds} - lacks.keys()
    assert bool(found) is not bool(lacks)
    assert all(run(reader.upkeep([kind])) == {kind: one} for kind, one in found.items())
    assert all(0 <= one.excess <= one.count for one in found.values())
    assert run(reader.upkeep([VACUUM])) == {}
