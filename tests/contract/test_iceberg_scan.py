"""What one call says of the files of a scan is what pyiceberg reads of them in the manifests."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import GroupStatus
from shared.partitions import WHOLE_TABLE
from tests.contract.test_iceberg_rewrite import KINDS, MERGE_ON_READ

if TYPE_CHECKING:
    from actor.formats.iceberg.inputs import AppliedDelete, LiveInput
    from tests.support.iceberg_lab import IcebergLab

pytestmark = pytest.mark.spark

TAGS = {"lakewright.level": "3"}


class Manifests:
    """The newest snapshot of a table as pyiceberg reads its metadata and manifests: without Java, and without us."""

    def __init__(self, metadata_file: str) -> None:
        from pyiceberg.table import StaticTable

        self._table = StaticTable.from_metadata(metadata_file)
        entries = list(self._entries())
        self._data = {one.data_file.file_path: one for one in entries if _is_data(one)}
        self._deletes = [one for one in entries if not _is_data(one)]

    def _entries(self) -> Iterator[Any]:
        """Yield all live files; as of format version 3, of which pyiceberg itself does not ask where vectors lie."""
        from pyiceberg import manifest

        snapshot = self._table.current_snapshot()
        assert snapshot is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(manifest, "DEFAULT_READ_VERSION", max(2, self._table.metadata.format_version))
            for one in snapshot.manifests(self._table.io):
                yield from one.fetch_manifest_entry(self._table.io)

    def inputs(self) -> dict[str, "LiveInput"]:
        """Return all data files, each with the deletes that apply to it."""
        from actor.formats.iceberg.copy_choice import ManifestEntry
        from actor.formats.iceberg.inputs import LiveInput
        from shared.formats.iceberg.deletes import deletes_id
        from shared.table import DataFile

        found = {}
        for task in self._table.scan().plan_files():
            entry = self._data[task.file.file_path]
            file, snapshot = entry.data_file, self._added_by(entry)
            deletes = tuple(self._applied(entry, task.delete_files))
            named = [one for one in deletes if one.may_name_rows]
            places = [one.path for one in named if one.is_positional]
            known = DataFile(
                file.file_path,
                file.file_size_in_bytes,
                self._partition(file),
                dv_id=deletes_id(places, has_values=any(not one.is_positional for one in named)),
                rows=file.record_count,
                deleted_rows=min(file.record_count, sum(one.rows for one in named if one.is_of_one_file)),
                modified_ms=snapshot.timestamp_ms if snapshot else 0,
                tags=TAGS if _is_rewrite(snapshot) else {},
            )
            described = ManifestEntry(file.file_format.lower(), bool(file.key_metadata), file.sort_order_id or 0)
            found[known.path] = LiveInput(
                known.path, known.size_bytes, file.record_count, file.spec_id, deletes, known, described
            )
        return found

    def _added_by(self, entry: Any) -> Any:
        """Return the snapshot that added a file; format version 1 has no number by which we could find it."""
        return self._table.snapshot_by_id(entry.snapshot_id) if entry.file_sequence_number else None

    def _applied(self, data: Any, planned: Any) -> Iterator["AppliedDelete"]:
        from actor.formats.iceberg.inputs import AppliedDelete
        from shared.table import DeleteKind

        path = data.data_file.file_path
        places = {one.file_path for one in planned}
        for entry in sorted(self._deletes, key=lambda one: _place(one.data_file)):
            file, is_vector = entry.data_file, entry.data_file.file_format == "PUFFIN"
            referenced = _referenced(file)
            # pyiceberg takes a vector for a file of positions, which applies to all files of its partition.
            if file.file_path not in places or (is_vector and referenced != path):
                continue
            may_name = entry.sequence_number >= data.file_sequence_number
            yield AppliedDelete(
                _place(file),
                DeleteKind.VECTOR if is_vector else DeleteKind.POSITION,
                file.record_count,
                is_exact=is_vector,
                is_of_one_file=referenced == path,
                partition=self._partition(file),
                may_name_rows=may_name,
                is_of_earlier=not may_name and _is_rewrite(self._added_by(data)),
                is_parquet=file.file_format == "PARQUET",
                offset=_of_version_3(file, "content_offset") if is_vector else 0,
                size_bytes=_of_version_3(file, "content_size_in_bytes") if is_vector else file.file_size_in_bytes,
                sequence=entry.sequence_number,
            )

    def _partition(self, file: Any) -> Any:
        """Return the key of a file's partition, with values as pyiceberg writes them in paths."""
        texts: dict[str, str | None] = {}
        for place, field in enumerate(self._table.specs()[file.spec_id].fields):
            value, source = file.partition[place], self._table.schema().find_type(field.source_id)
            texts[field.name] = None if value is None else field.transform.to_human_string(source, value)
        if file.spec_id:
            texts["#spec"] = str(file.spec_id)
        return json.dumps(texts, sort_keys=True, separators=(",", ":"))


