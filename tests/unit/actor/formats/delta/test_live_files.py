"""An input is live only if nothing touched it since it was seen, and doubt sends the question to the snapshot."""

from dataclasses import replace

import pytest

from actor.formats.delta import live_files as live_module
from actor.formats.delta.live_files import LiveGroup, find_live, is_plain, resolve_live, still_live
from shared.table import PartitionColumn
from tests.support.fake_delta import FakeTable, group_of, live_group
from tests.support.fake_delta_table import add, remove, vector

COLUMNS = (PartitionColumn("p", "p", "string"),)


def table_of(*paths: str) -> FakeTable:
    table = FakeTable()
    table.commit(*map(add, paths))
    return table


def test_a_group_is_live_while_only_other_files_are_touched() -> None:
    table = table_of("a", "b")
    group = live_group(table, "a", "b")
    table.commit(add("c"))
    table.commit(remove("c"))
    assert still_live(table.log(), [group], at_version=2) == {group.group: True}
    assert still_live(table.log(), [group], at_version=0) == {group.group: True}


@pytest.mark.parametrize("touch", [remove("b"), add("b"), add("b", deletionVector=vector(1))])
def test_any_touch_of_an_input_makes_its_group_stale_and_no_other(touch: dict[str, object]) -> None:
    table = table_of("a", "b", "c", "d")
    groups = [live_group(table, "a", "b"), live_group(table, "c", "d")]
    table.commit(touch)
    assert still_live(table.log(), groups, at_version=1) == {groups[0].group: False, groups[1].group: True}


def test_a_touch_at_the_version_at_which_a_group_was_seen_is_no_touch_and_one_after_it_is() -> None:
    table = table_of("a", "b")
    first = live_group(table, "a")
    table.commit(add("c"))
    second = live_group(table, "c")
    assert second.version == 1
    assert still_live(table.log(), [first, second], at_version=1) == {first.group: True, second.group: True}
    table.commit(remove("c"))
    assert still_live(table.log(), [first, second], at_version=2) == {first.group: True, second.group: False}


def test_groups_seen_at_several_versions_are_judged_from_the_oldest_on() -> None:
    table = table_of("a", "b")
    first = live_group(table, "a")
    table.commit(remove("a"), add("c"))
    second = live_group(table, "c")
    assert still_live(table.log(), [second, first], at_version=1) == {first.group: False, second.group: True}


@pytest.mark.parametrize(("commits", "is_judged"), [(3, True), (4, False)])
def test_beyond_so_many_commits_nothing_is_judged_from_them(
    monkeypatch: pytest.MonkeyPatch, commits: int, is_judged: bool
) -> None:
    monkeypatch.setattr(live_module, "MAX_COMMITS_REPLAYED", 3)
    table = table_of("a")
    group = live_group(table, "a")
    for number in range(commits):
        table.commit(add(f"c{number}"))
    assert bool(still_live(table.log(), [group], at_version=table.version)) is is_judged


def test_a_version_before_the_one_that_was_seen_is_not_judged() -> None:
    table = table_of("a")
    table.commit(add("b"))
    assert still_live(table.log(), [live_group(table, "a")], at_version=0) == {}


@pytest.mark.parametrize("digest", [None, "another commit's"])
def test_a_group_whose_commit_was_undone_since_is_not_judged(digest: str | None) -> None:
    table = table_of("a", "b")
    group, undone = live_group(table, "a"), replace(live_group(table, "b"), digest=digest)
    assert still_live(table.log(), [group, undone], at_version=0) == {group.group: True}


def test_a_commit_made_again_under_the_same_number_is_noticed() -> None:
    table = table_of("a")
    group = live_group(table, "a")
    table.history[0] = [add("a", size=101)]
    table.commit(add("b"))
    assert still_live(table.log(), [group], at_version=1) == {}


@pytest.mark.parametrize("path", ["/lake/t/a", "file:/lake/t/a", "p=1//a", "./a", "p=1/../a", "s3://b/a"])
def test_a_path_with_several_spellings_is_left_to_the_snapshot(path: str) -> None:
    assert not is_plain(path)
    table = table_of("a", path)
    group, other = live_group(table, path), live_group(table, "a")
    assert still_live(table.log(), [group, other], at_version=0) == {other.group: True}
    mixed = live_group(table, "a", path)
    assert still_live(table.log(), [mixed], at_version=0) == {}, "one such path is enough"
    table.commit(remove(path))
    assert still_live(table.log(), [other], at_version=1) == {}, "whose file it touches is not known"


@pytest.mark.parametrize("path", ["a", "p=1/a.parquet", "p=a%20b/x", "p=Zürich/x", "_x/.y", "x.."])
def test_a_relative_path_without_dots_has_one_spelling(path: str) -> None:
    assert is_plain(path)


def test_a_group_is_found_in_a_snapshot_only_with_all_of_its_files_under_their_deletion_vectors() -> None:
    table = table_of("a", "b", "c")
    both, third = group_of(table, "a", "b"), group_of(table, "c")
    table.commit(remove("b"), add("b", deletionVector=vector(1)))
    log = table.log()
    found = find_live(log, log.snapshot(), [both, third], COLUMNS)
    assert [one.group for one in found] == [third]
    assert (found[0].version, found[0].digest) == (1, log.digest(1))
    again = group_of(table, "b", "a")
    (live,) = find_live(log, log.snapshot(), [again], COLUMNS)
    assert [logged.file.path for logged in live.inputs] == ["b", "a"], "in the group's order"


def known(*groups: LiveGroup) -> list[tuple[object, LiveGroup | None]]:
    return [(group.group, group) for group in groups]


def test_what_the_commits_show_is_resolved_without_listing_the_snapshot_and_moved_to_its_version() -> None:
    table = table_of("a", "b")
    first, second = live_group(table, "a"), live_group(table, "b")
    table.commit(remove("b"))
    table.listings = 0
    log = table.log()
    (live,) = resolve_live(log, log.snapshot(), known(first, second), COLUMNS)
    assert (live.group, live.version, live.digest, live.inputs) == (first.group, 1, log.digest(1), first.inputs)
    assert table.listings == 0


def test_what_the_commits_do_not_contain_is_found_and_the_order_is_kept() -> None:
    table = table_of("a", "b", "c")
    judged, undone = live_group(table, "b"), replace(live_group(table, "a"), digest="another commit's")
    log = table.log()
    unseen = group_of(table, "c")
    found = resolve_live(log, log.snapshot(), [(undone.group, undone), (judged.group, judged), (unseen, None)], COLUMNS)
    assert [live.group for live in found] == [undone.group, judged.group, unseen]
    assert [live.digest for live in found] == [log.digest(0)] * 3
    table.commit(remove("a"), remove("c"))
    found = resolve_live(log, log.snapshot(), [(undone.group, undone), (judged.group, judged), (unseen, None)], COLUMNS)
    assert [live.group for live in found] == [judged.group]
