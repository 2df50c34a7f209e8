"""Rows are read for a rewrite as they are stored, and a value that would become another one refuses its files."""

import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.columns import Column
from actor.formats.delta.exact_values import NOT_EXACT
from actor.formats.delta.footers import Storage
from actor.formats.delta.read_rows import exact_rows, refused_sizes, refused_values
from shared.errors import Corrupt, RefusedFiles, RetryableError
from shared.refusals import RefusalReason
from shared.table import FileKey
from tests.support.fake_delta import FakeScala, FakeTable, live_group
from tests.support.fake_delta_table import METADATA, FakeFrame, add
from tests.support.java_errors import JavaError

TEXT, OTHER = Column(("s",), "BINARY", "text"), Column(("o",), "BINARY", "text")
BYTES = Column(("s",), "BINARY", "bytes")


def columns_replaced(monkeypatch: pytest.MonkeyPatch, *schemas: tuple[Column, ...]) -> dict[str, str]:
    """Return the expressions that replace columns of files that are stored by these schemas."""
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("p", "s", "o")]
    table = FakeTable()
    table.commit({"metaData": METADATA | {"schemaString": json.dumps({"type": "struct", "fields": fields})}})
    table.commit(add("x"), add("y"))
    scala: Any = FakeScala(table)
    scala.resolve = lambda name: SimpleNamespace(expr=lambda text: (name, text))
    replaced = {}

    def with_column(frame: FakeFrame, name: str, expression: tuple[str, str]) -> FakeFrame:
        assert expression[0] == "org.apache.spark.sql.functions"
        replaced[name] = expression[1]
        return frame

    monkeypatch.setattr(FakeFrame, "withColumn", with_column, raising=False)
    frame = exact_rows(scala, table.log(), table.at(1), live_group(table, "x", "y").inputs, Storage(schemas, {}))
    assert [body["path"] for body in frame.bodies] == ["x", "y"]
    return replaced


def test_a_column_is_checked_if_any_of_the_files_stores_it_in_a_way_that_may_not_be_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replaced = columns_replaced(monkeypatch, (TEXT, OTHER), (BYTES, OTHER))
    assert list(replaced) == ["s"]
    assert replaced["s"].startswith("if(coalesce(is_valid_utf8(`s`), true), `s`, raise_error(")


def test_columns_that_are_exact_in_all_files_are_read_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert columns_replaced(monkeypatch, (TEXT, OTHER)) == {}


def test_a_value_that_would_become_another_one_refuses_the_files() -> None:
    error = JavaError("SparkException", "SparkRuntimeException", message=f"[USER_RAISED_EXCEPTION] {NOT_EXACT}[s]")
    with pytest.raises(RefusedFiles, match=r"files of /t .* their column 's'") as refused, refused_values("/t"):
        raise error
    assert (refused.value.reason, refused.value.field) == (RefusalReason.TYPES, "s")
    assert refused.value.__cause__ is error


def test_any_other_failure_of_reading_is_raised_as_it_is() -> None:
    error = JavaError("SparkException", message="No space left on device")
    with pytest.raises(JavaError) as raised, refused_values("/t"):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    ("found", "failure", "expected"),
    [
        ({"x": 100, "y": 93}, JavaError("IOException"), RefusedFiles),
        ({"x": 100, "y": 100}, JavaError("IOException"), JavaError),
        ({"x": 100, "y": None}, JavaError("IOException"), JavaError),
        (RetryableError("no answer"), JavaError("IOException"), JavaError),
        ({"x": 100, "y": 93}, Corrupt("rows differ"), Corrupt),
    ],
    ids=["another size", "the same", "gone", "no answer", "an error of ours"],
)
def test_files_that_cannot_be_read_and_have_another_size_than_the_log_says_are_refused_by_name(
    found: dict[str, int | None] | Exception, failure: Exception, expected: type[Exception]
) -> None:
    def sizes(keys: Iterable[FileKey]) -> dict[FileKey, int | None]:
        if isinstance(found, Exception):
            raise found
        return {key: found[key.path] for key in keys}

    table, log = FakeTable(), SimpleNamespace(location="/t", sizes=sizes)
    table.commit(add("x"), add("y"))
    with pytest.raises(expected) as raised, refused_sizes(cast("Any", log), live_group(table, "x", "y").inputs):
        raise failure
    if isinstance(raised.value, RefusedFiles):
        assert (raised.value.reason, raised.value.files) == (RefusalReason.DAMAGED, ("y",))
        assert "y has 93 bytes, not 100" in str(raised.value)
