"""How a table is read from its log: names below its folder, times of commits, actions, and one that is not there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.actions import (
    LoggedFile,
    decode_add,
    decode_metadata,
    encode,
    read_paths,
    vector_id,
    with_range,
)
from actor.formats.delta.commit_file import CommitFile
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog
from actor.formats.delta.table_files import DeltaTableFiles
from actor.formats.delta.table_store import TableStore
from shared.errors import Corrupt, Unsupported
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.paths.stored_file import StoredFile
from shared.table import CommitOrigin, PartitionColumn, TableMetadata
from shared.typed_json import json_object

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


def metadata(columns: list[str], *fields: dict[str, object], **configuration: str) -> str:
    schema = json.dumps({"fields": list(fields)})
    body = {"id": "t", "partitionColumns": columns, "schemaString": schema, "configuration": configuration}
    return json.dumps({"metaData": body})


def test_a_partition_column_that_the_schema_does_not_have_is_damage() -> None:
    with pytest.raises(Corrupt, match="'day', which its schema does not have"):
        decode_metadata(metadata(["day"], {"name": "dt", "type": "date"}))


def test_under_column_mapping_a_partition_column_has_its_physical_name() -> None:
    field = {"name": "dt", "type": "date", "metadata": {"delta.columnMapping.physicalName": "col-1"}}
    mapped = decode_metadata(metadata(["dt"], field, **{"delta.columnMapping.mode": "name"}))
    assert mapped.partition_columns == (PartitionColumn("dt", "col-1", "date"),)


UUID = "ab^-aqEH.-t@S}K{vb[*"


@pytest.mark.parametrize("prefix", ["../other/", "/lake/other", "a/../../b"])
def test_a_deletion_vector_that_leads_out_of_the_table_is_not_read(prefix: str) -> None:
    with pytest.raises(Unsupported, match="leads out of its table"):
        vector_id({"storageType": "u", "pathOrInlineDv": prefix + UUID, "offset": 1})


def logged(path: str, vector: dict[str, object] | None = None) -> LoggedFile:
    add: dict[str, object] = {"path": path, "size": 1, "partitionValues": {}}
    add |= {"deletionVector": vector | {"cardinality": 1}} if vector else {}
    return LoggedFile(decode_add(add, ()), encode(add))


def test_rows_are_read_from_data_files_and_from_those_of_their_vectors() -> None:
    own = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    files = [
        logged("a"),
        logged("b", own),
        logged("c", {"storageType": "i", "pathOrInlineDv": "x"}),
        logged("d", {"storageType": "p", "pathOrInlineDv": "s3://b/v.bin"}),
    ]
    vector = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert [*read_paths(files)] == ["a", "b", vector, "c", "d", "s3://b/v.bin"]
    assert LiveGroup(FileGroup(WHOLE_TABLE, (), RewriteMode.FULL), tuple(files), 1, None).delete_files == (
        vector,
        "s3://b/v.bin",
    )
    with pytest.raises(Corrupt, match="of e has no valid name"):
        list(read_paths([logged("e", {"storageType": "u", "pathOrInlineDv": "short"})]))


def test_the_id_of_a_deletion_vector_has_its_offset_where_there_is_one() -> None:
    assert vector_id({"storageType": "u", "pathOrInlineDv": UUID, "offset": 4}) == f"u{UUID}@4"
    assert vector_id({"storageType": "i", "pathOrInlineDv": "inline"}) == "iinline"
    assert vector_id(None) is None


@pytest.mark.parametrize("stats", [None, "", "no JSON", '{"numRecords":3', "[3]", "3"])
def test_statistics_that_are_no_json_object_say_nothing_of_their_file(stats: str | None) -> None:
    assert json_object(stats) == {}
    assert decode_add({"path": "x", "size": 1, "stats": stats}, ()).rows is None


def ranged(low: object, high: object, kind: str = "long") -> tuple[int, int] | None:
    stats = json.dumps({"numRecords": 1, "minValues": {"col-1": low}, "maxValues": {"col-1": high}})
    add = {"path": f"f{low}", "size": 1, "stats": stats}
    return with_range(LoggedFile(decode_add(add, ()), encode(add)), PartitionColumn("k", "col-1", kind)).key_range


def test_a_file_has_the_range_of_the_key_that_its_statistics_say() -> None:
    assert ranged(3, 9) == (3, 9)
    file = LoggedFile(decode_add({"path": "f", "size": 1}, ()), '{"path":"f"}')
    assert with_range(file, None) is file.file
    assert with_range(file, PartitionColumn("k", "col-1", "long")).key_range is None


def test_ranges_of_texts_that_the_log_cuts_touch_at_what_it_keeps() -> None:
    same = "x" * 32
    before, after = ranged("a", same + "\U0010ffff", "string"), ranged(same, same + "\U0010ffff", "string")
    assert before is not None
    assert after is not None
    assert before[1] <= after[0]
