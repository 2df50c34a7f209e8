"""Metadata of every format version are decoded into one form, or refused by name; so are tables at risk."""

from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import Corrupt, Unsupported
from shared.formats.iceberg.metadata import TableHead, as_paimon, decode_head, may_be_of_paimon
from shared.formats.iceberg.names import GENERATED_BY, PAIMON_SCHEMA, UNKNOWN_TRANSFORM, UNKNOWN_TYPE
from shared.formats.iceberg.refusal import refusal
from shared.refusals import RefusalCode
from shared.table import TableMetadata, TableProtocol

SCHEMA = {
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long"},
        {"id": 2, "name": "dt", "type": "date"},
        {"id": 3, "name": "at", "type": {"type": "struct", "fields": [{"id": 4, "name": "day", "type": "date"}]}},
    ],
}
SPEC = {
    "spec-id": 0,
    "fields": [
        {"source-id": 2, "field-id": 1000, "name": "dt", "transform": "identity"},
        {"source-id": 4, "field-id": 1001, "name": "at_day", "transform": "month"},
        {"source-id": 9, "field-id": 1002, "name": "gone", "transform": "void"},
    ],
}
TABLE: Mapping[str, Any] = {
    "format-version": 2,
    "table-uuid": "u-1",
    "location": "s3://lake/t/",
    "last-updated-ms": 9,
    "schemas": [SCHEMA],
    "current-schema-id": 0,
    "partition-specs": [SPEC],
    "default-spec-id": 0,
    "properties": {"a": "b"},
    "current-snapshot-id": 2,
    "snapshots": [
        {"snapshot-id": 1, "timestamp-ms": 5, "manifest-list": "m1", "summary": {"operation": "append", "x": "y"}},
        {"snapshot-id": 2, "parent-snapshot-id": 1, "sequence-number": 2, "timestamp-ms": 6, "manifest-list": "m2"},
    ],
}


def head(**more: Any) -> TableHead:
    return decode_head({**TABLE, **more}, "t")


def test_a_table_is_decoded_with_its_specs_columns_and_snapshots() -> None:
    found = head()
    assert (found.location, found.metadata.table_uuid, found.metadata.format) == ("s3://lake/t", "u-1", "iceberg")
    assert found.metadata.configuration == {"a": "b"}
    assert [(one.name, one.type) for one in found.metadata.partition_columns] == [("dt", "date"), ("at_day", "month")]
    assert [(one.name, one.type) for one in found.specs[0].fields] == [
        ("dt", "date"),
        ("at_day", "date"),
        ("gone", "unknown"),
    ]
    assert found.sources[0] == ("dt", "at.day", None)
    first, second = found.snapshots[1], found.snapshots[2]
    assert (first.operation, first.summary, first.parent, first.sequence_number) == ("append", {"x": "y"}, None, 0)
    assert (second.operation, second.parent, second.sequence_number) == ("overwrite", 1, 2)
    assert [one.id for one in found.chain()] == [2, 1]


def test_version_1_may_have_its_schema_and_spec_alone_and_write_minus_one_for_none() -> None:
    old = {
        name: value for name, value in TABLE.items() if name not in ("schemas", "partition-specs", "default-spec-id")
    }
    found = decode_head(
        {
            **old,
            "format-version": 1,
            "schema": SCHEMA,
            "partition-spec": SPEC["fields"],
            "current-snapshot-id": -1,
            "snapshots": [{**TABLE["snapshots"][0], "parent-snapshot-id": -1}],
        },
        "t",
    )
    assert (found.current, list(found.chain()), found.snapshots[1].parent) == (None, [], None)
    assert found.specs[0].fields[0].name == "dt"
    assert decode_head({**old, "format-version": 1, "schema": SCHEMA, "snapshots": None}, "t").specs[0].fields == ()


def test_a_column_is_of_the_type_that_the_current_schema_gives_it() -> None:
    older = {"schema-id": 0, "fields": [{"id": 2, "name": "old", "type": "int"}]}
    newer = {"schema-id": 1, "fields": [{"id": 2, "name": "dt", "type": "long"}]}
    found = head(schemas=[newer, older], **{"current-schema-id": 1})
    assert (found.specs[0].fields[0].type, found.sources[0][0]) == ("long", "dt")
    assert head(schemas=[older], **{"current-schema-id": 7}).specs[0].fields[0].type == "int"


def test_a_chain_ends_where_a_snapshot_expired_or_comes_again() -> None:
    assert [one.id for one in head(snapshots=TABLE["snapshots"][1:]).chain()] == [2]
    looped = [{**TABLE["snapshots"][0], "parent-snapshot-id": 2}, TABLE["snapshots"][1]]
    assert [one.id for one in head(snapshots=looped).chain()] == [2, 1]


@pytest.mark.parametrize("version", [None, 0, 4, "2"])
def test_an_unknown_format_version_is_refused(version: object) -> None:
    with pytest.raises(Unsupported, match="format version"):
        head(**{"format-version": version})


def test_a_snapshot_without_a_manifest_list_is_refused() -> None:
    with pytest.raises(Unsupported, match="manifest list"):
        head(snapshots=[{"snapshot-id": 1, "timestamp-ms": 5, "manifests": ["m"]}])


@pytest.mark.parametrize("name", ["table-uuid", "location", "last-updated-ms"])
def test_metadata_without_what_they_must_have_are_corrupt(name: str) -> None:
    with pytest.raises(Corrupt, match=name):
        decode_head({key: value for key, value in TABLE.items() if key != name}, "t")
    with pytest.raises(Corrupt, match="no JSON object"):
        decode_head("text of a catalog", "t")


