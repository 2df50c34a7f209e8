"""A commit is decoded as the protocol says, and damage is reported with table, version and line."""

import json
from typing import Any

import pytest

from decider.formats.delta.actions import commit_time_ms, decode_commit
from decider.formats.delta.damage import LogFile
from decider.formats.delta.files import rows_in
from decider.formats.delta.metadata import READER_FEATURES, REFUSED_FEATURES, check_readable
from shared.errors import Corrupt, Unsupported
from shared.partitions import WHOLE_TABLE
from shared.table import Commit, CommitOrigin, PartitionColumn, TableMetadata, TableProtocol, schema_digest

LOG = LogFile("file:///lake/t", 12, f"{12:020d}.json")
PLAIN = TableMetadata("id")
BY_DAY = TableMetadata("id", (PartitionColumn("day", "day", "date"),))
DV = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 6}


def add(**fields: Any) -> dict[str, Any]:
    return {"add": {"path": "p", "partitionValues": {}, "size": 5, "modificationTime": 9, "dataChange": True, **fields}}


def remove(**fields: Any) -> dict[str, Any]:
    return {"remove": {"path": "p", "dataChange": True, **fields}}


def schema(*fields: tuple[str, str, str]) -> str:
    made = [
        {"name": name, "type": kind, "nullable": True, "metadata": {"delta.columnMapping.physicalName": physical}}
        for name, kind, physical in fields
    ]
    return json.dumps({"type": "struct", "fields": made})


def decoded(*actions: object, metadata: TableMetadata | None = PLAIN) -> Commit:
    lines = [action if isinstance(action, str) else json.dumps(action) for action in actions]
    return decode_commit("\n".join(lines).encode(), LOG, metadata)


def test_an_add_becomes_a_live_file() -> None:
    stats = '{"numRecords":50,"minValues":{"numRecords":3}}'
    commit = decoded(add(stats=stats, tags={"a": "1", "b": None}, deletionVector=DV))
    (file,) = commit.added
    assert (file.path, file.size_bytes, file.modified_ms, file.rows) == ("p", 5, 9, 50)
    assert (file.dv_id, file.deleted_rows) == ("uab^-aqEH.-t@S}K{vb[*k^@4", 6)
    assert (file.partition, dict(file.tags)) == (WHOLE_TABLE, {"a": "1"})
    assert commit.version == 12


@pytest.mark.parametrize(
    ("metrics", "ran_ms"),
    [
        ({"executionTimeMs": "5023"}, 5_023),
        ({"execution_time_ms": 17}, 17),
        ({"executionTimeMs": "soon"}, 0),
        ({"executionTimeMs": -4}, 0),
        ({"executionTimeMs": "9" * 13}, 0),
        ({}, 0),
        ("none", 0),
    ],
)
def test_how_long_a_command_ran_is_read_where_the_log_records_it(metrics: object, ran_ms: int) -> None:
    assert decoded({"commitInfo": {"operation": "MERGE", "operationMetrics": metrics}}, add()).execution_ms == ran_ms


def test_an_inline_vector_without_offset_has_an_id_without_one() -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "wi5b=0000", "sizeInBytes": 40, "cardinality": 6}
    assert decoded(add(deletionVector=vector)).added[0].dv_id == "iwi5b=0000"


def test_an_offset_of_zero_is_part_of_the_vectors_id() -> None:
    assert decoded(remove(deletionVector={**DV, "offset": 0})).removed[0].dv_id == "uab^-aqEH.-t@S}K{vb[*k^@0"


@pytest.mark.parametrize(
    ("stats", "rows"),
    [
        ('{"numRecords":0}', 0),
        ('{"numRecords":7,"minValues":{}}', 7),
        ('{ "numRecords" : 7 }', 7),
        ('{"minValues":{"numRecords":1},"numRecords":7}', 7),
        ('{"minValues":{"numRecords":1}}', None),
        ('{"numRecords":null}', None),
        ('{"numRecords":-1}', None),
        ('{"numRecords":7.5}', None),
        ('{"numRecords":true}', None),
        ('{"numRecords":12', None),
        ('{"numRecords":\u0667}', None),
        ("[]", None),
        ("", None),
    ],
)
def test_rows_are_the_outermost_number_of_records_or_unknown(stats: str, rows: int | None) -> None:
    assert rows_in(stats) == rows


def test_a_removal_without_size_and_values_leaves_them_open() -> None:
    commit = decoded(remove(), remove(path="q", size=3, partitionValues={"day": "2026-01-02"}), metadata=BY_DAY)
    bare, full = commit.removed
    assert (bare.size_bytes, bare.partition) == (None, None)
    assert (full.size_bytes, full.partition) == (3, '{"day":"2026-01-02"}')


