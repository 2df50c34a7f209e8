"""How a vacuum reads a table: names below its folder, times of commits, and a commit that is not there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from actor.formats.delta.commit_file import CommitFile
from actor.formats.delta.log import TableLog
from actor.formats.delta.table_files import DeltaTableFiles
from actor.formats.delta.table_store import TableStore
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.stored_file import StoredFile
from shared.table import CommitOrigin, TableMetadata

METADATA = TableMetadata("t")


class Log:
    """A log with one commit, version 3."""

    def __init__(self, location: str) -> None:
        self.location = location

    def snapshot(self) -> Any:
        return SimpleNamespace(
            version=lambda: 3,
            allFiles=lambda: [{"path": "a%20b.parquet"}],
            tombstones=lambda: [{"path": "old.parquet", "size": 7, "deletionTimestamp": 11}, {"path": "when.parquet"}],
        )

    def commit_file(self, version: int) -> CommitFile | None:
        text = '{"commitInfo": {"timestamp": 5}}\n{"add": {"path": "new.parquet", "size": 9}}\n'
        return CommitFile("d3", text) if version == 3 else None

    def digest(self, version: int) -> str | None:
        return "d3" if version == 3 else None


class Store:
    """A store that keeps what it was told to delete."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def rows_as_json(self, rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> list[str]:
        return [json.dumps({name: row[name] for name in fields if name in row}) for row in rows]

    def list_log(self, pattern: str) -> Mapping[str, int]:
        assert pattern == "[0-9]*.json"
        return {"00000000000000000003.json": 40, "00000000000000000002.00000000000000000003.compacted.json": 41}

    def list_recursively(self) -> Iterator[tuple[str, int, int]]:
        yield "a b.parquet", 1, 2

    def statuses(self, names: Sequence[str]) -> dict[str, tuple[int, int] | None]:
        return {name: (1, 2) if name == "a b.parquet" else None for name in names}

    def delete(self, names: Sequence[str]) -> None:
        self.deleted += names

    def clock_ms(self) -> int:
        return 77


def opened(tmp_path: Path, store: Store | None = None) -> DeltaTableFiles:
    return DeltaTableFiles(
        cast("TableLog", Log(tmp_path.as_uri())),
        cast("TableStore", store or Store()),
        lambda snapshot: METADATA if snapshot.version() == 3 else TableMetadata("other"),
        end=lambda mark, figures: mark.origin.token + figures["files_deleted"],
    )


def test_names_of_live_and_removed_files_are_decoded_and_a_removal_without_a_time_has_none(tmp_path: Path) -> None:
    table = opened(tmp_path)
    assert table.head() == (3, METADATA)
    assert [one.own for one in table.live()] == [(("a b.parquet", 0),)]
    assert [(one.reference.own, one.deleted_ms) for one in table.tombstones()] == [
        ((("old.parquet", 7),), 11),
        ((("when.parquet", 0),), None),
    ]


def test_compacted_commits_are_no_commits_and_a_commit_that_is_gone_is_none(tmp_path: Path) -> None:
    table = opened(tmp_path)
    assert table.commit_times() == {3: 40}
    assert table.commit(2) is None
    later, unknown = table.commit(3, 40), table.commit(3)
    assert later is not None
    assert unknown is not None
    assert (later.time_ms, unknown.time_ms) == (40, 5), "the later of the file's time and the writer's"
    assert later.added[0].own == (("new.parquet", 9),)


def test_only_files_that_exist_are_stored_and_the_end_carries_mark_and_figures(tmp_path: Path) -> None:
    store = Store()
    table = opened(tmp_path, store)
    found = StoredFile("a b.parquet", 1, 2)
    assert list(table.list_files()) == [found]
    assert table.stored(["a b.parquet", "gone.parquet"]) == {"a b.parquet": found}
    table.delete(["a b.parquet"])
    assert store.deleted == ["a b.parquet"]
    assert table.end(CommitMetadata(CommitOrigin("job", 7)), {"files_deleted": 2}) == 9


def test_the_digest_of_a_commit_is_the_logs_and_the_time_is_the_stores(tmp_path: Path) -> None:
    table = opened(tmp_path)
    assert (table.digest(3), table.digest(4), table.clock_ms()) == ("d3", None, 77)