@pytest.mark.parametrize("mark", ["paimon-commit-identity", "XTABLE_METADATA"])
def test_a_mark_of_a_generator_in_any_retained_snapshot_is_one_of_the_table(mark: str) -> None:
    first, *more = TABLE["snapshots"]
    marked = first | {"summary": {"operation": "append", mark: "1"}}
    assert head(snapshots=[marked, *more]).protocol.writer_features == {mark}
    assert head().protocol.writer_features == frozenset()


def test_only_snapshots_that_are_numbered_one_by_one_may_be_of_paimon() -> None:
    assert may_be_of_paimon(head())
    first, second = TABLE["snapshots"]
    drawn = [first, second | {"snapshot-id": 8_312_345_678_901_234_567}]
    assert not may_be_of_paimon(head(snapshots=drawn, **{"current-snapshot-id": 1}))
    assert PAIMON_SCHEMA in as_paimon(head()).protocol.writer_features


@pytest.mark.parametrize("transform", ["days", "hours", "icebergBucket", "bucket", "zorder(2)"])
def test_a_transform_that_the_specification_does_not_know_is_a_feature_that_is_refused(transform: str) -> None:
    """ClickHouse writes `days` and `hours`, whose values no other engine can read."""
    spec = {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "p", "transform": transform}]}
    found = head(**{"partition-specs": [spec]})
    assert found.protocol.writer_features == {f"transform:{transform}"}
    refused = refusal(found.metadata, found.protocol)
    assert refused is not None
    assert (refused.subject, repr(transform) in refused.reason) == ("transform", True)


@pytest.mark.parametrize("transform", ["identity", "year", "month", "day", "hour", "void", "bucket[16]", "truncate[4]"])
def test_the_transforms_of_the_specification_are_no_features(transform: str) -> None:
    spec = {"spec-id": 0, "fields": [{"source-ids": [2, 1], "field-id": 1000, "name": "p", "transform": transform}]}
    assert head(**{"partition-specs": [spec]}).protocol.writer_features == frozenset()


@pytest.mark.parametrize(
    ("kind", "feature"),
    [
        ("variant", None),
        ("geometry(srid:4326)", None),
        ("geography", None),
        ("unknown", None),
        ("timestamp_ns", None),
        ("decimal(38, 2)", None),
        ("fixed[16]", None),
        ("vector[3]", "type:vector[3]"),
        ({"type": "list", "element-id": 9, "element": "json", "element-required": True}, "type:json"),
        ({"type": "map", "key": "string", "value": {"type": "struct", "fields": [{"type": "json"}]}}, "type:json"),
    ],
)
def test_only_types_of_later_specifications_are_refused_and_nothing_is_corrupt(
    kind: object, feature: str | None
) -> None:
    schema = {"schema-id": 0, "fields": [*SCHEMA["fields"], {"id": 8, "name": "x", "type": kind}]}
    statistics = {
        "snapshot-id": 2,
        "statistics-path": "s",
        "file-size-in-bytes": 3,
        "blob-metadata": [{"type": "presto-sum-data-size-bytes-v1"}],
    }
    found = head(schemas=[schema], statistics=[statistics], **{"a-key-of-the-future": {"x": 1}})
    assert found.protocol.writer_features == (frozenset() if feature is None else {feature})
    refused = refusal(found.metadata, found.protocol)
    assert (None if refused is None else refused.subject) == (None if feature is None else "type")
    assert [one.path for one in found.records.statistics] == ["s"]


@pytest.mark.parametrize("mark", sorted(GENERATED_BY))
def test_metadata_that_another_system_generates_are_refused_by_its_mark_wherever_it_is(mark: str) -> None:
    """Paimon marks the summaries of its snapshots; a release of XTable marks these and not the table."""
    for properties, features in (({mark: "1"}, frozenset[str]()), ({}, frozenset({mark}))):
        found = refusal(TableMetadata("u", (), properties), TableProtocol(2, 2, writer_features=features))
        assert found is not None
        assert found.subject == "generated-metadata"
        assert GENERATED_BY[mark] in found.reason


@pytest.mark.parametrize(
    ("version", "properties", "subject"),
    [
        (4, {}, "format-version"),
        (2, {"encryption.key-id": "k"}, "encryption"),
        (2, {"mixed-format.table-store": "base"}, "mixed-format"),
        (2, {"delta-version": "7", "delta-timestamp": "1"}, "generated-metadata"),
        (2, {"XTABLE_METADATA": "{}"}, "generated-metadata"),
        (2, {"encryption.key-id": ""}, None),
        (1, {}, None),
        (3, {"write.format.default": "orc"}, None),
    ],
)
def test_a_table_is_refused_for_what_no_rewrite_is_known_to_keep(
    version: int, properties: Mapping[str, str], subject: str | None
) -> None:
    found = refusal(TableMetadata("u", (), properties), TableProtocol(version, version))
    assert (None if found is None else found.subject) == subject
    if found is not None:
        assert found.code is (RefusalCode.PROTOCOL if version == 4 else RefusalCode.FEATURE)
        assert found.action


@pytest.mark.parametrize(
    ("features", "subject"),
    [
        ({f"{UNKNOWN_TRANSFORM}days"}, "transform"),
        ({f"{UNKNOWN_TYPE}days"}, "type"),
        ({f"{UNKNOWN_TYPE}days", "a feature before it by name"}, "type"),
    ],
)
def test_what_the_specification_does_not_know_is_refused_by_its_name(features: set[str], subject: str) -> None:
    found = refusal(TableMetadata("u", ()), TableProtocol(2, 2, writer_features=frozenset(features)))
    assert found is not None
    assert (found.code, found.subject) == (RefusalCode.FEATURE, subject)
    assert "'days'" in found.reason