def test_a_removal_that_admits_to_be_unfilled_is_not_believed() -> None:
    unfilled = remove(size=0, partitionValues={}, extendedFileMetadata=False)
    assert decoded(unfilled, metadata=BY_DAY).removed[0].size_bytes is None
    assert decoded(unfilled, metadata=BY_DAY).removed[0].partition is None
    assert decoded(unfilled).removed[0].partition == WHOLE_TABLE


def test_metadata_of_a_commit_holds_for_the_lines_above_it_and_the_old_one_for_removals() -> None:
    meta = {
        "metaData": {
            "id": "id",
            "schemaString": schema(("Region", "string", "col-1")),
            "partitionColumns": ["Region"],
            "configuration": {"delta.columnMapping.mode": "name"},
        }
    }
    old = remove(path="q", partitionValues={"day": "2026-01-02"})
    commit = decoded(add(partitionValues={"col-1": "x"}), old, meta, metadata=BY_DAY)
    assert commit.added[0].partition == '{"col-1":"x"}'
    assert commit.removed[0].partition == '{"day":"2026-01-02"}'
    assert commit.metadata == TableMetadata(
        *("id", (PartitionColumn("Region", "col-1", "string"),), {"delta.columnMapping.mode": "name"}, "delta"),
        schema_digest=schema_digest(meta["metaData"]["schemaString"]),
    )


def test_physical_names_count_only_under_column_mapping() -> None:
    meta = {"metaData": {"id": "id", "schemaString": schema(("r", "string", "col-1")), "partitionColumns": ["r"]}}
    assert decoded(add(partitionValues={"r": ""}), meta, metadata=None).added[0].partition == '{"r":null}'


def test_two_spellings_of_a_partition_value_name_one_partition() -> None:
    by_hour = TableMetadata("id", (PartitionColumn("at", "at", "timestamp"),))
    spelled = ["2026-01-02 03:04:05", "2026-01-02T03:04:05.000000Z", "2026-01-02T05:04:05.0+02:00"]
    commit = decoded(*[add(path=at, partitionValues={"at": at}) for at in spelled], metadata=by_hour)
    assert {file.partition for file in commit.added} == {'{"at":"2026-01-02T03:04:05.000000"}'}


@pytest.mark.parametrize(
    ("info", "time_ms", "operation"),
    [
        (None, 0, ""),
        ({"timestamp": 7, "operation": "WRITE"}, 7, "WRITE"),
        ({"timestamp": 7, "inCommitTimestamp": 8, "operation": None}, 8, ""),
        ({"timestamp": "yesterday", "operation": 3}, 0, ""),
        ("free text", 0, ""),
    ],
)
def test_commit_info_is_free_form_and_may_be_missing(info: object, time_ms: int, operation: str) -> None:
    lines = [add(), *([{"commitInfo": info}] if info else [])]
    commit = decoded(*lines)
    assert (commit.timestamp_ms, commit.operation) == (time_ms, operation)
    assert commit_time_ms("\n".join(map(json.dumps, lines)).encode(), LOG) == time_ms


@pytest.mark.parametrize(
    ("user_metadata", "origin"),
    [
        ('{"lakewright":{"job":"t.ab.compact","token":7,"rows":3}}', CommitOrigin("t.ab.compact", 7)),
        (None, None),
        ("", None),
        ("lakewright", None),
        ("{lakewright", None),
        ('"lakewright"', None),
        ('{"lakewright":7}', None),
        ('{"lakewright":{"job":"x"}}', None),
        ('{"lakewright":{"job":"","token":7}}', None),
        ('{"lakewright":{"job":"x","token":"7"}}', None),
        ('{"lakewright":{"job":"x","token":true}}', None),
        ('{"lakewright":' + "[" * 100_000, None),
        ({"lakewright": {"job": "x", "token": 7}}, None),
    ],
)
def test_only_a_well_formed_token_makes_a_commit_ours(user_metadata: object, origin: CommitOrigin | None) -> None:
    assert decoded({"commitInfo": {"userMetadata": user_metadata}}, add()).origin == origin


def test_a_commit_changes_data_if_any_of_its_files_says_so() -> None:
    assert decoded(add(dataChange=False), remove(path="q")).data_change
    assert not decoded(add(dataChange=False), remove(path="q", dataChange=False)).data_change
    assert not decoded({"commitInfo": {}}).data_change


