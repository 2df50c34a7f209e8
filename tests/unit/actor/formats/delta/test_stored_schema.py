"""Of a table's declarations only names and types are left for a rewrite; what they would enforce is not."""

import json
from typing import Any

from actor.formats.delta.stored_schema import as_stored, columns_with_default

ID = {"delta.columnMapping.id": 3, "delta.columnMapping.physicalName": "col-3", "delta.typeChanges": [{}]}


def field(name: str, type_: Any, *, nullable: bool = False, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def metadata(*fields: dict[str, Any], **configuration: str) -> dict[str, Any]:
    schema = json.dumps({"type": "struct", "fields": list(fields)})
    return {"id": "t", "schemaString": schema, "partitionColumns": [], "configuration": configuration}


def stored(*fields: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(as_stored(metadata(*fields))["schemaString"])["fields"]
    return found


def test_everything_may_be_null_at_each_depth() -> None:
    array = {"type": "array", "elementType": "integer", "containsNull": False}
    mapping = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": False}
    struct = {"type": "struct", "fields": [field("m", mapping)]}
    found = stored(field("s", struct))
    inner = found[0]["type"]["fields"][0]
    assert (found[0]["nullable"], inner["nullable"]) == (True, True)
    assert inner["type"]["valueContainsNull"] is True
    assert inner["type"]["valueType"]["containsNull"] is True


def test_of_a_fields_metadata_only_what_is_said_of_files_stays() -> None:
    """Whatever else an engine keeps there asks it to do something to values."""
    asks = {"delta.generationExpression": "a", "delta.invariants": "{}", "EXISTS_DEFAULT": "5", "anything new": 1}
    assert stored(field("a", "string", **ID, **asks))[0]["metadata"] == ID


def test_texts_of_a_declared_size_are_texts() -> None:
    kinds = [one["type"] for one in stored(*(field(kind, kind) for kind in ("char(3)", "varchar(10)", "date")))]
    assert kinds == ["string", "string", "date"]


def test_constraints_go_and_other_properties_stay() -> None:
    kept = {"delta.columnMapping.mode": "name", "lakewright.enabled": "true"}
    found = as_stored(metadata(field("a", "long"), **kept, **{"delta.constraints.positive": "a > 0"}))
    assert found["configuration"] == kept


def test_the_metadata_of_a_table_that_enforces_nothing_are_its_own() -> None:
    plain = metadata(field("a", "long", nullable=True))
    plain["schemaString"] = " " + plain["schemaString"]
    assert as_stored(plain) == plain


def test_a_default_that_is_null_is_none() -> None:
    fields = [
        field("a", "long", EXISTS_DEFAULT="NULL"),
        field("b", "long", EXISTS_DEFAULT="5", **ID),
        field("c", "long"),
    ]
    assert columns_with_default(metadata(*fields)) == {"b": "col-3"}


def test_a_default_of_null_or_of_a_partition_column_leaves_files_as_all_readers_see_them() -> None:
    """Spark writes a default of null as a cast, and the default of a partition column that it creates a table with."""
    fields = [
        *(field(name, "integer", EXISTS_DEFAULT=text) for name, text in (("a", "CAST(NULL AS INT)"), ("b", "null"))),
        field("day", "date", EXISTS_DEFAULT="DATE '2026-01-01'"),
        field("c", "string", EXISTS_DEFAULT="'NULL'"),
    ]
    assert columns_with_default(metadata(*fields) | {"partitionColumns": ["day"]}) == {"c": "c"}


def test_a_type_that_a_user_defined_stays_as_it_is() -> None:
    defined = {"type": "udt", "class": "org.example.PointUDT", "sqlType": {"type": "array", "containsNull": False}}
    assert stored(field("d", defined))[0]["type"] == defined
