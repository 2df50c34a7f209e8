"""Deletes by value of Iceberg tables become positions: every reader sees the rows that it saw, whatever others do."""

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from actor.formats.iceberg import java_deletes, value_groups
from actor.formats.iceberg.convert_deletes import Conversion
from actor.formats.iceberg.delete_groups import DeletesChange
from actor.formats.iceberg.java_deletes import JavaDeletes
from actor.formats.iceberg.java_table import JavaTable, new_deletes
from actor.formats.iceberg.merge_deletes_job import NOTHING, MergeDeletesJob
from actor.formats.iceberg.parquet_task import IcebergTasks
from actor.ports import TableJob, TableJobOutcome
from actor.proofread.proofreader import Proofreader
from actor.rewrite.model import NotAsked
from shared.errors import RefusedFiles
from shared.formats.iceberg.names import COMMIT_KEY, CONVERTED_KEY, PROOFREAD_KEY
from shared.layout.upkeep import CONVERT_DELETES
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy, Proofread
from shared.table import CommitOrigin, DeleteKind
from tests.contract.test_iceberg_merge_deletes import applied, others_see, play
from tests.iceberg_stress.readers import _DuckDb
from tests.support.iceberg_jvm import IcebergJvm
from tests.support.local_vacuum import Control

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

PROOFS = Proofreader()
VERSIONS = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergJvm]:
    running = IcebergJvm(tmp_path_factory.mktemp("iceberg"))
    yield running
    running.close()
    PROOFS.close()


def convert(
    ice: IcebergJvm, table: Any, *meanwhile: Callable[[], object], mode: Proofread = Proofread.STRICT
) -> TableJobOutcome:
    """Convert and merge; meanwhile: what happens between look and commit of each attempt, one after the other."""
    classes: Any = ice.classes
    loaded = JavaTable(classes, table, str(table.location()))
    control, others = Control(), iter(meanwhile)

    def change(_count: int) -> None:
        next(others, lambda: None)()

    control.before_change = change
    job = TableJob(CONVERT_DELETES.kind, str(table.location()), Policy(), CommitOrigin("job", 7))
    prove = partial(PROOFS.check_deletes, mode=mode, tag="job")
    within = Boundary((ice.folder.as_uri(),), allows_external_files=True).for_literal_paths()
    deletes, session = JavaDeletes(classes, loaded), None
    conversion = Conversion(deletes, loaded.columns, IcebergTasks(classes, session, loaded), prove)  # type: ignore[arg-type]
    return MergeDeletesJob(
        loaded, deletes, job, control, lambda _head: None, within, prove, conversion=conversion
    ).run()


def kinds(ice: IcebergJvm, table: Any) -> set[DeleteKind]:
    return {kind for kinds in applied(ice, table).values() for kind in kinds}


@VERSIONS
@pytest.mark.parametrize("by_g", [False, True])
def test_a_delete_by_value_becomes_positions_of_the_older_data_files_and_goes(
    ice: IcebergJvm, version: int, by_g: bool
) -> None:
    table = ice.create(f"one-{version}-{by_g}", by_g=by_g, version=version)
    one, two, _ = ice.append(table, 0, 10, 20)
    ice.append_files(table, range(5), to="g=1")
    ice.delete_values(table, [1, 2, 15, 99])
    (later,) = ice.append(table, 0)
    rows = ice.rows(table)
    done = convert(ice, table)
    assert len(done.commits) == 1
    kind = DeleteKind.POSITION if version == 2 else DeleteKind.VECTOR
    expected = {one: [kind], two: [kind]}
    if not by_g:
        expected |= {path: [kind] for path in ice.inputs(table) if path not in (one, two, later)}
        expected = {path: some for path, some in expected.items() if path in applied(ice, table)}
    assert applied(ice, table) == expected
    assert later not in applied(ice, table)
    assert ice.rows(table) == rows
    others_see(table, rows)
    summary = dict(table.currentSnapshot().summary())
    assert (str(table.currentSnapshot().operation()), summary[CONVERTED_KEY]) == ("delete", "1")
    assert summary[PROOFREAD_KEY] == "rows"
    assert COMMIT_KEY in summary
    assert ice.delete_files_left(table) == set()
    assert convert(ice, table).reason == NOTHING