def _is_data(entry: Any) -> bool:
    return int(entry.data_file.content) == 0


def _is_rewrite(snapshot: Any) -> bool:
    return snapshot is not None and "lakewright" in snapshot.summary.additional_properties


def _place(file: Any) -> str:
    offset = _of_version_3(file, "content_offset")
    return str(file.file_path) if offset is None else f"{file.file_path}#{offset}"


def _referenced(file: Any) -> str | None:
    """Return the one data file that deletes are of, by their field or by the bounds of the paths in them."""
    named = _of_version_3(file, "referenced_data_file")
    paths = {(one or {}).get(2147483546, b"").decode() for one in (file.lower_bounds, file.upper_bounds)}
    return named or (paths.pop() or None if len(paths) == 1 else None)


def _of_version_3(file: Any, name: str) -> Any:
    from pyiceberg.manifest import DATA_FILE_TYPE

    values = dict(zip((one.name for one in DATA_FILE_TYPE[3].fields), file._data, strict=False))
    return values.get(name)


def described(ice: "IcebergLab", table: str) -> dict[str, "LiveInput"]:
    """Return all live files as one call describes them; those of a partition, or with tasks, are described alike."""
    java = ice.engine._tables.load(ice.location(table))
    head = java.refresh()
    assert head.current is not None
    live = java.inputs(head, head.current, partitions=None)
    with_tasks = java.inputs(head, head.current, partitions={one.file.partition for one in live.values()}, paths=live)
    assert with_tasks == live
    assert {path: str(one.task.file().location()) for path, one in with_tasks.items()} == {path: path for path in live}
    for one in live.values():
        assert java.inputs(head, head.current, partitions={one.file.partition})[one.path].file == one.file
    return {path: replace(one, deletes=_without_objects(one)) for path, one in live.items()}


def _without_objects(file: "LiveInput") -> "tuple[AppliedDelete, ...]":
    """Return deletes in the order of their paths, each checked to be of the object of Iceberg's that it names."""
    for one in file.deletes:
        assert one.listed is not None
        assert one.path.startswith(str(one.listed.get().location()))
    return tuple(replace(one, listed=None) for one in sorted(file.deletes, key=lambda one: one.path))


@pytest.mark.parametrize(
    "kind", [kind if kind == "v2 by value" else pytest.param(kind, marks=pytest.mark.long("iceberg")) for kind in KINDS]
)
def test_files_are_described_as_pyiceberg_reads_the_manifests(ice: "IcebergLab", kind: str) -> None:
    """Files of an older spec, with deletes by position, of null partitions, and of a rewrite of ours are among them."""
    version, by = KINDS[kind]
    table = ice.create("t", version=version, by=by, properties=MERGE_ON_READ if version > 1 else {})
    for number in range(4):
        ice.append(table, number)
    rewritten = ice.live(table, WHOLE_TABLE if not by else next(iter(described(ice, table).values())).file.partition)
    ice.rewrite(table, rewritten[:2], tags=TAGS)
    ice.sql(f"INSERT INTO {table} VALUES (NULL, NULL, NULL, NULL, NULL)")
    ice.sql(f"DELETE FROM {table} WHERE id IN (3, 25, 47)")
    ice.java(table).updateSpec().addField("x").commit()
    ice.append(table, 4)
    found = described(ice, table)
    assert found == Manifests(str(ice.java(table).operations().current().metadataFileLocation())).inputs()
    assert len({one.file.partition for one in found.values()}) > 2
    assert len({one.spec for one in found.values()}) == 2
    assert any(one.deletes for one in found.values()) == (version > 1)
    assert any(one.file.tags for one in found.values()) == (version > 1)


