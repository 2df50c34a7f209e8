"""A removal of rows counts rows in and out before its commit; what needs a JVM is tested with Spark."""

import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add
from actor.formats.delta.columns import Column
from actor.formats.delta.exact_values import NOT_EXACT
from actor.formats.delta.footers import Storage
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.read_rows import exact_rows, refused_sizes, refused_values
from actor.formats.delta.row_removal import RemovalTarget, RemovalWriter, WrittenRemoval, has_change_feed
from actor.formats.delta.written_group import WrittenGroup
from actor.rewrite.commit import Committer
from actor.rewrite.model import Verdict
from shared.errors import Conflict, Corrupt, RefusedFiles, RetryableError
from shared.refusals import RefusalReason
from shared.table import CommitOrigin, FileKey, TableMetadata
from tests.support.fake_delta import FakeScala, FakeTable, live_group
from tests.support.fake_delta_table import METADATA, PREFIX, FakeFrame, add, remove
from tests.support.java_errors import JavaError

METADATA_WITH_RANDOM_FOLDERS = {"metaData": METADATA | {"configuration": {"delta.randomizeFilePrefixes": "true"}}}


class FakeLog:
    """A log whose files hold 7 rows, if they have to be counted."""

    location = "file:///t"

    def rows(self, _snapshot: object, _adds: object) -> int:
        return 7


class RemovalScala:
    """Passes collections on as they are."""

    def adds(self, text: str) -> object:
        return text


def file(rows: int | None, deleted: int = 0) -> LoggedFile:
    add: dict[str, Any] = {"path": f"{rows}-{deleted}", "size": 1, "partitionValues": {}}
    if rows is not None:
        add["stats"] = json.dumps({"numRecords": rows})
    if deleted:
        add["deletionVector"] = {"storageType": "i", "pathOrInlineDv": "x", "cardinality": deleted}
    return LoggedFile(decode_add(add, ()), json.dumps(add))


def writer() -> RemovalWriter:
    any_part = cast("Any", None)
    proofs = cast("Any", SimpleNamespace(log=FakeLog()))
    return RemovalWriter(cast("Any", RemovalScala()), any_part, any_part, any_part, proofs)


@pytest.mark.parametrize(
    ("inputs", "outputs", "removed"),
    [([file(10)], [file(8)], 2), ([file(10, 3)], [], 7), ([file(None)], [file(5)], 2), ([file(9)], [file(None)], 2)],
)
def test_rows_that_stay_are_those_that_were_not_removed(
    inputs: list[LoggedFile], outputs: list[LoggedFile], removed: int
) -> None:
    assert writer()._check_rows(inputs, outputs, removed) == sum(
        7 if one.file.rows is None else one.file.rows for one in outputs
    )


def test_rows_of_files_with_vectors_may_be_counted_as_readers_see_them() -> None:
    """Seven are visible, and the statistics say so, as Trino's ANALYZE leaves them; what is read decides."""
    visible = file(7, deleted=3)
    assert writer()._check_rows([visible], [file(5)], 2) == 5
    with pytest.raises(Corrupt, match="4 rows in, 4 rows out"):
        writer()._check_rows([visible], [file(4)], 2)


@pytest.mark.parametrize("rows", [7, 9])
def test_a_removal_that_loses_or_keeps_a_row_too_many_is_stopped(rows: int) -> None:
    with pytest.raises(Corrupt, match="10 rows in"):
        writer()._check_rows([file(10)], [file(rows)], 2)


def test_a_change_feed_is_read_from_the_tables_properties() -> None:
    assert has_change_feed(TableMetadata("u", (), {"delta.enableChangeDataFeed": "True"}))
    assert not has_change_feed(TableMetadata("u"))


def target(table: FakeTable) -> RemovalTarget:
    log = table.log()
    return RemovalTarget(FakeScala(table), log, log.shape(log.snapshot()), CommitOrigin("j-1", 7))


@pytest.mark.parametrize("owner", [{"lakewright.primary-key": "other"}, {"lakewright.enabled": "false"}])
def test_a_removal_is_not_committed_once_the_owner_has_changed_the_properties(owner: dict[str, str]) -> None:
    table = FakeTable()
    table.commit(add("a"), add("b"))
    removal = WrittenRemoval(live_group(table, "a", "b"), (), 0, removed_rows=1)
    commits = target(table)
    table.commit({"metaData": METADATA | {"configuration": owner}})
    with pytest.raises(Conflict, match="searched again"):
        commits.begin((removal,))


def test_a_sweep_leaves_the_files_of_the_change_feed_that_lie_beside_the_outputs() -> None:
    """A removal that empties a file is swept before its commit; in random folders Delta puts all files together."""
    table = FakeTable()
    table.commit(METADATA_WITH_RANDOM_FOLDERS, add("a"), add("b"))
    log = table.log()
    txn = log.transaction()
    paths = OutputPaths(FakeScala(table), log, txn.snapshot(), log.shape(txn.snapshot()), PREFIX)
    paths.transaction_for({"p": "a"}, ["a"])
    change = SimpleNamespace(path=lambda: f"Qx/{paths.prefix}cdc", size=lambda: 1)
    table.disk |= {f"Qx/{paths.prefix}{name}": 1 for name in ("cdc", "an-empty-file")}
    removal = WrittenRemoval(live_group(table, "a", "b"), (), 0, changes=(change,), removed_rows=1)
    assert removal.paths == (f"Qx/{paths.prefix}cdc",)
    assert [key.path for key in paths.leftovers(set(map(FileKey, removal.paths)))] == [
        f"Qx/{paths.prefix}an-empty-file"
    ]


@pytest.mark.parametrize("stored", [{}, {"_change_data/cdc-0": 4}], ids=["gone", "cut"])
def test_what_was_written_for_the_change_feed_is_in_the_store_before_the_commit(stored: dict[str, int]) -> None:
    """Another cleaner takes it for an orphan as it takes an output; the feed could never be read again."""
    table = FakeTable()
    table.commit(add("a"), add("b"))
    table.disk |= stored
    change = SimpleNamespace(path=lambda: "_change_data/cdc-0", size=lambda: 5)
    removal = WrittenRemoval(live_group(table, "a", "b"), (), 0, changes=(change,), removed_rows=1)
    control = SimpleNamespace(may_commit=lambda: None)
    committer: Committer[WrittenGroup] = Committer(target(table), cast("Any", control))
    with pytest.raises(RetryableError, match="_change_data/cdc-0"):
        committer.commit([removal])
    assert len(table.history) == 1


@pytest.mark.parametrize("touched", ["a", "b"])
def test_a_removal_is_stale_once_any_file_that_was_read_is_gone(touched: str) -> None:
    table = FakeTable()
    table.commit(add("a"), add("b"))
    live = live_group(table, "a", "b")
    removal = WrittenRemoval(live, (), 0, replaced=live.inputs[:1], removed_rows=1)
    commits = target(table)
    table.commit(remove(touched))
    assert commits.begin((removal,)).groups == ()


def test_appended_rows_are_no_conflict_with_a_removal() -> None:
    """The next attempt checks that all files that were read are still live."""
    verdict = RemovalTarget.failures.verdict
    assert verdict(JavaError("ConcurrentAppendException")) is Verdict.TAKEN
    assert verdict(JavaError("ConcurrentTransactionException", "DeltaConcurrentModificationException")) == "refused"


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
