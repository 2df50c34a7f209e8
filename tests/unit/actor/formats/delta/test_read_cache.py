"""CachedRead files brought up to date by commits are those of the snapshot, or nothing is claimed."""

from dataclasses import replace

import pytest

from actor.formats.delta import read as reading_module
from actor.formats.delta import read_cache as memory_module
from actor.formats.delta.read import read_partition, read_table
from actor.formats.delta.read_cache import CachedRead, ReadCache, caught_up
from shared.errors import Unsupported
from shared.table import PartitionKey
from tests.support.fake_delta import LOCATION, FakeTable, brought, group_of, listed, whole
from tests.support.fake_delta_table import METADATA, add, remove, vector

A, B = PartitionKey('{"p":"a"}'), PartitionKey('{"p":"b"}')


def table_of(*paths: str, p: str = "a") -> FakeTable:
    table = FakeTable()
    table.commit(*(add(path, p=p) for path in paths))
    return table


def test_commits_since_are_applied_and_the_result_carries_the_newest_commits_digest() -> None:
    table = table_of("x", "y")
    seen = whole(table)
    table.commit(remove("x"), add("z", p="b"))
    now = brought(table, seen)
    assert now == whole(table)
    assert now is not None
    assert (now.version, now.digest) == (1, table.log().digest(1))


def test_a_partition_takes_only_its_own_files_and_ignores_removals_elsewhere() -> None:
    table = table_of("x")
    table.commit(add("other", p="b"))
    seen = listed(table, A)
    table.commit(remove("other"), add("more", p="b"), add("y"))
    now = brought(table, seen)
    assert now is not None
    assert sorted(key.path for key in now.files) == ["x", "y"]


def test_a_removal_of_a_file_of_the_table_that_was_never_seen_proves_nothing() -> None:
    table = table_of("x")
    seen = whole(table)
    table.commit(remove("never"))
    assert brought(table, seen) is None


def test_a_file_is_reported_apart_by_its_deletion_vector() -> None:
    table = table_of("x")
    seen = whole(table)
    table.commit(remove("x"), add("x", deletionVector=vector(3)))
    now = brought(table, seen)
    assert now is not None
    assert [one.file.deleted_rows for one in now.files.values()] == [3]
    table.commit(remove("x", deletionVector=vector(3)))
    again = brought(table, now)
    assert again is not None
    assert not again.files


def test_the_same_version_counts_only_while_its_commit_stands() -> None:
    table = table_of("x")
    seen = whole(table)
    assert brought(table, seen) is seen
    assert brought(table, replace(seen, digest=None)) is None
    table.history[0] = [add("z")]
    assert brought(table, seen) is None
    table.vanished.add(0)
    assert brought(table, replace(seen, digest=None)) is None


def test_commits_since_count_only_while_the_commit_they_follow_stands() -> None:
    """An operator undid commits, and writers made others of the same numbers."""
    table = table_of("x")
    seen = whole(table)
    table.history[0] = [add("x", size=101)]
    table.commit(add("y"))
    assert brought(table, seen) is None


def test_a_commit_that_is_cleaned_up_proves_nothing() -> None:
    table = table_of("x")
    seen = whole(table)
    table.commit(add("y"))
    table.commit(add("z"))
    table.vanished.add(1)
    assert brought(table, seen) is None


@pytest.mark.parametrize("action", [add("/lake/t/y"), remove("file:/lake/t/x"), add("./y")])
def test_a_path_with_several_spellings_proves_nothing(action: dict[str, object]) -> None:
    table = table_of("x")
    seen = whole(table)
    table.commit(action)
    assert brought(table, seen) is None


@pytest.mark.parametrize("path", ["/lake/t/x", "file:/lake/t/x", "p=1/../x"])
def test_a_removal_under_another_spelling_is_not_passed_over_in_a_partition(path: str) -> None:
    """A partition passes over removals of files that it never had; this one may be of a file that it has."""
    table = table_of("x")
    seen = listed(table, A)
    table.commit(remove(path))
    assert brought(table, seen) is None


def test_other_metadata_prove_nothing() -> None:
    table = table_of("x")
    seen = whole(table)
    table.commit({"metaData": METADATA | {"configuration": {"a": "b"}}})
    assert brought(table, seen) is None


@pytest.mark.parametrize(("commits", "is_known"), [(3, True), (4, False)])
def test_so_many_commits_are_applied_and_no_more(monkeypatch: pytest.MonkeyPatch, commits: int, is_known: bool) -> None:
    monkeypatch.setattr(memory_module, "MAX_COMMITS_REPLAYED", 3)
    table = table_of("x")
    seen = whole(table)
    for number in range(commits):
        table.commit(add(f"c{number}"))
    assert (brought(table, seen) is not None) is is_known


def test_an_earlier_version_than_the_one_that_was_seen_is_not_made_up() -> None:
    table = table_of("x")
    table.commit(add("y"))
    seen = whole(table)
    log = table.log()
    assert caught_up(log, seen, seen.shape, version=0) is None


