"""Lines are parsed and replayed: a file is live if the newest word about its path and vector is that it was added."""

import pytest

from decider.formats.delta.actions import decode_commit
from decider.formats.delta.damage import LogFile, parsed_lines, split_lines
from decider.formats.delta.replay import SnapshotReplay
from shared.errors import Corrupt
from shared.partitions import WHOLE_TABLE, partition_key
from shared.paths.data_paths import canonical_path
from shared.table import Commit, DataFile, PartitionColumn, RemovedFile, TableMetadata, TableProtocol

LOG = LogFile("file:///lake/t", 3, "x.json")
PROTOCOL = TableProtocol(1, 2)
DAY = PartitionColumn("day", "day", "string")

SAME = [
    ("/x/y", "file:/x/y"),
    ("/x/y", "file:///x/y"),
    ("/x/y", "FILE:/x/y"),
    ("a%3db", "a%3Db"),
    ("./a/b", "a/b"),
    ("a/./b", "a//b"),
    ("a/x/../b", "a/b"),
    ("S3://b/k", "s3://b/k"),
]
DIFFERENT = [
    ("x/y", "/x/y"),
    ("a=b", "a%3Db"),
    ("a b", "a%20b"),
    ("s3://b/k", "s3a://b/k"),
    ("file://host/x", "file:/x"),
    ("a", "A"),
    ("at=03:04/p", "03:04/p"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_path_are_equal_when_canonical(one: str, other: str) -> None:
    assert canonical_path(one) == canonical_path(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_paths_that_delta_distinguishes_stay_apart(one: str, other: str) -> None:
    assert canonical_path(one) != canonical_path(other)


def file(path: str, dv_id: str | None = None, size: int = 1) -> DataFile:
    return DataFile(path, size, WHOLE_TABLE, dv_id)


def replayed(*commits: Commit) -> list[DataFile]:
    replay = SnapshotReplay()
    replay.start(TableMetadata("id"), PROTOCOL)
    for commit in commits:
        replay.apply(commit)
    return list(replay.snapshot(LOG, 0).files)


def commit(*, added: tuple[DataFile, ...] = (), removed: tuple[RemovedFile, ...] = ()) -> Commit:
    return Commit(0, 0, "", added, removed)


def test_a_file_added_again_counts_once_with_its_newest_payload() -> None:
    assert replayed(commit(added=(file("p", size=1),)), commit(added=(file("p", size=2),))) == [file("p", size=2)]


def test_a_removal_takes_away_the_spelling_and_vector_it_names_only() -> None:
    start = commit(added=(file("/x/p"), file("q"), file("q", "u1")))
    assert replayed(start, commit(removed=(RemovedFile("file:/x/p"), RemovedFile("q", "u1")))) == [file("q")]


@pytest.mark.parametrize(("added", "gone"), [("file:///x/p", "/x/p"), ("/x//p", "/x/p"), ("a%3db", "a%3Db")])
def test_a_removal_takes_away_the_file_under_any_spelling_of_its_path(added: str, gone: str) -> None:
    assert replayed(commit(added=(file(added),)), commit(removed=(RemovedFile(gone),))) == []
    assert replayed(commit(added=(file(gone),)), commit(removed=(RemovedFile(added),))) == []


def test_a_removed_file_may_come_back() -> None:
    assert replayed(commit(removed=(RemovedFile("p"),)), commit(added=(file("p"),))) == [file("p")]


def test_a_log_without_metadata_or_protocol_is_damaged() -> None:
    replay = SnapshotReplay()
    with pytest.raises(Corrupt, match="no metaData action"):
        replay.snapshot(LOG, 0)
    replay.apply(Commit(0, 0, "", metadata=TableMetadata("id")))
    with pytest.raises(Corrupt, match="no protocol action"):
        replay.snapshot(LOG, 0)


def test_files_take_the_partitions_of_the_last_partition_columns() -> None:
    """A renamed column changes no physical name, a repartitioned table must have rewritten all files."""
    partition = partition_key([DAY], {"day": "x"})
    replay = SnapshotReplay()
    replay.start(TableMetadata("id", (DAY,)), PROTOCOL)
    replay.add([DataFile("p", 1, partition)])
    replay.apply(Commit(1, 0, "", metadata=TableMetadata("id", (PartitionColumn("date", "day", "string"),))))
    assert replay.snapshot(LOG, 0).files[0].partition == partition
    replay.apply(Commit(2, 0, "", metadata=TableMetadata("id")))
    assert replay.snapshot(LOG, 0).files[0].partition == WHOLE_TABLE
    replay.apply(Commit(3, 0, "", metadata=TableMetadata("id", (PartitionColumn("r", "r", "string"),))))
    with pytest.raises(Corrupt, match="p is live under other partition columns"):
        replay.snapshot(LOG, 0)


TWELFTH = LogFile("file:///lake/t", 12, f"{12:020d}.json")


def read(data: bytes) -> list[tuple[int, dict[str, object]]]:
    return list(parsed_lines(split_lines(data), TWELFTH))


def test_the_last_of_two_equal_keys_counts() -> None:
    assert read(b'{"a":1,"a":2}') == [(1, {"a": 2})]


def test_what_no_one_needs_may_be_no_number_or_half_a_character() -> None:
    commit = decode_commit(b'{"commitInfo":{"operation":"WRITE","x":NaN,"y":"\\ud800"}}', TWELFTH, TableMetadata("id"))
    assert commit.operation == "WRITE"


def test_a_size_beyond_64_bits_is_refused() -> None:
    """Delta's sizes are 64-bit integers; until orjson read them, a larger one was accepted unchanged."""
    line = '{"add":{"path":"p","partitionValues":{},"size":%d,"modificationTime":1,"dataChange":true}}'
    assert decode_commit((line % (2**63 - 1)).encode(), TWELFTH, TableMetadata("id")).added[0].size_bytes == 2**63 - 1
    with pytest.raises(Corrupt, match=r"add.size is 1.1\d+e\+21, expected a number of bytes"):
        decode_commit((line % 2**70).encode(), TWELFTH, TableMetadata("id"))


def test_a_time_beyond_64_bits_is_no_time() -> None:
    body = b'{"commitInfo":{"timestamp":99999999999999999999999}}'
    assert decode_commit(body, TWELFTH, TableMetadata("id")).timestamp_ms == 0


def test_bytes_that_are_not_utf8_are_damage_with_their_line() -> None:
    with pytest.raises(Corrupt, match=r"line 2: expected UTF-8"):
        read(b'{}\n{"add":"\xff"}')


def test_blank_lines_count_and_are_passed_over() -> None:
    assert read(b'\n \t\r\n{"a":1}\r\n') == [(3, {"a": 1})]