@pytest.mark.parametrize("by_g", [False, True])
@VERSIONS
def test_after_any_commits_every_reader_sees_the_same_rows_and_no_delete_by_value_is_left(
    ice: IcebergJvm, version: int, by_g: bool
) -> None:
    for number in range(2):
        random = Random(1_000 * version + 10 * by_g + number)
        table = ice.create(f"any-{version}-{by_g}-{number}", by_g=by_g)
        ice.append_files(table, range(900, 910), to="g=1")
        play(ice, table, random, by_g=by_g, upgraded_at=random.choice([5, 10, 13]) if version > 2 else None)
        ice.delete_values(table, [3, 14, 905])
        table.refresh()
        rows = ice.rows(table)
        convert(ice, table)
        assert ice.rows(table) == rows
        assert DeleteKind.EQUALITY not in kinds(ice, table)
        others_see(table, rows)
        assert convert(ice, table).reason == NOTHING
        assert ice.delete_files_left(table) == set()


@VERSIONS
def test_a_compaction_that_others_began_before_a_delete_by_value_fails_once_it_is_gone(
    ice: IcebergJvm, version: int
) -> None:
    """Its output has the rows, and a number for which the delete would still hide them. Iceberg's own check."""
    table = ice.create(f"compacted-{version}", version=version)
    one, two = ice.append(table, 0, 10)
    other, begun = ice.loaded(table), ice.begin_rewrite(table, one)
    ice.delete_values(table, [3])
    assert convert(ice, table).figures["written"] == 1
    rows = ice.rows(table)
    other.refresh()
    with pytest.raises(Exception, match="found new position delete for replaced data file"):
        begun.commit()
    assert ice.rows(table) == rows
    untouched = ice.begin_rewrite(table, two)
    ice.delete_values(table, [999])
    convert(ice, table)
    untouched.commit()
    assert ice.rows(table) == rows


@VERSIONS
def test_our_rewrite_that_began_before_a_delete_by_value_hides_its_rows(ice: IcebergJvm, version: int) -> None:
    table = ice.create(f"ours-{version}", version=version)
    one, two = ice.append(table, 0, 10)
    other = ice.loaded(table)

    def between() -> None:
        ice.delete_values(other, [3, 12])
        convert(ice, other)

    ice.rewrite(table, WHOLE_TABLE, [one, two], between)
    assert ice.rows(table) == [number for number in range(20) if number not in (3, 12)]
    assert len(ice.inputs(table)) == 1
    ice.delete_values(table, [5])
    (path,) = ice.inputs(table)
    ice.rewrite(table, WHOLE_TABLE, [path], lambda: convert(ice, other))
    assert ice.rows(table) == [number for number in range(20) if number not in (3, 5, 12)]


@VERSIONS
def test_what_others_commit_between_look_and_commit_counts(ice: IcebergJvm, version: int) -> None:
    """A data file that they compact has the number of its snapshot, and is converted in the next attempt."""
    table = ice.create(f"meanwhile-{version}", version=version)
    one, _ = ice.append(table, 0, 10)
    ice.delete_values(table, [3, 14])
    other = ice.loaded(table)
    done = convert(
        ice,
        table,
        lambda: ice.append(other, 0),
        lambda: ice.delete_values(other, [4]),
        lambda: ice.rewrite_as_others(other, one),
        lambda: ice.upsert(other, [5, 6]) if version == 2 else ice.append(other, 40),
    )
    rows = ice.rows(table)
    gone = {4, 5, 6} if version == 2 else {4}
    new = [5, 6] if version == 2 else [*range(40, 50)]
    old = [number for number in range(20) if number not in gone | {3, 14}]
    assert rows == sorted([*old, *({*range(10)} - gone), *new])
    assert done.commits
    convert(ice, table)
    assert ice.rows(table) == rows
    assert DeleteKind.EQUALITY not in kinds(ice, table)
    others_see(table, rows)


def test_a_row_level_statement_that_read_the_table_before_fails_or_deletes_its_rows(ice: IcebergJvm) -> None:
    table = ice.create("stale")
    (one,) = ice.append(table, 0)
    ice.delete_values(table, [1])
    stale = ice.loaded(table)
    read = int(stale.currentSnapshot().snapshotId())
    deletes = ice.of_places(stale, [(one, 5)])
    convert(ice, table)
    stale.newRowDelta().validateFromSnapshot(read).validateDeletedFiles().addDeletes(deletes).commit()
    assert ice.rows(table) == [0, 2, 3, 4, 6, 7, 8, 9]
    others_see(table, ice.rows(table))