def test_metadata_that_are_read_as_what_changed_are_those_that_are_read_whole(ice: "IcebergLab") -> None:
    table = ice.create("t")
    ice.append(table, 0)
    java = ice.engine._tables.load(ice.location(table))
    seen = [java.head()]
    for number in (1, 2):
        ice.append(table, number)
        seen.append(java.refresh())
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('label'='x')")
    seen.append(java.refresh())
    java.raw.expireSnapshots().expireSnapshotId(seen[0].current).commit()
    seen.append(java.refresh())
    assert [len(one.snapshots) for one in seen] == [1, 2, 3, 3, 2]
    assert java.head() is seen[-1]
    whole = java.whole_head()
    assert replace(seen[-1], records=whole.records) == whole
    assert seen[-1].records.path == whole.records.path
    assert seen[-1].snapshots[seen[1].current or 0] is seen[1].snapshots[seen[1].current or 0]


SHORT_HISTORY, LONG_HISTORY = 100, 5_000
"""Snapshots of a table, of which a commit adds one."""


def test_what_a_commit_changed_is_no_more_to_read_after_a_long_history_than_after_a_short_one(
    ice: "IcebergLab",
) -> None:
    table = ice.create("t")
    ice.append(table, 0)
    java, resolve = ice.java(table), ice.engine._scala.resolve
    metadata = json.loads(resolve("org.apache.iceberg.TableMetadataParser").toJson(java.operations().current()))

    def of(count: int) -> Any:
        """Return the table with so many snapshots."""
        (one,), now = metadata["snapshots"], metadata["last-updated-ms"]
        ids = [{"snapshot-id": number, "sequence-number": number} for number in range(1, count + 1)]
        made = metadata | {
            "snapshots": [one | number for number in ids],
            "current-snapshot-id": count,
            "last-sequence-number": count,
            "refs": {"main": {"snapshot-id": count, "type": "branch"}},
            "snapshot-log": [{"snapshot-id": count, "timestamp-ms": now}],
        }
        path = ice.folder / f"{count}.metadata.json"
        path.write_text(json.dumps(made))
        operations = resolve("org.apache.iceberg.StaticTableOperations")(path.as_uri(), java.io())
        return resolve("org.apache.iceberg.BaseTable")(operations, "t")

    def changed(count: int) -> str:
        head = ice.engine._scala.iceberg_head
        known = json.loads(str(head.since(of(count), "")))
        assert len(known["snapshots"]) == count
        return str(head.since(of(count + 1), known["identity"]))

    short, long = changed(SHORT_HISTORY), changed(LONG_HISTORY)
    assert [len(json.loads(one)["snapshots"]) for one in (short, long)] == [1, 1]
    assert len(long) <= 1.1 * len(short)


def test_the_size_of_a_file_is_what_the_store_says_now(ice: "IcebergLab") -> None:
    table = ice.create("t")
    for number in range(2):
        ice.append(table, number)
    kept, cut = sorted(described(ice, table).values(), key=lambda one: one.path)
    local = Path(cut.path.removeprefix("file:"))
    local.write_bytes(local.read_bytes()[:-1])
    sizes = ice.engine._tables.load(ice.location(table)).sizes(one for one in (kept.path, cut.path, f"{cut.path}.gone"))
    assert sizes == {kept.path: kept.size_bytes, cut.path: cut.size_bytes - 1, f"{cut.path}.gone": None}


MAX_ROUND_TRIPS = 60
"""Calls of a job from Python into the JVM, each a third of a millisecond of CPU; 128 before they were joined."""


def test_a_job_takes_few_round_trips_to_the_jvm(ice: "IcebergLab", monkeypatch: pytest.MonkeyPatch) -> None:
    table = ice.create("t")
    for number in range(5):
        ice.append(table, number)

    def job(count: int) -> None:
        files = ice.live(table, WHOLE_TABLE)[:count]
        assert ice.rewrite(table, files).groups[0].status is GroupStatus.COMMITTED

    job(2)
    made = ice.round_trips(monkeypatch)
    job(3)
    assert len(made) <= MAX_ROUND_TRIPS, "\n".join(made)