def test_reading_a_partition_lists_once_and_then_reads_commits() -> None:
    table = table_of("x")
    memory = ReadCache()
    read_partition(table.log(), A, memory)
    table.commit(add("y"), add("z", p="b"))
    table.listings = 0
    assert [one.file.path for one in read_partition(table.log(), A, memory).files] == ["x", "y"]
    assert [one.file.path for one in read_partition(table.log(), B, memory).files] == ["z"]
    assert table.listings == 0


@pytest.mark.parametrize(("files", "is_whole"), [(2, True), (3, False)])
@pytest.mark.parametrize("has_checksums", [True, False])
def test_a_table_of_so_many_files_is_listed_as_a_whole_and_a_larger_one_by_partition(
    monkeypatch: pytest.MonkeyPatch, files: int, is_whole: bool, has_checksums: bool
) -> None:
    monkeypatch.setattr(reading_module, "WHOLE_TABLE_FILES", 2)
    table = FakeTable(has_checksums=has_checksums)
    table.commit(*(add(f"f{number}") for number in range(files)))
    memory = ReadCache()
    found = read_partition(table.log(), A, memory).files
    seen = memory.get(LOCATION, A)
    assert seen is not None
    assert (seen.partition is None) is is_whole
    assert len(found) == (files if is_whole else 0), "the fake's filter by partition finds nothing"


@pytest.mark.parametrize(("files", "listings"), [(2, [1, 0]), (3, [1, 1]), (4, [1, 1])])
def test_a_whole_table_is_listed_once_if_it_is_small(
    monkeypatch: pytest.MonkeyPatch, files: int, listings: list[int]
) -> None:
    monkeypatch.setattr(reading_module, "WHOLE_TABLE_FILES", 2)
    monkeypatch.setattr(reading_module, "FILES_IN_DRIVER", 3)
    table, memory, counts = table_of(*(f"f{number}" for number in range(files))), ReadCache(), list[int]()
    for _ in listings:
        table.listings, log = 0, table.log()
        found = read_table(log, log.snapshot(), memory)
        counts.append(table.listings)
        assert [one.file.path for one in found] == [f"f{number}" for number in range(files)]
    assert counts == listings


def test_a_file_of_a_clustering_is_refused_whether_it_was_listed_or_remembered() -> None:
    table = table_of("x")
    memory = ReadCache()
    read_partition(table.log(), A, memory)
    table.commit(add("y", tags={"ZCUBE_ID": "1"}))
    with pytest.raises(Unsupported, match="Z-cube"):
        read_partition(table.log(), A, memory)
    assert read_partition(table.log(), B, memory).files == (), "another partition is none of its business"


def seen_of(partition: PartitionKey | None, version: int, files: int) -> CachedRead:
    table = table_of(*(f"f{number}" for number in range(files)))
    return replace(whole(table), partition=partition, version=version)


def test_the_newest_of_what_is_known_of_a_partition_and_of_its_table_is_recalled() -> None:
    memory = ReadCache()
    memory.put(LOCATION, seen_of(None, 3, 1))
    memory.put(LOCATION, seen_of(A, 5, 1))
    recalled = {partition: memory.get(LOCATION, partition) for partition in (A, B)}
    assert {partition: seen and seen.version for partition, seen in recalled.items()} == {A: 5, B: 3}
    assert memory.get("file:///lake/other", A) is None


@pytest.mark.parametrize(("room", "kept"), [(6, [A, B]), (5, [B])])
def test_what_was_read_longest_ago_is_forgotten_when_there_are_too_many_files(
    room: int, kept: list[PartitionKey]
) -> None:
    """Two partitions of two files weigh three each: an empty one has to be forgotten, too."""
    memory = ReadCache(room)
    memory.put(LOCATION, seen_of(A, 1, 2))
    memory.put(LOCATION, seen_of(B, 1, 2))
    assert [partition for partition in (A, B) if memory.get(LOCATION, partition)] == kept


def test_what_is_too_large_alone_is_kept_until_the_next() -> None:
    memory = ReadCache(2)
    memory.put(LOCATION, seen_of(A, 1, 5))
    assert memory.get(LOCATION, A) is not None
    memory.put(LOCATION, seen_of(B, 1, 1))
    assert memory.get(LOCATION, A) is None


def test_reading_again_counts_once() -> None:
    memory = ReadCache(6)
    for version in range(5):
        memory.put(LOCATION, seen_of(A, version, 2))
    memory.put(LOCATION, seen_of(B, 1, 2))
    assert memory.get(LOCATION, A) is not None
    assert memory._weight == 6


def test_a_group_is_known_live_only_under_the_same_shape_and_with_every_file() -> None:
    table = table_of("x", "y")
    memory = ReadCache()
    read_partition(table.log(), A, memory)
    seen = whole(table)
    both = group_of(table, "y", "x")
    live = memory.live_group(LOCATION, both, seen.shape)
    assert live is not None
    assert [one.file.path for one in live.inputs] == ["y", "x"]
    assert (live.version, live.digest) == (0, table.log().digest(0))
    other = replace(seen.shape, protocol_json="{}")
    assert memory.live_group(LOCATION, both, other) is None
    table.commit(add("z"))
    assert memory.live_group(LOCATION, group_of(table, "x", "z"), seen.shape) is None