def test_deletes_of_all_partitions_and_of_one_and_a_spec_that_changed(ice: IcebergJvm) -> None:
    """Those of a spec without fields apply to the files of all; each is converted where it applies."""
    for version in (2, 3):
        table = ice.create(f"specs-{version}", by_g=True, version=version)
        ice.append(table, 0)
        ice.append_files(table, range(20, 30), to="g=1")
        ice.delete_values(table, [1, 21])
        table.updateSpec().removeField("g").commit()
        ice.append_files(table, range(40, 50), to="")
        ice.delete_values(table, [2, 22, 42])
        ice.delete_values(table, [3, 23, 43], spec=0)
        rows = ice.rows(table)
        assert {1, 21} & {*rows} == {21}
        assert {3, 23, 43} & {*rows} == {23, 43}
        assert len(convert(ice, table).commits) >= 2, "those of all are alone"
        assert ice.rows(table) == rows
        assert DeleteKind.EQUALITY not in kinds(ice, table)
        others_see(table, rows)


def test_the_oldest_go_first_where_not_all_fit_and_what_is_too_large_stays(
    ice: IcebergJvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ice.create("bounds")
    for start in range(0, 40, 10):
        ice.append(table, start)
        ice.delete_values(table, [start, start + 1])
    ice.delete_values(table, [*range(5, 12)])
    rows = ice.rows(table)
    monkeypatch.setattr(value_groups, "MOST_KEYS", 4)
    done = convert(ice, table)
    assert len(done.commits) == 2
    assert "1 delete files stay" in done.reason
    assert ice.rows(table) == rows
    monkeypatch.undo()
    assert convert(ice, table).commits
    assert ice.rows(table) == rows
    assert DeleteKind.EQUALITY not in kinds(ice, table)


def field(name: str, kind: Any, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(number).encode()})


def keyed(ice: IcebergJvm, name: str, kind: str, version: int = 2, **more: Any) -> Any:
    """Create a table of `id` (1) and `k` (2) of a type as Iceberg's metadata spell it."""
    key = {"id": 2, "name": "k", "required": False, "type": kind} | more
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}, key]
    text = json.dumps({"type": "struct", "schema-id": 0, "fields": fields})
    schema = ice.classes.resolve("org.apache.iceberg.SchemaParser").fromJson(text)
    given = ice.jvm.java.util.HashMap()
    given.put("format-version", str(version))
    return ice._tables().create(schema, ice.iceberg.PartitionSpec.unpartitioned(), given, (ice.folder / name).as_uri())


def add(ice: IcebergJvm, table: Any, ids: Sequence[int], keys: pa.Array | None, key_id: int | None = 2) -> None:
    """Append a file of these rows; without keys, it lacks the column."""
    columns = {field("id", pa.int64(), 1): pa.array(ids, pa.int64())}
    if keys is not None:
        stored = pa.field("k", keys.type) if key_id is None else field("k", keys.type, key_id)
        columns[stored] = keys
    rows = pa.table([*columns.values()], schema=pa.schema([*columns]))
    table.newAppend().appendFile(ice._file(ice.iceberg.DataFiles.builder(table.spec()), rows).build()).commit()


def delete_keys(ice: IcebergJvm, table: Any, keys: Mapping[str, tuple[int, pa.Array]]) -> None:
    """Delete rows by the values of these columns, each with its id."""
    numbers = ice._gateway.new_array(ice.jvm.int, len(keys))
    for index, (number, _) in enumerate(keys.values()):
        numbers[index] = number
    fields = [field(name, values.type, number) for name, (number, values) in keys.items()]
    rows = pa.table([values for _, values in keys.values()], schema=pa.schema(fields))
    table.newRowDelta().addDeletes(ice._delete(table.spec(), rows).ofEqualityDeletes(numbers).build()).commit()


def seen(table: Any) -> list[int]:
    """Return the ids that DuckDB and, once no row is deleted by value, pyiceberg read."""
    newest = str(table.operations().current().metadataFileLocation())
    path = unquote(urlsplit(newest).path)
    found = _DuckDb()._connection.execute(f"SELECT id FROM iceberg_scan('{path}')").fetchall()
    return sorted(row[0] for row in found)


def pyiceberg_sees(table: Any) -> list[int]:
    newest = str(table.operations().current().metadataFileLocation())
    return sorted(StaticTable.from_metadata(newest).scan().to_arrow()["id"].to_pylist())