def test_what_is_not_needed_is_passed_over() -> None:
    commit = decoded(
        {"txn": {"appId": "a", "version": 1}},
        {"cdc": {"path": "c"}},
        {"domainMetadata": {"domain": "d"}},
        {"somethingNew": 1},
        {"add": None, "remove": None},
        "",
        '  {"commitInfo": {"operation": "WRITE"}} \r',
    )
    assert (commit.added, commit.removed, commit.operation) == ((), (), "WRITE")


def test_a_line_ends_at_a_line_feed_only() -> None:
    assert decoded(json.dumps(add(path="a\u2028b"), ensure_ascii=False)).added[0].path == "a\u2028b"


def test_a_removal_and_an_addition_of_one_path_with_another_vector_is_a_deletion() -> None:
    commit = decoded(remove(), add(deletionVector=DV))
    assert commit.removed[0].key != commit.added[0].key


META = {"id": "id", "partitionColumns": [], "configuration": {}}
DAMAGED: list[tuple[list[object], TableMetadata | None, str, str]] = [
    ([add(), '{"add": {"path": "q"'], PLAIN, "line 2", "one JSON object"),
    ([add(), "[1]"], PLAIN, "line 2", "one JSON object"),
    (["{} trailing"], PLAIN, "line 1", "one JSON object"),
    (["[" * 100_000], PLAIN, "line 1", "one JSON object"),
    ([""], PLAIN, "json", "empty"),
    ([{"add": 7}], PLAIN, "line 1", "add is 7, expected an object"),
    ([add(path=None)], PLAIN, "line 1", "add.path is missing"),
    ([add(path=7)], PLAIN, "line 1", "add.path is 7"),
    ([add(size="5")], PLAIN, "line 1", "add.size is '5', expected a number of bytes"),
    ([add(size=-5)], PLAIN, "line 1", "add.size is -5"),
    ([add(size=True)], PLAIN, "line 1", "add.size is True"),
    ([add(modificationTime=1.5)], PLAIN, "line 1", "add.modificationTime is 1.5"),
    ([add(dataChange="true")], PLAIN, "line 1", "add.dataChange is 'true'"),
    ([add(stats={"numRecords": 1})], PLAIN, "line 1", "add.stats is"),
    ([add(tags={"a": 1})], PLAIN, "line 1", "add.tags is"),
    ([add(tags=["a"])], PLAIN, "line 1", "add.tags is"),
    ([add(path="\ud800")], PLAIN, "line 1", "valid Unicode"),
    ([add(partitionValues=None)], BY_DAY, "line 1", "partitionValues is missing"),
    ([add(partitionValues={"date": "x"})], BY_DAY, "line 1", "no value for partition column 'day'"),
    ([add(partitionValues={"day": 20260102})], BY_DAY, "line 1", "texts and nulls"),
    ([add(partitionValues={"day": ["x"]})], BY_DAY, "line 1", "texts and nulls"),
    ([add(deletionVector="u")], PLAIN, "line 1", "deletionVector is 'u'"),
    ([add(deletionVector={**DV, "pathOrInlineDv": None})], PLAIN, "line 1", "pathOrInlineDv is missing"),
    ([add(deletionVector={**DV, "offset": "1"})], PLAIN, "line 1", "offset is '1'"),
    ([add(deletionVector={**DV, "cardinality": None})], PLAIN, "line 1", "cardinality is missing"),
    ([{"remove": []}], PLAIN, "line 1", "remove is []"),
    ([remove(path="")], PLAIN, "line 1", "remove.path is ''"),
    ([remove(size="5")], PLAIN, "line 1", "remove.size is '5'"),
    ([remove(dataChange=None)], PLAIN, "line 1", "remove.dataChange is missing"),
    ([add(), add()], PLAIN, "json", "p is added 2 times"),
    ([remove(), remove()], PLAIN, "json", "p is removed 2 times"),
    ([remove(), add()], PLAIN, "json", "both added and removed"),
    ([add()], None, "line 1", "no metaData"),
    ([{"protocol": 3}], PLAIN, "line 1", "protocol is 3"),
    ([{"protocol": {"minReaderVersion": "1", "minWriterVersion": 2}}], PLAIN, "line 1", "minReaderVersion is '1'"),
    ([{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "x"}}], PLAIN, "line 1", "list"),
    ([{"metaData": 3}], PLAIN, "line 1", "metaData is 3"),
    ([{"metaData": {**META, "id": None}}], PLAIN, "line 1", "metaData.id is missing"),
    ([{"metaData": {**META, "configuration": {"a": 1}}}], PLAIN, "line 1", "metaData.configuration"),
    ([{"metaData": {**META, "partitionColumns": "day"}}], PLAIN, "line 1", "metaData.partitionColumns"),
    ([{"metaData": {**META, "partitionColumns": ["day"]}}], PLAIN, "line 1", "metaData.schemaString is missing"),
    ([{"metaData": {**META, "partitionColumns": ["d"], "schemaString": "{"}}], PLAIN, "line 1", "schemaString"),
    ([{"metaData": {**META, "partitionColumns": ["d"], "schemaString": schema()}}], PLAIN, "line 1", "'d' is not in"),
    ([{"metaData": META}, {"metaData": META}], PLAIN, "line 2", "second metaData"),
]


