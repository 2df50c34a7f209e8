"""A snapshot that follows from a cached one is the one that Delta would read from the log; else Delta reads it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.formats.delta import snapshot_cache
from actor.formats.delta.log import TableShape
from actor.formats.delta.snapshot import partition_condition
from actor.formats.delta.snapshot_cache import CachedSnapshot, FileChange, OpenedLog, SnapshotCache, file_change
from shared.partitions import partition_key
from shared.table import PartitionColumn
from tests.support.fake_delta import LOCATION, FakeTable
from tests.support.fake_delta_table import METADATA, PROTOCOL, add, remove


def sized(action: dict[str, Any], size: int = 100) -> dict[str, Any]:
    """A removal as Delta writes it."""
    return {"remove": action["remove"] | {"size": size, "extendedFileMetadata": True}}


class World:
    """A table of two commits without checksum files, and the snapshots that one actor has cached of it."""

    def __init__(self) -> None:
        self.table = FakeTable(has_checksums=False)
        self.now_s = 1_000.0
        self.snapshots = SnapshotCache(monotonic=lambda: self.now_s)
        self.table.commit({"protocol": PROTOCOL}, {"metaData": METADATA})
        self.table.commit(add("a"), add("b"))

    def listed(self) -> "World":
        log = self.table.log(self.snapshots)
        log.cache(log.snapshot())
        self.table.log_reads = self.table.counts_of_state = 0
        return self

    def newest(self) -> Any:
        return self.table.log(self.snapshots).snapshot()

    def shape(self) -> Any:
        return self.table.log(self.snapshots).shape(self.newest())

    @property
    def is_true(self) -> bool:
        """Whether the snapshot of the cache is the one that a fresh reading finds."""
        fresh, found = self.table.at(self.table.version), self.newest()
        same = (found.version(), found.metadata().json(), found.protocol().json())
        return same == (fresh.version(), fresh.metadata().json(), fresh.protocol().json())


def test_snapshots_after_a_listed_one_follow_from_the_commits_without_a_job() -> None:
    world = World().listed()
    world.table.commit(add("c"), add("d"), {"commitInfo": {}}, {"txn": {"appId": "x"}})
    world.table.commit(sized(remove("a")), sized(remove("b")), add("e", dataChange=False))
    assert world.is_true
    checksum = world.newest().checksumOpt().get()
    assert (checksum.numFiles(), checksum.tableSizeBytes()) == (3, 300)
    world.table.commit(add("f"))
    assert world.newest().checksumOpt().get().numFiles() == 4
    assert (world.table.log_reads, world.table.counts_of_state) == (0, 0)


def test_a_table_that_was_not_listed_is_read_by_delta() -> None:
    world = World()
    world.newest()
    world.newest()
    assert (world.table.log_reads, world.table.counts_of_state) == (2, 0)


@pytest.mark.parametrize(
    "action",
    [
        {"metaData": METADATA | {"configuration": {"delta.appendOnly": "true"}}},
        {"protocol": PROTOCOL | {"minWriterVersion": 7}},
    ],
)
def test_a_change_of_metadata_or_protocol_is_seen(action: dict[str, Any]) -> None:
    world = World().listed()
    before = world.shape()
    world.table.commit(add("c"), action)
    assert world.shape() != before
    assert world.is_true
    assert world.table.log_reads == 1, "and the snapshot that Delta read is the one that later ones follow from"


@pytest.mark.parametrize(
    "actions",
    [
        [{"domainMetadata": {"domain": "delta.rowTracking"}}],
        [remove("a")],
        [{"remove": remove("a")["remove"] | {"extendedFileMetadata": True}}],
        [add("a", dataChange=False)],
        [{"checkpointMetadata": {}}],
    ],
)
def test_a_commit_that_is_not_conclusive_makes_delta_read_the_log(actions: list[dict[str, Any]]) -> None:
    world = World().listed()
    world.table.commit(*actions)
    assert file_change(actions) is None
    assert world.is_true
    assert world.table.log_reads == 1


def test_a_commit_that_was_undone_and_replaced_is_noticed() -> None:
    world = World().listed()
    world.table.history.pop()
    world.table.commit(add("z"), {"metaData": METADATA | {"id": "t-2"}})
    world.table.commit(add("y"))
    assert world.is_true
    assert world.table.log_reads == 1


def test_a_commit_that_was_undone_before_the_cached_one_is_noticed_at_the_same_version() -> None:
    world = World().listed()
    world.table.history[:] = [[{"protocol": PROTOCOL}, {"metaData": METADATA | {"id": "t-2"}}], [add("a")]]
    assert world.is_true


def test_a_commit_that_is_gone_makes_delta_read_the_log() -> None:
    """As after a clean-up that deletes in no order: the known commit is there, and not the one after it."""
    world = World().listed()
    world.now_s += snapshot_cache.RECENT_S
    world.table.commit(add("c"))
    world.table.vanished.add(2)
    world.table.commit(add("d"))
    assert world.newest().version() == 3
    assert world.table.log_reads == 1


def test_commits_are_asked_for_by_name_only_if_the_last_look_was_a_moment_ago() -> None:
    world = World().listed()
    for seconds in (0.0, 59.9, 59.9, 60.0, 59.9):
        world.now_s += seconds
        world.table.commit(add("c"))
        assert world.is_true
    assert world.table.looks == [True, True, True, False, True]
    with pytest.raises(ZeroDivisionError), world.snapshots.forgotten_on_error(LOCATION):
        raise ZeroDivisionError
    assert not world.snapshots.is_recent(LOCATION)
    assert world.table.log_reads == 0


def test_a_table_that_went_back_is_read_again() -> None:
    world = World().listed()
    world.table.history.pop()
    assert world.is_true
    assert world.table.log_reads == 1


@pytest.mark.parametrize("limit", ["MAX_COMMITS_REPLAYED", "MAX_VERSIONS_CARRIED"])
def test_beyond_a_limit_delta_reads_the_log(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_cache, limit, 3)
    world = World().listed()
    for reads in [0, 0, 0, 1] if limit == "MAX_VERSIONS_CARRIED" else [0, 0, 0, 0]:
        world.table.commit(add("c"))
        world.newest()
        assert world.table.log_reads == reads
    for _ in range(4):
        world.table.commit(add("c"))
    world.newest()
    assert world.table.log_reads == 2 if limit == "MAX_VERSIONS_CARRIED" else 1


def test_a_checksum_file_saves_counting_the_state() -> None:
    world = World()
    world.table.has_checksums = True
    log = world.table.log(world.snapshots)
    log.cache(log.snapshot())
    assert world.table.counts_of_state == 0
    assert world.snapshots.get(LOCATION) is not None


def test_a_snapshot_whose_commit_is_gone_is_not_cached() -> None:
    world = World()
    log = world.table.log(world.snapshots)
    snapshot = log.snapshot()
    world.table.vanished.add(1)
    log.cache(snapshot)
    assert world.snapshots.get(LOCATION) is None


def test_what_fails_makes_delta_read_the_log() -> None:
    world = World().listed()
    with pytest.raises(ZeroDivisionError), world.snapshots.forgotten_on_error(LOCATION):
        raise ZeroDivisionError
    with world.snapshots.forgotten_on_error(LOCATION):
        world.newest()
    assert world.table.log_reads == 1


def test_the_table_whose_snapshot_is_the_oldest_is_evicted() -> None:
    snapshots = SnapshotCache(max_tables=2)
    for location in ("a", "b", "a", "c"):
        snapshots.put(location, CachedSnapshot(OpenedLog(None, location), None, 1, "x", 1, TableShape("", "")))
    assert [location for location in "abc" if snapshots.get(location) is not None] == ["a", "c"]


_PATHS = st.sampled_from("abcdefgh")
_COMMITS = st.one_of(
    st.lists(_PATHS, min_size=1, unique=True).map(lambda paths: [add(path) for path in paths]),
    st.just([{"metaData": METADATA | {"configuration": {"delta.appendOnly": "true"}}}]),
    st.just([{"metaData": METADATA}]),
    st.just([{"protocol": PROTOCOL | {"minWriterVersion": 7}}, add("p")]),
    st.just("undo"),
    st.just("look"),
)


@given(st.lists(_COMMITS, max_size=25))
def test_whatever_is_committed_and_undone_the_snapshot_is_the_true_one(commits: list[Any]) -> None:
    world = World().listed()
    for number, commit in enumerate(commits):
        if commit == "undo":
            if world.table.version > 1:
                world.table.history.pop()
        elif commit == "look":
            assert world.is_true
        else:
            # As in real logs, no two commits are equal: each has its time.
            world.table.commit(*json.loads(json.dumps(commit)), {"commitInfo": {"timestamp": number}})
    assert world.is_true


def test_changes_add_up() -> None:
    assert FileChange(1, 100) + FileChange(-2, -50) == FileChange(-1, 50)


def test_deltas_own_log_holds_no_snapshot_whose_files_were_listed() -> None:
    """Its query plans are megabytes: a heap would hold three hundred such tables."""
    table = FakeTable(has_checksums=False)
    table.commit(add("a"))
    log = table.log(SnapshotCache())
    listed = log.snapshot()
    assert log.cache(listed) is not listed
    assert table.installed == [0]


AS_TIME = "try_cast(partitionValues['p'] AS timestamp)"


@pytest.mark.parametrize(
    ("kind", "value", "condition"),
    [
        ("string", "it's", r"partitionValues['p'] = 'it\'s'"),
        ("string", None, "(partitionValues['p'] IS NULL OR partitionValues['p'] = '')"),
        (
            "timestamp",
            "2026-01-01 00:00:00",
            f"coalesce({AS_TIME} = try_cast('2026-01-01T00:00:00.000000' AS timestamp), true)",
        ),
    ],
)
def test_a_value_is_compared_as_its_type_is_spelled(kind: str, value: str | None, condition: str) -> None:
    columns = (PartitionColumn("p", "p", kind),)
    assert partition_condition(columns, partition_key(columns, {"p": value})) == condition
