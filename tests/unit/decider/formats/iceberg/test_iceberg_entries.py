"""Of snapshots that follow each other one manifest list is read; catalogs' tables keep what pyiceberg does not know."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyiceberg
import pytest
from pyiceberg.exceptions import NoSuchIcebergTableError
from pyiceberg.io.pyarrow import PyArrowFileIO

from decider.formats.iceberg import entries
from decider.formats.iceberg.commits import FileHistory, snapshot_commit
from decider.formats.iceberg.entries import READ_AHEAD, EntryReader
from decider.formats.iceberg.raw_tables import with_raw_tables
from decider.formats.iceberg.rewrites import rewrite_of
from shared.errors import Corrupt
from shared.formats.iceberg.cell_names import name_prefix
from shared.formats.iceberg.manifests import Entry, EntryStatus, Manifest
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.names import COMMIT_KEY
from shared.jobs.payload import CLUSTER, COMPACT, EXPIRE
from shared.layout.cells.tags import CELL_TAG
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.key_runs import KeyRuns
from shared.partitions import WHOLE_TABLE
from shared.table import CellReport, Commit, CommitOrigin, DataFile, DeleteKind, Position, TableMetadata, TableProtocol

HEAD = TableHead("file:///t", TableMetadata("u"), TableProtocol(2, 2), 1, None, {}, {})


def append(number: int, *, said: str = "1", **more: str) -> SnapshotRecord:
    summary = {"added-data-files": said, **{name.replace("_", "-"): value for name, value in more.items()}}
    return SnapshotRecord(number, number - 1 or None, number, number, f"list-{number}", "append", summary)


def manifest(number: int, *, by: int | None = -1, added: int | None = 1) -> Manifest:
    """Return the manifest of a snapshot, which added one file."""
    return Manifest(f"m-{number}", 0, number if by == -1 else by, number, added_files=added)


class Lists:
    """A source of manifest lists, each with the manifests of all snapshots so far; `read`: what was asked for."""

    location = "file:///t"

    def __init__(self, patch: pytest.MonkeyPatch, lists: dict[int, Sequence[Manifest]]) -> None:
        self.read_paths: list[str] = []
        patch.setattr(entries, "decode_manifest_list", lambda body, _: tuple(lists[int(body)]))
        patch.setattr(entries, "decode_manifest", lambda body, one, *_: (entry(body.decode(), one.added_by),))

    async def read(self, path: str) -> bytes:
        self.read_paths.append(path)
        return path.removeprefix("list-").encode()

    async def read_each(self, paths: Sequence[str]) -> Sequence[bytes]:
        return [await self.read(path) for path in paths]

    def follow(self, snapshots: Sequence[SnapshotRecord]) -> dict[int, list[str]]:
        """Return the paths that each snapshot wrote."""

        async def written() -> dict[int, list[str]]:
            each = EntryReader(self).written_by_each(HEAD, snapshots)  # type: ignore[arg-type]
            return {one.id: [found.path for found in of_it] async for one, of_it in each}

        return asyncio.run(written())


def entry(path: str, snapshot: int | None) -> Entry:
    return Entry(EntryStatus.ADDED, snapshot, 2, path, WHOLE_TABLE, 10, 5, None)


def growing(count: int) -> dict[int, Sequence[Manifest]]:
    return {last: [manifest(one) for one in range(1, last + 1)] for last in range(1, count + 1)}


def test_appends_cost_one_list_and_one_manifest_each(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2 * READ_AHEAD + 1
    source = Lists(monkeypatch, growing(count))
    found = source.follow([append(number) for number in range(3, count + 1)])
    assert found == {number: [f"m-{number}"] for number in range(3, count + 1)}
    assert source.read_paths == [f"list-{count}", *(f"m-{number}" for number in range(3, count + 1))]


ODD = [
    pytest.param(append(2, said="2"), manifest(2), id="a manifest of it vanished"),
    pytest.param(append(2, said=""), manifest(2), id="it does not say how many files it added"),
    pytest.param(append(2, deleted_data_files="1"), manifest(2), id="it removed files, too"),
    pytest.param(append(2, added_delete_files="1"), manifest(2), id="it added delete files, too"),
    pytest.param(replace(append(2), operation="overwrite"), manifest(2), id="no append"),
    pytest.param(append(2), manifest(2, added=None), id="the list does not count"),
    pytest.param(append(2), replace(manifest(2), has_deletes=True), id="the files are delete files"),
    pytest.param(append(2), manifest(2, by=None), id="the list does not name who wrote a manifest"),
]


@pytest.mark.parametrize(("odd", "left"), ODD)
def test_what_a_later_list_may_not_name_whole_is_read_by_its_own_list(
    monkeypatch: pytest.MonkeyPatch, odd: SnapshotRecord, left: Manifest
) -> None:
    lists = growing(4)
    both = [manifest(2), replace(manifest(2), path="m-2b")]
    lists[2] = [manifest(1), *both]
    lists[4] = [manifest(1), left, manifest(3), manifest(4)]
    source = Lists(monkeypatch, lists)
    found = source.follow([odd, append(3), append(4)])
    assert found[2] == ["m-2", "m-2b"]
    assert found[3] == ["m-3"]
    assert [path for path in source.read_paths if path.startswith("list")] == ["list-4", "list-2"]


def test_the_newest_snapshot_is_read_by_its_own_list_whatever_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    unnamed = manifest(9, by=None)
    source = Lists(monkeypatch, {3: [manifest(1), manifest(3), unnamed]})
    assert source.follow([replace(append(3, said=""), operation="delete")]) == {3: ["m-3", "m-9"]}
    assert source.follow([]) == {}


METADATA = {"properties": {"owner": "me"}, "schemas": [{"fields": [{"type": "a type of the future"}]}]}


class Catalog:
    """What pyiceberg's catalogs have: an entry becomes a table by the method of its kind."""

    def __init__(self, method: str, entry: Any) -> None:
        self._method = method
        self._entry = entry
        self.opened: list[dict[str, str]] = []

    def load_table(self, _name: str) -> Any:
        return getattr(self, self._method)(self._entry)

    def _load_file_io(self, properties: dict[str, str] | None = None, location: str = "") -> PyArrowFileIO:
        assert location
        self.opened.append(dict(properties or {}))
        return PyArrowFileIO()