UTC = dt.UTC
MOMENTS = [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(2024, 3, 31, 1, 59, 59, 999999, tzinfo=UTC)]
VALUES: Mapping[str, tuple[str, Any, list[Any]]] = {
    "int": ("int", pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "long": ("long", pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "string": ("string", pa.string(), ["", "a", "A", "a ", "ä", "a\x00", "\U0001f40b", "null"]),
    "date": ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    "timestamp": ("timestamp", pa.timestamp("us"), [one.replace(tzinfo=None) for one in MOMENTS]),
    "timestamptz": ("timestamptz", pa.timestamp("us", "UTC"), MOMENTS),
    "short decimal": ("decimal(9, 2)", pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.00"), Decimal("0.01")]),
    "long decimal": ("decimal(38, 4)", pa.decimal128(38, 4), [Decimal(10) ** 33, Decimal(0), Decimal("-0.0001")]),
}
"""Iceberg's type, pyarrow's, and values at the edges."""


@VERSIONS
@pytest.mark.parametrize("name", VALUES)
def test_keys_of_each_type_and_null_which_equals_null(ice: IcebergJvm, name: str, version: int) -> None:
    kind, stored, values = VALUES[name]
    table = keyed(ice, f"{name}-{version}".replace(" ", "-"), kind, version)
    keys = [*values, None]
    add(ice, table, range(len(keys)), pa.array(keys, stored))
    add(ice, table, [100, 101], None)  # The column is missing: null.
    deleted = [values[0], None]
    delete_keys(ice, table, {"k": (2, pa.array(deleted, stored))})
    expected = list(range(1, len(values)))
    convert(ice, table)
    assert table.currentSnapshot().summary().get("total-equality-deletes") == "0"
    assert seen(table) == pyiceberg_sees(table) == expected
    delete_keys(ice, table, {"k": (2, pa.array(values[1:2], stored))})
    convert(ice, table)
    assert seen(table) == pyiceberg_sees(table) == expected[1:]


def test_keys_of_several_columns_and_deletes_by_other_columns(ice: IcebergJvm) -> None:
    table = keyed(ice, "several", "string")
    add(ice, table, [1, 2, 3, 4], pa.array(["a", "b", None, "a"]))
    ids = pa.array([1, 3, 4], pa.int64())
    delete_keys(ice, table, {"id": (1, ids), "k": (2, pa.array(["a", None, "b"]))})
    delete_keys(ice, table, {"k": (2, pa.array(["b"]))})
    convert(ice, table)
    assert seen(table) == pyiceberg_sees(table) == [4]


def test_widened_renamed_and_later_columns(ice: IcebergJvm) -> None:
    table = keyed(ice, "widened", "int")
    add(ice, table, [1, 2, 3], pa.array([7, 8, None], pa.int32()))
    long = getattr(ice.iceberg.types, "Types$LongType").get()
    table.updateSchema().updateColumn("k", long).commit()
    table.updateSchema().renameColumn("k", "key").commit()
    add(ice, table, [4, 5], pa.array([8, 2**40], pa.int64()))
    delete_keys(ice, table, {"key": (2, pa.array([8, 2**40], pa.int64()))})
    convert(ice, table)
    assert seen(table) == pyiceberg_sees(table) == [1, 3]
    delete_keys(ice, table, {"key": (2, pa.array([7], pa.int32()))})  # As a writer of the older schema has it.
    convert(ice, table)
    assert seen(table) == pyiceberg_sees(table) == [3]


def test_a_default_is_the_value_of_the_files_that_lack_the_column(ice: IcebergJvm) -> None:
    table = keyed(ice, "default", "int", 3, **{"initial-default": 7, "write-default": 7})
    add(ice, table, [1, 2], None)
    add(ice, table, [3, 4], pa.array([7, 8], pa.int32()))
    delete_keys(ice, table, {"k": (2, pa.array([7], pa.int32()))})
    done = convert(ice, table)
    assert done.figures["written"] == 2
    assert seen(table) == [4]


def test_files_without_ids_by_the_name_mapping_and_partition_values_that_files_lack(ice: IcebergJvm) -> None:
    table = keyed(ice, "mapped", "string")
    mapping = [{"field-id": 1, "names": ["id", "old_id"]}, {"field-id": 2, "names": ["k", "old_k"]}]
    table.updateProperties().set("schema.name-mapping.default", json.dumps(mapping)).commit()
    rows = pa.table({"old_k": ["a", "b", None], "old_id": [1, 2, 3]})
    table.newAppend().appendFile(ice._file(ice.iceberg.DataFiles.builder(table.spec()), rows).build()).commit()
    delete_keys(ice, table, {"k": (2, pa.array(["b", None]))})
    assert convert(ice, table).figures["written"] == 1
    assert pyiceberg_sees(table) == [1]
    table = ice.create("absent", by_g=True)
    rows = pa.table([range(5)], schema=pa.schema([field("id", pa.int64(), 1)]))
    for to in ("g=1", "g=2"):
        file = ice._file(ice.iceberg.DataFiles.builder(table.spec()), rows).withPartitionPath(to).build()
        table.newAppend().appendFile(file).commit()
    numbers = ice._gateway.new_array(ice.jvm.int, 2)
    numbers[0], numbers[1] = 1, 2
    keys = pa.table([[3, 4], [1, 2]], schema=pa.schema([field("id", pa.int64(), 1), field("g", pa.int64(), 2)]))
    delete = ice._delete(table.spec(), keys).ofEqualityDeletes(numbers).withPartitionPath("g=1").build()
    table.newRowDelta().addDeletes(delete).commit()
    assert convert(ice, table).figures["written"] == 1
    assert pyiceberg_sees(table) == [0, 0, 1, 1, 2, 2, 3, 4, 4]


@pytest.mark.parametrize("kind", ["float", "double", "uuid", "fixed[4]", "binary", "boolean"])
def test_keys_of_other_types_stay_by_name_and_the_others_are_converted(ice: IcebergJvm, kind: str) -> None:
    stored = {
        "float": pa.float32(), "double": pa.float64(), "uuid": pa.uuid(), "fixed[4]": pa.binary(4),
        "binary": pa.binary(), "boolean": pa.bool_(),
    }[kind]  # fmt: skip
    table = keyed(ice, f"odd-{kind}".replace("[", "").replace("]", ""), kind)
    add(ice, table, [1, 2, 3], pa.nulls(3, stored))
    delete_keys(ice, table, {"k": (2, pa.nulls(1, stored))})
    with pytest.raises(RefusedFiles, match=r"1 delete files by value stay, the first, .*: its column k is a"):
        convert(ice, table)
    add(ice, table, [4, 5], pa.nulls(2, stored))
    delete_keys(ice, table, {"id": (1, pa.array([5], pa.int64()))})
    done = convert(ice, table)
    assert (done.figures["written"], "its column k is a" in done.reason) == (1, True)
    assert table.currentSnapshot().summary().get("total-equality-deletes") == "1"


def test_a_dropped_column_a_part_of_another_and_unclear_files_are_refused_by_name(ice: IcebergJvm) -> None:
    table = keyed(ice, "dropped", "int")
    add(ice, table, [1, 2], pa.array([7, 8], pa.int32()))
    delete_keys(ice, table, {"k": (2, pa.array([7], pa.int32()))})
    table.updateSchema().deleteColumn("k").commit()
    with pytest.raises(RefusedFiles, match="a column of its keys was dropped"):
        convert(ice, table)
    table = keyed(ice, "unclear", "int")
    add(ice, table, [1, 2], pa.array([7, 8], pa.int32()), key_id=None)
    delete_keys(ice, table, {"k": (2, pa.array([7], pa.int32()))})
    with pytest.raises(RefusedFiles, match="do not say which column is which"):
        convert(ice, table)
    table = keyed(ice, "stored", "timestamp")
    add(ice, table, [1], pa.array([5], pa.int64()))
    delete_keys(ice, table, {"k": (2, pa.array([5], pa.int64()))})
    with pytest.raises(RefusedFiles, match="the column k is a timestamp, and files store it as INT64"):
        convert(ice, table)


def test_nanoseconds_before_1970_are_refused_whether_or_not_they_are_compared(ice: IcebergJvm) -> None:
    """Readers round them to different microseconds: what one finds deleted, another does not."""
    for mode in (Proofread.STRICT, Proofread.NEVER):
        table = keyed(ice, f"nanoseconds-{mode}", "timestamp")
        times = pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us"))  # noqa: DTZ001 - no zone
        odd = pa.array([-1_500], pa.timestamp("ns"))
        rows = pa.table([[1], odd], schema=pa.schema([field("id", pa.int64(), 1), field("k", odd.type, 2)]))
        file = ice._file(ice.iceberg.DataFiles.builder(table.spec()), rows, use_deprecated_int96_timestamps=True)
        table.newAppend().appendFile(file.build()).commit()
        delete_keys(ice, table, {"k": (2, times)})
        with pytest.raises(RefusedFiles, match="the column k is a timestamp, and files store it as INT96"):
            convert(ice, table, mode=mode)
        assert table.currentSnapshot().summary().get("total-equality-deletes") == "1"


def test_bounds_that_contradict_values_are_refused(ice: IcebergJvm) -> None:
    """Readers that go by bounds see a row that others do not: a conversion would decide for them."""
    table = ice.create("bounds-lie")
    ids = pa.schema([field("id", pa.int64(), 1)])
    rows, others, keys = (pa.table([some], schema=ids) for some in (range(10), range(100, 110), [3]))
    data = ice._file(ice.iceberg.DataFiles.builder(table.spec()), rows).withMetrics(_metrics(ice, table, others))
    table.newAppend().appendFile(data.build()).commit()
    numbers = ice._gateway.new_array(ice.jvm.int, 1)
    numbers[0] = 1
    delete = ice._delete(table.spec(), keys).ofEqualityDeletes(numbers).withMetrics(_metrics(ice, table, keys))
    table.newRowDelta().addDeletes(delete.build()).commit()
    assert not ice.inputs(table)[next(iter(ice.inputs(table)))].deletes, "a scan leaves it out"
    with pytest.raises(RefusedFiles, match="Readers see different rows"):
        convert(ice, table)
    assert ice.delete_files(table) == 1


def _metrics(ice: IcebergJvm, table: Any, rows: pa.Table) -> Any:
    """Return the metrics that Iceberg gives a file of these rows."""
    file = table.io().newInputFile(str(ice._file(ice.iceberg.DataFiles.builder(table.spec()), rows).build().location()))
    return ice.iceberg.parquet.ParquetUtil.fileMetrics(file, ice.iceberg.MetricsConfig.getDefault())


def test_a_file_with_another_number_of_rows_than_its_manifest_says_is_refused(ice: IcebergJvm) -> None:
    table = ice.create("miscounted")
    rows = pa.table([range(10)], schema=pa.schema([field("id", pa.int64(), 1)]))
    file = ice._file(ice.iceberg.DataFiles.builder(table.spec()), rows).withRecordCount(9).build()
    table.newAppend().appendFile(file).commit()
    ice.delete_values(table, [3])
    with pytest.raises(RefusedFiles, match="its manifest says 9 rows"):
        convert(ice, table)
    assert ice.delete_files(table) == 1


def test_a_data_file_that_cannot_be_read_keeps_what_does_not_apply_to_it_from_nothing(ice: IcebergJvm) -> None:
    """Its key column is required, and it lacks it: Iceberg's reader fails."""
    table = keyed(ice, "unreadable", "long", required=True)
    add(ice, table, [1, 2], pa.array([7, 8], pa.int64()))
    delete_keys(ice, table, {"k": (2, pa.array([7], pa.int64()))})
    add(ice, table, [3], None)
    unreadable = next(path for path, file in ice.inputs(table).items() if file.rows == 1)
    delete_keys(ice, table, {"k": (2, pa.array([8], pa.int64()))})
    done = convert(ice, table)
    assert done.figures["written"] == 1
    assert f"Cannot read {unreadable}: " in done.reason
    summary = table.currentSnapshot().summary()
    assert (summary.get("total-equality-deletes"), summary.get("total-position-deletes")) == ("1", "1")
    with pytest.raises(RefusedFiles, match=f"Cannot read {unreadable}: "):
        convert(ice, table)
    assert ice.delete_files_left(table) == set()


def test_longer_keys_than_may_be_held_stay_and_the_others_are_converted(
    ice: IcebergJvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(ice, "long-keys", "string")
    add(ice, table, [1, 2, 3], pa.array(["a", "b" * 8, "c" * 30]))
    for some in (["a", "b" * 8], ["c" * 30], ["a" * 10]):
        delete_keys(ice, table, {"k": (2, pa.array(some))})
    monkeypatch.setattr(java_deletes, "MOST_TEXT", 18)
    done = convert(ice, table)
    assert "they are text of more than 18 characters" in done.reason
    assert table.currentSnapshot().summary().get("total-equality-deletes") == "1"
    monkeypatch.undo()
    convert(ice, table)
    assert seen(table) == pyiceberg_sees(table) == []


def test_a_scan_says_which_data_files_a_group_must_have(ice: IcebergJvm) -> None:
    table = ice.create("covered")
    ice.append(table, 0, 10)
    ice.delete_values(table, [3, 14])
    ice.append(table, 20)
    ice.delete_values(table, [5])
    loaded = JavaTable(ice.classes, table, str(table.location()))
    found = JavaDeletes(ice.classes, loaded).by_value(loaded.refresh())
    assert found is not None
    first, second = sorted(found.deletes, key=lambda one: one.sequence)
    for deletes in ([first], [first, second]):
        group = found.group(deletes)
        assert found.uncovered(group) is None
        assert len(group.inputs) == len(deletes) + 1
        for place, one in enumerate(group.inputs):
            lacking = (*group.inputs[:place], *group.inputs[place + 1 :])
            assert found.uncovered(replace(group, inputs=lacking)) == one.path
            apart = (*group.inputs[:place], replace(one, deletes=()), *group.inputs[place + 1 :])
            assert found.uncovered(replace(group, inputs=apart)) == one.path


def test_what_is_removed_must_be_live(ice: IcebergJvm) -> None:
    """Or what hides rows would come, and what hid them would stay or have been another's to remove."""
    table = ice.create("removed-before")
    (one,) = ice.append(table, 0)
    ice.delete_values(table, [3])
    loaded = JavaTable(ice.classes, table, str(table.location()))
    found = JavaDeletes(ice.classes, loaded).by_value(loaded.refresh())
    assert found is not None
    convert(ice, table)
    before = loaded.refresh()
    new = new_deletes(ice.of_places(table, [(one, 5)]), None)
    change = DeletesChange(before.current or 0, found.deletes, (new,), is_new_to_others=True)
    with pytest.raises(NotAsked) as refused:
        loaded.commit_deletes(change, {})
    assert "Missing required files to delete" in str(refused.value.__cause__)
    assert loaded.refresh().current == before.current


@VERSIONS
def test_an_upsert_keeps_its_own_rows_and_a_group_of_several_hides_by_the_newest(ice: IcebergJvm, version: int) -> None:
    table = ice.create(f"upserts-{version}", version=version)
    ice.append(table, 0)
    for ids in ([3, 5], [3]):
        rows, deletes = ice._data(table.spec(), ids).build(), ice._of_values(table.spec(), ids)
        table.newRowDelta().addRows(rows).addDeletes(deletes).commit()
    assert ice.rows(table) == list(range(10))
    assert len(convert(ice, table).commits) == 1, "all in one group"
    assert ice.rows(table) == list(range(10))
    assert DeleteKind.EQUALITY not in kinds(ice, table)
    others_see(table, list(range(10)))


@VERSIONS
def test_keys_of_partitions_that_data_files_lack_and_of_the_null_partition(ice: IcebergJvm, version: int) -> None:
    """The value of the partition is that of the rows, and null equals null."""
    table = ice.create(f"null-partition-{version}", by_g=True, version=version)
    ids = pa.table([range(5)], schema=pa.schema([field("id", pa.int64(), 1)]))
    null = "g=__HIVE_DEFAULT_PARTITION__"
    for to in ("g=1", null):
        file = ice._file(ice.iceberg.DataFiles.builder(table.spec()), ids).withPartitionPath(to).build()
        table.newAppend().appendFile(file).commit()
    numbers = ice._gateway.new_array(ice.jvm.int, 2)
    numbers[0], numbers[1] = 1, 2
    for to, values in ((null, [None, 1]), ("g=1", [None, 1])):
        rows = [pa.array([3, 4], pa.int64()), pa.array(values, pa.int64())]
        keys = pa.table(rows, schema=pa.schema([field("id", pa.int64(), 1), field("g", pa.int64(), 2)]))
        delete = ice._delete(table.spec(), keys).ofEqualityDeletes(numbers).withPartitionPath(to).build()
        table.newRowDelta().addDeletes(delete).commit()
    assert convert(ice, table).figures["written"] == 2
    assert table.currentSnapshot().summary().get("total-equality-deletes") == "0"
    assert pyiceberg_sees(table) == seen(table) == [0, 0, 1, 1, 2, 2, 3, 4]
