"""Metadata are decoded once, snapshots become commits and vacuums, and foreign delete files are described."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from decider.formats.iceberg import source as sources
from decider.formats.iceberg.commits import FileHistory, snapshot_commit
from decider.formats.iceberg.raw_tables import RawTable
from decider.formats.iceberg.source import CatalogSource
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings, IcebergTable
from decider.formats.iceberg.vacuums import removals, vacuum_mark
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.formats.iceberg.head_cache import HeadCache
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.formats.iceberg.metadata import Ref, SnapshotRecord, TableHead, decode_head
from shared.formats.iceberg.names import COMMIT_KEY, CONVERTED_KEY, VACUUM_KEY
from shared.layout.commit_metadata import CommitMetadata
from shared.partitions import WHOLE_TABLE
from shared.refusals import Refusal
from shared.table import Commit, CommitOrigin, Position, TableMetadata, TableProtocol, VacuumMark
from tests.contract.formats.worlds import access
from tests.support.iceberg_folder import IcebergFolder


def table(*snapshots: int, uuid: str = "u", file: str = "v1", at_ms: int = 1, lists: str = "m") -> RawTable:
    raw: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": uuid,
        "location": "file:///t",
        "last-updated-ms": at_ms,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "snapshots": [
            {"snapshot-id": one, "timestamp-ms": one, "manifest-list": f"{uuid}-{lists}-{one}"} for one in snapshots
        ],
    }
    return RawTable(raw, file, None)  # type: ignore[arg-type]


class Catalog:
    """A catalog that answers with these tables, one after the other."""

    def __init__(self, *answers: RawTable) -> None:
        self._answers = iter(answers)

    async def load(self, _: tuple[str, ...]) -> RawTable:
        return next(self._answers)


def test_an_answer_that_is_known_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    monkeypatch.setattr(sources, "decode_head", lambda raw, *more: decoded.append(more[1]) or decode_head(raw, *more))
    answers = [
        *(table(1, 2), table(1, 2), table(1, 2, 3, file="v2"), table(3, file="v2", at_ms=2, lists="n")),
        *(table(1, uuid="w", file="v3"), table(1, uuid="w", file=""), table(1, uuid="w", file="")),
    ]
    heads = HeadCache()

    async def ask() -> list[Any]:
        access = StorageAccess(ReadMeter())
        made: Any = Catalog(*answers)
        return [await CatalogSource(made, ("t",), "catalog://c/t", access, heads).head() for _ in answers]

    first, same, newer, touched, other, *unnamed = asyncio.run(ask())
    assert same is first
    assert (list(newer.snapshots), newer.snapshots[2] is first.snapshots[2]) == ([1, 2, 3], True)
    assert [one.manifest_list for one in touched.snapshots.values()] == ["u-n-3"], "of another list it is another one"
    assert other.snapshots[1].manifest_list == "w-m-1", "another table's snapshots are its own"
    assert unnamed[0] is not unnamed[1], "metadata without a file are known by nothing"
    assert decoded == ["v1", "v2", "v2", "v3", "", ""]


SNAPSHOT = SnapshotRecord(2, 1, 2, 200, "m", "append")
HEAD = TableHead("file:///t", TableMetadata("u"), TableProtocol(2, 2), 200, 2, {}, {2: SNAPSHOT})


def entry(status: EntryStatus, snapshot: int | None, path: str) -> Entry:
    return Entry(status, snapshot, 2, path, WHOLE_TABLE, 10, 5, None)


def test_entries_that_other_snapshots_added_or_removed_are_no_part_of_a_commit() -> None:
    entries = [
        entry(EntryStatus.ADDED, 2, "new"),
        entry(EntryStatus.ADDED, None, "unnamed"),
        entry(EntryStatus.ADDED, 1, "older"),
        entry(EntryStatus.DELETED, 2, "removed"),
        entry(EntryStatus.DELETED, 1, "removed before"),
        entry(EntryStatus.EXISTING, 1, "kept"),
    ]
    commit = snapshot_commit(SNAPSHOT, Position(200, "u.2"), entries, FileHistory(HEAD))
    assert [file.path for file in commit.added] == ["new", "unnamed"]
    assert [file.path for file in commit.removed] == ["removed"]


def test_deletes_by_value_that_became_positions_are_a_rewrite_of_ours_and_no_change_of_rows() -> None:
    mark = CommitMetadata(CommitOrigin("job", 7), mode="merge_deletes").encode()
    summary = {COMMIT_KEY: mark, CONVERTED_KEY: "2"}
    for more, is_own in (({}, True), ({"deleted-data-files": "1"}, False)):
        snapshot = SnapshotRecord(2, 1, 2, 200, "m", "delete", summary | more)
        commit = snapshot_commit(snapshot, Position(200, "u.2"), [], FileHistory(HEAD))
        assert (commit.operation, commit.data_change) == (("OPTIMIZE", False) if is_own else ("DELETE", True))
        assert (commit.origin is not None) is is_own


ORIGIN = CommitOrigin("job", 7)


def head(*summaries: dict[str, str]) -> TableHead:
    """Return a table of snapshots 1, 2, ... with these summaries, made at 10, 20, ..."""
    snapshots = {
        one: SnapshotRecord(one, one - 1 or None, one, 10 * one, f"list-{one}", "overwrite", summary)
        for one, summary in enumerate(summaries, start=1)
    }
    newest = len(snapshots)
    refs = {"main": Ref(newest, is_branch=True)}
    return TableHead("s3://t", TableMetadata("u"), TableProtocol(2, 2), 99, newest, {}, snapshots, refs=refs)


def test_each_snapshot_removes_the_files_of_its_summary_and_the_list_of_the_one_before() -> None:
    removed = {"deleted-data-files": "2", "removed-files-size": "7", "removed-delete-files": "1"}
    assert list(removals(head({}, removed, {"deleted-data-files": "x"}))) == [
        (30, 0),
        (20, 4),
        (20, 3),
        (20, 0),
        (20, 0),
    ]


def test_a_vacuum_ended_when_its_mark_changed() -> None:
    mark = {VACUUM_KEY: CommitMetadata(ORIGIN, vacuumed_until_ms=5, vacuumed_orphans=1).encode()}
    assert vacuum_mark({}, mark) == VacuumMark(5, with_orphans=True)
    assert vacuum_mark(mark, mark) is None
    assert vacuum_mark(mark, {}) is None
    assert vacuum_mark({}, {VACUUM_KEY: "by another writer"}) is None
    assert vacuum_mark({}, {VACUUM_KEY: CommitMetadata(ORIGIN).encode()}) is None


NUMBERED, DRAWN = "0000-000000", "0000-00abcd"
"""Ids of tables whose snapshots are numbered one by one, as Paimon's, or have ids that are drawn at random."""