def entries_of(place: str, kind: str = "ICEBERG") -> dict[str, tuple[str, Any]]:
    pointer = {"table_type": kind, "metadata_location": place}
    return {
        "sql": ("_convert_orm_to_iceberg", SimpleNamespace(metadata_location=place)),
        "glue": ("_convert_glue_to_iceberg", {"DatabaseName": "d", "Name": "t", "Parameters": pointer}),
        "hive": ("_convert_hive_into_iceberg", SimpleNamespace(parameters=pointer)),
    }


@pytest.mark.parametrize("kind", ["sql", "glue", "hive"])
def test_a_table_is_what_its_metadata_file_has_with_access_by_the_catalogs_options(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "v1.metadata.json"
    place.write_text(json.dumps(METADATA))
    made = Catalog(*entries_of(place.as_uri())[kind])
    found: Any = with_raw_tables(made, kind).load_table("d.t")
    assert (found.raw, found.path, made.opened) == (METADATA, place.as_uri(), [{}])


@pytest.mark.parametrize("kind", ["sql", "glue", "hive"])
def test_a_metadata_file_that_is_missing_or_damaged_is_reported_with_its_path(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "v1.metadata.json"
    made: Any = with_raw_tables(Catalog(*entries_of(place.as_uri())[kind]), kind)
    with pytest.raises(Corrupt, match=r"v1\.metadata\.json, which the catalog names, is missing"):
        made.load_table("d.t")
    place.write_text("{")
    with pytest.raises(Corrupt, match=r"v1\.metadata\.json: the metadata are no JSON"):
        made.load_table("d.t")


@pytest.mark.parametrize("kind", ["glue", "hive"])
def test_an_entry_of_another_format_is_no_table(kind: str) -> None:
    made: Any = with_raw_tables(Catalog(*entries_of("file:///x", "HUDI")[kind]), kind)
    with pytest.raises(NoSuchIcebergTableError):
        made.load_table("d.t")


def test_the_method_that_is_replaced_is_one_of_pyicebergs() -> None:
    """Sources are compared, for its catalogs import clients that are not installed here."""
    folder = Path(pyiceberg.__file__).parent / "catalog"
    for kind, (method, _) in entries_of("").items():
        source = (folder / f"{kind}.py").read_text()
        assert f"def {method}(" in source
        assert f"self.{method}(" in source


OURS = CommitOrigin("j", 7)


def commit(operation: str, mode: str, compared: int | None = None) -> Commit:
    mark = CommitMetadata(OURS, mode=mode, deduplicated_version=compared).encode()
    snapshot = SnapshotRecord(2, 1, 2, 2_000, "m", operation, {COMMIT_KEY: mark})
    head = TableHead("file:///t", TableMetadata("u"), TableProtocol(2, 2), 2_000, 2, {}, {2: snapshot})
    return snapshot_commit(snapshot, Position(2_000, "u.2"), (), FileHistory(head))


@pytest.mark.parametrize("operation", ["delete", "overwrite"])
def test_a_deletion_of_rows_by_their_age_is_a_delete_of_ours_that_adds_no_rows(operation: str) -> None:
    made = commit(operation, EXPIRE)
    assert (made.operation, made.data_change, made.origin, made.deduplicated_version) == ("DELETE", True, OURS, None)
    runs = KeyRuns(appended_version=1_000, compared_version=1_000)
    written = replace(made, added=(DataFile("again", 5, WHOLE_TABLE),))
    assert not runs.after(written).is_pending


@pytest.mark.parametrize(("operation", "mode"), [("append", EXPIRE), ("overwrite", COMPACT), ("delete", "full")])
def test_a_copied_mark_on_another_change_of_data_is_not_ours(operation: str, mode: str) -> None:
    made = commit(operation, mode, 1_500)
    assert (made.origin, made.deduplicated_version) == (None, None)


def test_the_end_of_a_deletion_says_up_to_which_version_all_rows_were_compared() -> None:
    made = commit("replace", EXPIRE, 1_500)
    assert (made.operation, made.data_change, made.origin) == ("OPTIMIZE", False, OURS)
    runs = KeyRuns(appended_version=1_400).after(made)
    assert (runs.compared_version, runs.compared_ms, runs.is_pending) == (1_500, 2_000, False)


OUR_SUMMARY = CommitMetadata(CommitOrigin("j", 1))
SNAPSHOT = SnapshotRecord(7, 6, 7, 100, "m", "replace")
ADDED, DELETED, EXISTING = EntryStatus.ADDED, EntryStatus.DELETED, EntryStatus.EXISTING


def written_entry(
    status: EntryStatus, path: str, rows: int, kind: DeleteKind | None = None, referenced: str = "", by: int = 7
) -> Entry:
    return Entry(status, by, 7, path, WHOLE_TABLE, 100, rows, kind, referenced=referenced)


@pytest.mark.parametrize("kind", [DeleteKind.POSITION, DeleteKind.VECTOR])
def test_rows_that_others_deleted_meanwhile_are_seen_on_neither_side_and_were_not_left_out(kind: DeleteKind) -> None:
    """Of 60 rows 12 were deleted at the read, and 5 of the others since; what is kept or of others does not count."""
    found = rewrite_of(
        SNAPSHOT,
        OUR_SUMMARY,
        107,
        [
            written_entry(DELETED, "a", 20),
            written_entry(DELETED, "b", 40),
            written_entry(ADDED, "out", 48),
            written_entry(ADDED, "late", 5, kind, "out"),
            written_entry(ADDED, "rest", 3, DeleteKind.POSITION, "other"),
            written_entry(DELETED, "theirs", 8, DeleteKind.POSITION),
            written_entry(EXISTING, "kept", 1_000, by=3),
        ],
    )
    assert (found.inputs.rows, found.outputs.rows, found.deleted_rows) == (43, 43, 12)
    assert (found.inputs.files, found.outputs.files, found.version) == (("a", "b"), ("out",), 107)


IN_A_CELL = f"/t/data/{name_prefix('[]')}00000-1-a-0-00001.parquet"


def test_the_cell_of_a_file_is_known_however_old_the_file_is_and_other_tags_are_not() -> None:
    history = FileHistory(HEAD)
    for path, tags in ((IN_A_CELL, {CELL_TAG: "[]"}), ("/t/data/a.parquet", {})):
        one = Entry(EntryStatus.ADDED, 7, 7, path, WHOLE_TABLE, 9, 1, None)
        assert history.data_file(one).tags == tags
        assert history.removed_file(one).tags == (tags or None)


def test_a_run_on_cells_reports_what_is_left_and_a_copied_mark_does_not() -> None:
    mark = CommitMetadata(OURS, mode=CLUSTER, left_bytes=5, settled_files=2, settled_bytes=-1).encode()
    for operation, report in (("replace", CellReport(5, 2, 0)), ("append", None)):
        snapshot = SnapshotRecord(2, 1, 2, 2_000, "m", operation, {COMMIT_KEY: mark})
        assert snapshot_commit(snapshot, Position(2_000, "u.2"), (), FileHistory(HEAD)).cells == report
    plain = SnapshotRecord(2, 1, 2, 2_000, "m", "replace", {COMMIT_KEY: CommitMetadata(OURS, left_bytes=5).encode()})
    assert snapshot_commit(plain, Position(2_000, "u.2"), (), FileHistory(HEAD)).cells is None
