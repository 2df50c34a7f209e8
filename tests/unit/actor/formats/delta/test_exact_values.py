"""Which columns are checked value by value while Spark reads them, and what a value that does not fit is called."""

from typing import Any

import pytest

from actor.formats.delta.columns import Column
from actor.formats.delta.exact_values import NOT_EXACT, checked_columns, refusal
from shared.errors import RefusedFiles
from shared.refusals import RefusalReason
from tests.support.java_errors import JavaError


def field(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def stored(kind: str, *path: str, bits: int = 8) -> Column:
    return Column(path, "INT32" if kind == "uint" else "BINARY", kind, (32, bits) if kind == "uint" else ())


def test_texts_that_are_stored_as_texts_are_not_checked() -> None:
    assert checked_columns([field("t", "string")], [stored("text", "t")]) == {}
    assert checked_columns([field("b", "binary")], [stored("bytes", "b")]) == {}


def test_a_text_that_a_file_stores_as_bytes_has_to_be_utf_8() -> None:
    found = checked_columns([field("it's", "string")], [stored("text", "it's"), stored("bytes", "IT'S")])
    assert found == {
        "it's": f"if(coalesce(is_valid_utf8(`it's`), true), `it's`, raise_error('{NOT_EXACT}[it\\'s]'))",
    }


def test_leaves_are_found_at_each_depth_by_their_names_in_files() -> None:
    of_texts = {"type": "array", "elementType": "string", "containsNull": True}
    mapping = {"type": "map", "keyType": "string", "valueType": of_texts, "valueContainsNull": True}
    struct = {"type": "struct", "fields": [field("m", mapping, **{"delta.columnMapping.physicalName": "c1"})]}
    leaf = stored("bytes", "s", "c1", "value", "[]")
    (condition,) = checked_columns([field("s", struct)], [leaf]).values()
    inner = "coalesce(forall(e0, e1 -> coalesce(is_valid_utf8(e1), true)), true)"
    assert f"coalesce(forall(map_values(`s`.`m`), e0 -> {inner}), true)" in condition
    assert "map_keys" not in condition


@pytest.mark.parametrize(("bits", "declared"), [(8, "byte"), (8, "short"), (16, "short"), (32, "long")])
def test_unsigned_integers_must_not_have_become_negative(bits: int, declared: str) -> None:
    found = checked_columns([field("u", declared)], [stored("uint", "u", bits=bits)])
    assert "coalesce(`u` >= 0, true)" in found["u"]


@pytest.mark.parametrize(("bits", "declared"), [(16, "byte"), (32, "integer"), (64, "long")])
def test_unsigned_integers_that_spark_reads_only_as_a_wider_type_are_refused_before_anything_is_written(
    bits: int, declared: str
) -> None:
    with pytest.raises(RefusedFiles, match=f"'u' .* does not read as {declared}"):
        checked_columns([field("u", declared)], [stored("uint", "u", bits=bits)])


def test_only_the_error_of_such_a_value_is_a_refusal() -> None:
    assert refusal(ValueError("another one"), "/t") is None


def test_the_error_of_such_a_value_refuses_the_files_and_names_the_column() -> None:
    error = JavaError("SparkException", "SparkRuntimeException", message=f"[USER_RAISED_EXCEPTION] {NOT_EXACT}[it's]")
    found = refusal(error, "/t")
    assert found is not None
    assert (found.reason, found.field) == (RefusalReason.TYPES, "it's")
    assert str(found).startswith('files of /t are not rewritten: their column "it\'s" holds a text that is no UTF-8')


def test_a_type_that_a_user_defined_is_not_checked() -> None:
    """Spark writes it as it reads it, through the code of that type."""
    defined = {"type": "udt", "class": "org.example.PointUDT", "sqlType": "binary"}
    assert checked_columns([field("d", defined)], [stored("bytes", "d")]) == {}