@pytest.mark.parametrize(("actions", "metadata", "place", "problem"), DAMAGED)
def test_damage_is_reported_with_its_place(
    actions: list[object], metadata: TableMetadata | None, place: str, problem: str
) -> None:
    with pytest.raises(Corrupt) as damage:
        decoded(*actions, metadata=metadata)
    message = str(damage.value)
    assert message.startswith("file:///lake/t: version 12, _delta_log/00000000000000000012.json")
    assert place in message
    assert problem in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (add(deletionVector={**DV, "storageType": "r"}), "storageType"),
        (add(deletionVector={**DV, "storageType": ["u"]}), "storageType"),
        ({"metaData": {**META, "format": {"provider": "orc"}}}, "orc"),
        ({"metaData": {**META, "format": "parquet"}}, "format"),
        ({"checkpoint": {"contentRoot": {}}}, "manifests"),
    ],
)
def test_what_is_well_formed_but_not_known_is_refused(action: object, problem: str) -> None:
    with pytest.raises(Unsupported, match=problem):
        decoded(action)


@pytest.mark.parametrize("partitioned", [["r"], []])
def test_an_unknown_mode_of_column_mapping_is_refused(partitioned: list[str]) -> None:
    """A table without partitions has columns, too."""
    meta = {
        "id": "id",
        "schemaString": schema(("r", "string", "c")),
        "partitionColumns": partitioned,
        "configuration": {"delta.columnMapping.mode": "magic"},
    }
    with pytest.raises(Unsupported, match="magic"):
        decoded({"metaData": meta})


def test_a_mapped_partition_column_needs_its_physical_name() -> None:
    meta = {
        "id": "id",
        "schemaString": json.dumps({"type": "struct", "fields": [{"name": "r", "type": "string", "metadata": {}}]}),
        "partitionColumns": ["r"],
        "configuration": {"delta.columnMapping.mode": "id"},
    }
    with pytest.raises(Corrupt, match="physicalName of partition column 'r' is missing"):
        decoded({"metaData": meta})


def test_every_known_reader_feature_is_read_and_writer_features_do_not_matter() -> None:
    check_readable(TableProtocol(1, 2), "t")
    check_readable(TableProtocol(2, 5), "t")
    check_readable(TableProtocol(3, 7, READER_FEATURES, frozenset({"rowTracking", "unheardOf"})), "t")


@pytest.mark.parametrize("feature", [*sorted(REFUSED_FEATURES), "timestampNanos", "redirectReaderWriter-preview"])
def test_a_feature_that_changes_what_the_log_means_is_refused_by_name(feature: str) -> None:
    with pytest.raises(Unsupported, match=f"file:///t: the table uses the feature '{feature}'"):
        check_readable(TableProtocol(3, 7, frozenset({feature}), frozenset({feature})), "file:///t")


@pytest.mark.parametrize("feature", sorted(REFUSED_FEATURES))
def test_a_log_that_lies_elsewhere_is_refused_even_as_a_writer_feature(feature: str) -> None:
    with pytest.raises(Unsupported, match=feature):
        check_readable(TableProtocol(1, 7, frozenset(), frozenset({feature})), "t")


def test_a_newer_reader_version_is_refused() -> None:
    with pytest.raises(Unsupported, match="version 4"):
        check_readable(TableProtocol(4, 7), "t")


def test_a_null_that_spark_leaves_out_of_a_removal_is_null() -> None:
    """Spark writes `{}` for the removal of a file whose only partition value is null."""
    commit = decoded(remove(partitionValues={}), metadata=BY_DAY)
    assert [file.partition for file in commit.removed] == ['{"day":null}']
    older = decoded(remove(partitionValues={"month": "1"}), metadata=BY_DAY)
    assert older.removed[0].partition is None