def opened(made: IcebergFolder) -> IcebergTable:
    return IcebergFormat(access(), IcebergSettings(reads_folders=True)).open(made.location)


def refusal(made: IcebergFolder) -> Refusal | None:
    return asyncio.run(opened(made).snapshot()).refusal


def test_files_are_found_by_the_names_that_metadata_give_them(tmp_path: Path) -> None:
    """A percent sign in a name, as writers escape values of partitions, begins no escape."""
    made = IcebergFolder(tmp_path / "t")
    made.create(DRAWN)
    source = opened(made)._source
    there, gone = (f"{made.location}/data/{name}/x.parquet" for name in ("s=a%2Fb", "s=a%2Fc"))
    (made.path / "data/s=a%2Fb").mkdir(parents=True)
    (made.path / "data/s=a%2Fb/x.parquet").write_bytes(b"x")
    assert asyncio.run(source.existing([there, gone])) == {there}
    assert asyncio.run(source.read(there)) == b"x"


def test_a_table_of_an_older_paimon_is_known_by_its_folder(tmp_path: Path) -> None:
    made = IcebergFolder(tmp_path / "t")
    made.create(NUMBERED)
    made.commit([made.file(10)])
    assert refusal(made) is None
    (made.path / "schema").mkdir()
    (made.path / "schema" / "schema-0").write_text("{}")
    found = refusal(made)
    assert found is not None
    assert (found.subject, "Apache Paimon" in found.reason) == ("generated-metadata", True)


def test_a_folder_that_looks_like_paimons_is_not_asked_for_where_snapshots_have_other_ids(tmp_path: Path) -> None:
    made = IcebergFolder(tmp_path / "t")
    made.create(DRAWN)
    made.commit([made.file(10)])
    (made.path / "schema").mkdir()
    (made.path / "schema" / "schema-0").write_text("{}")
    assert refusal(made) is None


def test_a_mark_that_comes_with_a_later_snapshot_comes_with_its_commit(tmp_path: Path) -> None:
    made = IcebergFolder(tmp_path / "t")
    made.create(DRAWN)
    made.commit([made.file(10)])

    async def later() -> list[Commit]:
        table = opened(made)
        before = await table.snapshot()
        made.commit([made.file(10)])
        made.commit([made.file(10)], summary={"paimon-commit-identity": "a"})
        return [one async for one in table.changes(before.position, before.metadata)]

    first, newest = asyncio.run(later())
    assert first.protocol is None
    assert newest.protocol is not None
    assert newest.protocol.writer_features == {"paimon-commit-identity"}
    assert newest.metadata is None, "properties and partitions are those from before"
