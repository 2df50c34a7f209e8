"""A log is read from the newest usable checkpoint on, and refused where it cannot be known."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore

from decider.formats.delta.log import THREAD_BYTES, DeltaLog
from decider.formats.delta.table import DeltaTable
from decider.storage.object_reads import ObjectReader, ReadKind, ReadMeter
from decider.storage.stores import RootedStore
from shared.errors import Corrupt, InvalidInput, RetryableError, Unsupported
from shared.table import Commit, Position, Snapshot, TableMetadata
from tests.support.checkpoints import checkpoint

PLACE = "memory:///t"
META = {"id": "id", "schemaString": '{"fields":[]}', "partitionColumns": [], "configuration": {"a": "b"}}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
FIRST = [{"protocol": PROTOCOL}, {"metaData": META}]


def add(path: str, **fields: Any) -> dict[str, Any]:
    return {
        "add": {"path": path, "partitionValues": {}, "size": 5, "modificationTime": 9, "dataChange": True, **fields}
    }


class Lake:
    """One table's log in memory."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.meter = ReadMeter()
        self.log = DeltaLog(ObjectReader(RootedStore(self.store), location=PLACE, meter=self.meter))

    def put(self, name: str, body: bytes | str) -> None:
        """Write one file of the log."""
        self.store.put(f"_delta_log/{name}", body.encode() if isinstance(body, str) else body)

    def drop(self, *versions: int) -> None:
        """Delete commits, as a clean-up does."""
        for version in versions:
            self.store.delete(f"_delta_log/{version:020d}.json")

    def commit(self, version: int, *actions: object) -> None:
        """Write one commit, at 1,000 ms plus its version."""
        lines = [{"commitInfo": {"timestamp": 1000 + version}}, *actions]
        self.put(f"{version:020d}.json", "\n".join(map(json.dumps, lines)))

    def fill(self, versions: int) -> None:
        """Write commits that add `0`, `1`, … one by one."""
        for version in range(versions):
            self.commit(version, *(FIRST if version == 0 else []), add(str(version)))

    def checkpoint(self, version: int, name: str = "checkpoint.parquet", rows: Sequence[Any] | None = None) -> None:
        """Write a checkpoint, by default of what `fill` commits."""
        made = [*FIRST, *(add(str(number)) for number in range(version + 1))] if rows is None else rows
        self.put(f"{version:020d}.{name}", checkpoint(made))

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Read a snapshot."""
        return asyncio.run(self.log.snapshot(version))

    def read(self, version: int) -> Commit | None:
        """Read one commit."""
        return asyncio.run(self.log.commit(version, TableMetadata("id")))


@pytest.fixture
def lake() -> Lake:
    return Lake()


def paths(snapshot: Snapshot) -> list[str]:
    return [file.path for file in snapshot.files]


def test_a_place_without_a_log_is_refused_by_its_name(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="memory:///t: there is no Delta log"):
        lake.snapshot()
    assert asyncio.run(lake.log.versions_after(-1)) == ()
    assert lake.read(0) is None


def test_commits_alone_make_a_snapshot_of_any_version(lake: Lake) -> None:
    lake.fill(20)
    assert [len(lake.snapshot(version).files) for version in range(20)] == list(range(1, 21))
    assert (lake.snapshot().version, lake.snapshot().timestamp_ms) == (19, 1019)


def test_a_version_that_is_not_there_yet_is_no_commit_and_no_snapshot(lake: Lake) -> None:
    lake.fill(2)
    assert lake.read(2) is None
    with pytest.raises(InvalidInput, match="there is no version 2"):
        lake.snapshot(2)


def test_versions_are_listed_from_the_cursor_on(lake: Lake) -> None:
    lake.fill(12)
    lake.checkpoint(9)
    lake.put(f"_staged_commits/{20:020d}.{UUID}.json", "{}")
    assert asyncio.run(lake.log.versions_after(8)) == (9, 10, 11)
    assert asyncio.run(lake.log.versions_after(-1)) == tuple(range(12))
    assert asyncio.run(lake.log.versions_after(11)) == ()


def test_requests_are_counted_by_kind(lake: Lake) -> None:
    lake.fill(3)
    lake.read(1)
    assert lake.meter.counts == {ReadKind.GET: 1}
    asyncio.run(lake.log.versions_after(0))
    assert lake.meter.counts == {ReadKind.GET: 1, ReadKind.LIST: 1}


@pytest.mark.parametrize("commits", [100, 10_000])
def test_what_follows_is_read_by_the_same_requests_however_long_the_log_is(lake: Lake, commits: int) -> None:
    lake.fill(commits)
    table = DeltaTable(lake.log, ObjectReader(RootedStore(lake.store), location=PLACE, meter=lake.meter))

    async def follow(position: Position) -> list[int]:
        assert await table.contains(position)
        return [commit.version async for commit in table.changes(position, TableMetadata("id"))]

    digest = asyncio.run(lake.log.digest(commits - 6))
    lake.meter.counts.clear()
    assert asyncio.run(follow(Position(commits - 6, digest or ""))) == list(range(commits - 5, commits))
    assert lake.meter.counts == {ReadKind.GET: 9}, "five commits, and the end"


def test_a_hint_saves_listing_what_came_before_it(lake: Lake) -> None:
    lake.fill(5)
    lake.checkpoint(2)
    lake.put("_last_checkpoint", '{"version":2}')
    lake.drop(0, 1, 2)
    assert paths(lake.snapshot()) == ["0", "1", "2", "3", "4"]
    assert lake.meter.counts == {ReadKind.LIST: 1, ReadKind.GET: 4}


def test_a_hint_that_is_newer_than_the_wanted_version_is_not_followed(lake: Lake) -> None:
    lake.fill(5)
    lake.checkpoint(3)
    lake.put("_last_checkpoint", '{"version":3}')
    assert paths(lake.snapshot(1)) == ["0", "1"]


@pytest.mark.parametrize("hint", ["[]", "null", '{"version":true}', '{"version":-1}', "[" * 100_000, "1" * 5_000])
def test_a_damaged_hint_costs_a_listing_and_nothing_else(lake: Lake, hint: str) -> None:
    lake.fill(3)
    lake.put("_last_checkpoint", hint)
    assert len(lake.snapshot().files) == 3


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ('{"version":2,"size":5,"sizeInBytes":13839,"numOfAddFiles":3}', (2, 3)),
        ('{"version":2,"size":5}', None),
        ('{"version":true,"numOfAddFiles":3}', None),
        ('{"version":2,"numOfAddFiles":"3"}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_the_number_of_files_of_a_checkpoint_is_known_where_its_hint_names_it(
    lake: Lake, hint: str, expected: tuple[int, int] | None
) -> None:
    lake.fill(1)
    lake.put("_last_checkpoint", hint)
    assert asyncio.run(lake.log.checkpointed_files()) == expected
    assert lake.meter.counts == {ReadKind.GET: 1}


def test_an_unreadable_checkpoint_falls_back_to_an_older_one_and_then_to_commits(lake: Lake) -> None:
    lake.fill(6)
    lake.put(f"{4:020d}.checkpoint.parquet", b"not parquet")
    lake.put("_last_checkpoint", '{"version":4}')
    assert len(lake.snapshot().files) == 6
    lake.checkpoint(2)
    lake.drop(0, 1)
    assert len(lake.snapshot().files) == 6


def test_if_nothing_covers_the_old_commits_the_damage_is_reported(lake: Lake) -> None:
    lake.fill(6)
    lake.put(f"{4:020d}.checkpoint.parquet", b"PAR1 not parquet PAR1")
    lake.drop(0)
    with pytest.raises(Corrupt, match=r"version 0.*this commit is missing.*unusable: .*version 4.*in Parquet"):
        lake.snapshot()


def test_a_hole_above_the_checkpoint_is_refused(lake: Lake) -> None:
    lake.fill(6)
    lake.checkpoint(2)
    lake.drop(1, 4)
    assert len(lake.snapshot(3).files) == 4
    with pytest.raises(Corrupt, match=r"version 4, _delta_log/00000000000000000004.json: this commit is missing"):
        lake.snapshot()


def test_a_version_that_was_cleaned_up_cannot_be_travelled_to(lake: Lake) -> None:
    lake.fill(6)
    lake.checkpoint(3)
    lake.drop(0, 1, 2)
    with pytest.raises(InvalidInput, match="version 2 can no longer be rebuilt"):
        lake.snapshot(2)


def test_a_checkpoint_with_a_part_missing_does_not_exist(lake: Lake) -> None:
    lake.fill(4)
    lake.checkpoint(2, f"checkpoint.{1:010d}.{2:010d}.parquet", [*FIRST, add("wrong")])
    assert paths(lake.snapshot()) == ["0", "1", "2", "3"]


def test_parts_of_a_checkpoint_are_put_together(lake: Lake) -> None:
    lake.checkpoint(2, f"checkpoint.{1:010d}.{2:010d}.parquet", [add("a"), {"protocol": PROTOCOL}])
    lake.checkpoint(2, f"checkpoint.{2:010d}.{2:010d}.parquet", [{"metaData": META}, add("b")])
    snapshot = lake.snapshot()
    assert (sorted(paths(snapshot)), snapshot.version, snapshot.timestamp_ms) == (["a", "b"], 2, 0)
    assert snapshot.metadata.configuration == {"a": "b"}


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_checkpoint_with_sidecars_takes_files_from_both(lake: Lake, kind: str) -> None:
    sidecars = [f"{number}-{UUID}.parquet" for number in range(20)]
    head = [{"checkpointMetadata": {"version": 3}}, *FIRST, add("inline")]
    references = [{"sidecar": {"path": f"_delta_log/_sidecars/{name}", "sizeInBytes": 1}} for name in sidecars]
    rows = [*head, *references]
    body = "\n".join(map(json.dumps, rows)).encode() if kind == "json" else checkpoint(rows)
    lake.put(f"{3:020d}.checkpoint.{UUID}.{kind}", body)
    for number, name in enumerate(sidecars):
        lake.put(f"_sidecars/{name}", checkpoint([add(f"s{number}")]))
    lake.commit(4, {"remove": {"path": "s7", "dataChange": True}})
    assert sorted(paths(lake.snapshot())) == sorted(["inline", *(f"s{number}" for number in range(20) if number != 7)])
    lake.store.delete(f"_delta_log/_sidecars/{sidecars[3]}")
    with pytest.raises(Corrupt, match="the checkpoint needs this file, and it is missing"):
        lake.snapshot()


def test_a_row_of_a_checkpoint_is_decoded_like_a_line_of_a_commit(lake: Lake) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 0, "cardinality": 2}
    rows = [add("a", tags=[("k", "v"), ("n", None)], deletionVector=vector, stats='{"numRecords":3}'), *FIRST, add("b")]
    lake.checkpoint(0, rows=rows)
    one, two = lake.snapshot().files
    assert (one.dv_id, one.deleted_rows, one.rows, dict(one.tags)) == ("uab@0", 2, 3, {"k": "v"})
    assert (two.dv_id, two.deleted_rows, two.rows, dict(two.tags)) == (None, 0, None, {})


PARSED = pa.struct({"numRecords": pa.int64(), "minValues": pa.struct({"id": pa.int64()})})


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        ([{"stats_parsed": {"numRecords": 3}}, {"stats_parsed": {"numRecords": 4}}], [3, 4]),
        ([{"stats_parsed": {"numRecords": 3}, "stats": '{"numRecords":3}'}, {"stats": '{"numRecords":4}'}], [3, 4]),
        (
            [{"stats_parsed": {"numRecords": 3}, "stats": '{"numRecords":9}'}, {"stats_parsed": {"numRecords": 4}}],
            [9, None],
        ),
    ],
)
def test_rows_come_from_structured_statistics_unless_some_file_lacks_them(
    lake: Lake, fields: list[dict[str, Any]], rows: list[int | None]
) -> None:
    """The last case has contradicting sources; what matters is that one source serves all files."""
    if rows == [9, None]:
        fields[1]["stats_parsed"] = None
    stats = {"stats": pa.string(), "stats_parsed": PARSED}
    if not any("stats" in item for item in fields):
        del stats["stats"]
    body = checkpoint([*FIRST, *(add(str(number), **item) for number, item in enumerate(fields))], stats=stats)
    lake.put(f"{0:020d}.checkpoint.parquet", body)
    assert [file.rows for file in lake.snapshot().files] == rows


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([add("a")], "0 metaData and 0 protocol"),
        ([*FIRST, *FIRST], "2 metaData and 2 protocol"),
        ([*FIRST, add("a", size=None)], "row 3: add.size is missing"),
        ([*FIRST, add("a", size=-1)], "row 3: add.size is -1"),
        ([*FIRST, {"checkpointMetadata": {"version": 9}}], "of version 9"),
        ([*FIRST, {"sidecar": {"path": ""}}], "sidecar.path is ''"),
    ],
)
def test_a_checkpoint_that_contradicts_itself_is_not_used(lake: Lake, rows: list[Any], problem: str) -> None:
    lake.checkpoint(5, rows=rows)
    lake.commit(6, add("b"))
    with pytest.raises(Corrupt, match=problem):
        lake.snapshot()


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.array([{"path": 1}, {"path": 2}])])
def test_parquet_of_another_shape_is_no_checkpoint(lake: Lake, column: pa.Array) -> None:
    table = pq.read_table(io.BytesIO(checkpoint(FIRST)))
    buffer = io.BytesIO()
    pq.write_table(table.set_column(0, "add", column), buffer)
    lake.put(f"{5:020d}.checkpoint.parquet", buffer.getvalue())
    with pytest.raises(Corrupt, match=r"expected a checkpoint in Parquet|add\.path is 1"):
        lake.snapshot()


def test_an_unreadable_protocol_refuses_the_table_and_is_no_reason_to_fall_back(lake: Lake) -> None:
    lake.fill(3)
    features = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["catalogManaged"],
        "writerFeatures": [],
    }
    lake.checkpoint(2, rows=[{"protocol": features}, {"metaData": META}])
    with pytest.raises(Unsupported, match="ratified by a catalog"):
        lake.snapshot()


def test_a_commit_that_turns_on_an_unknown_feature_is_refused(lake: Lake) -> None:
    lake.fill(1)
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["telepathy"], "writerFeatures": []}
    lake.commit(1, {"protocol": features})
    with pytest.raises(Unsupported, match="telepathy"):
        lake.read(1)
    with pytest.raises(Unsupported, match="telepathy"):
        lake.snapshot()
    assert len(lake.snapshot(0).files) == 1


def test_a_large_commit_is_decoded_all_the_same(lake: Lake) -> None:
    lake.fill(1)
    lake.commit(1, *(add(f"{number:0200d}") for number in range(1_000)))
    assert len(lake.store.get(f"_delta_log/{1:020d}.json").bytes()) > THREAD_BYTES
    commit = lake.read(1)
    assert commit is not None
    assert (len(commit.added), commit.version, commit.timestamp_ms) == (1_000, 1, 1001)


class Partial(ObjectReader):
    """A store whose listing or whose objects are those of another moment."""

    unlisted = ""
    gone = ""

    async def list(self, prefix: str, *, after: str | None = None) -> Sequence[str]:
        """List without the key that was missed."""
        return [name for name in await super().list(prefix, after=after) if name != self.unlisted]

    async def get_each(self, keys: Sequence[str]) -> AsyncGenerator[bytes | None, None]:
        """Get, unless the object is gone by now."""
        for key in keys:
            yield None if self.gone and key.endswith(self.gone) else await self.get(key)


def test_a_commit_that_the_listing_missed_is_searched_before_it_is_called_missing(lake: Lake) -> None:
    """A directory listed while two commits are written may show the second and not the first."""
    lake.fill(4)
    reads = Partial(RootedStore(lake.store), location=PLACE, meter=lake.meter)
    reads.unlisted = f"{2:020d}.json"
    assert len(asyncio.run(DeltaLog(reads).snapshot()).files) == 4


def test_a_commit_that_vanishes_after_it_was_listed_is_worth_another_try(lake: Lake) -> None:
    lake.fill(4)
    reads = Partial(RootedStore(lake.store), location=PLACE, meter=lake.meter)
    reads.gone = f"{2:020d}.json"
    with pytest.raises(RetryableError, match="commit 2 vanished"):
        asyncio.run(DeltaLog(reads).snapshot())
