"""A proofreader is given what the log says of a group's files: their rows, deletion vectors, and ids of rows."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.proofreading import Proofs, leaf_columns, proof_columns, stored_fields
from actor.formats.parquet.file_columns import DescribedFiles, FileSchema, LeafCounts, ParquetField
from actor.formats.parquet.footer_summary import FooterSummary
from actor.proofread.model import (
    OLDER,
    DeleteForm,
    Deletes,
    Field,
    FoundBy,
    NewestRows,
    Proof,
    ProofFile,
    Reading,
    Rewritten,
)
from actor.proofread.proofreader import Proofreader
from shared.errors import Difference
from shared.policy.key_rule import KeyRule
from shared.policy.policy import Proofread
from tests.support.fake_delta import LOCATION, FakeScala, FakeTable, live_group
from tests.support.fake_delta_table import METADATA, add, vector

ROW_COLUMNS = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-1",
}
ID_FIELDS = (Field("_row-id-1", "row_id"), Field("_row-version-1", "row_version"))


class _Asked:
    """A proofreader that only notes the group."""

    group: Rewritten
    mode: Proofread
    found = Proof(Reading.NONE)

    def check(self, group: Rewritten, mode: Proofread, **_: object) -> Proof:
        self.group, self.mode = group, mode
        return self.found


def given(configuration: dict[str, str], *files: dict[str, Any], path_taken: str = "encoded") -> Rewritten:
    """Return what a proofreader is given of a group of two files, whose output is the second."""
    table, asked = FakeTable(), _Asked()
    table.commit({"metaData": METADATA | {"configuration": configuration}})
    table.commit(*files)
    log, live = table.log(), live_group(table, *(one["add"]["path"] for one in files))
    proofs = Proofs(
        cast("Proofreader", asked), log, log.shape(log.snapshot()), Proofread.ALWAYS, "job", footerless(table)
    )
    proofs.check(live, live.inputs[1:], path_taken=path_taken)
    return asked.group


def test_chosen_rows_are_compared_as_if_the_files_held_no_others_even_where_proofreading_is_switched_off() -> None:
    table, asked = FakeTable(), _Asked()
    table.commit({"metaData": METADATA}, add("x"), add("y"), add("out", 20))
    log, live = table.log(), live_group(table, "x", "y")
    (output,) = live_group(table, "out").inputs
    shape = log.shape(log.snapshot())
    proofs = Proofs(cast("Proofreader", asked), log, shape, Proofread.NEVER, "job", footerless(table))
    assert not proofs.check_places(live, [[0], [3, 7]], output, [0, 13, 17])
    chosen = [file.deletes for file in (*asked.group.inputs, *asked.group.outputs)]
    assert chosen == [(Deletes(DeleteForm.OTHERS, text=text),) for text in ("[0]", "[3, 7]", "[0, 13, 17]")]
    assert asked.mode is Proofread.ALWAYS
    asked.found = Proof(Reading.ROWS)
    assert proofs.check_places(live, [[0], [3, 7]], output, [0, 13, 17])


def footerless(table: FakeTable) -> FooterReader:
    """Return a reader of footers that none of the files has."""
    return FooterReader(cast("Any", FakeScala(table)), table.log())


def leaf(name: str, nulls: int, *, number: int | None = None) -> ParquetField:
    return ParquetField(
        name, number, physical="INT64", leaf=LeafCounts(7, nulls, is_bounded=True, least="1", greatest="5")
    )


def footers(
    schema: dict[str, Any], inputs: Sequence[ParquetField], output: ParquetField, *, unread: str = "", **more: Any
) -> _Asked:
    """Compare a group whose files have these columns; return the proofreader. unread: why an input has no footer."""
    table, asked = FakeTable(), _Asked()
    table.commit(
        {"metaData": METADATA | {"schemaString": json.dumps(schema), "partitionColumns": [], "configuration": more}}
    )
    table.commit(add("x", 3), add("y", 4))
    log, live = table.log(), live_group(table, "x", "y")
    of_inputs = (FooterSummary(unread, rows=3), FooterSummary(rows=4))
    said = {2: DescribedFiles(of_inputs, {"in": FileSchema(tuple(inputs))})}
    said[1] = DescribedFiles((FooterSummary(rows=7),), {"out": FileSchema((output,))})
    reader = cast("FooterReader", SimpleNamespace(describe=lambda files: said[len(files)]))
    proofs = Proofs(cast("Proofreader", asked), log, log.shape(log.snapshot()), Proofread.NEVER, "job", reader)
    proofs.check(live, live.inputs[:1], path_taken="encoded")
    return asked


def struct_of(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def column(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def test_footers_that_contradict_are_a_difference_before_any_row_is_read() -> None:
    schema = struct_of(column("v", "long"))
    assert footers(schema, [leaf("v", 2)], leaf("v", 2)).group.inputs
    with pytest.raises(Difference, match="v: 2 nulls in, 1 out") as raised:
        footers(schema, [leaf("v", 2)], leaf("v", 1))
    assert (raised.value.columns, raised.value.files) == (("v",), ("x", "y"))
    assert footers(schema, [leaf("v", 2)], leaf("v", 1), unread="no_footer").group.inputs, (
        "the reader says what is wrong"
    )


def test_columns_are_found_in_footers_as_the_mapping_says() -> None:
    """By the physical name, or by the id, whatever the file calls it."""
    given = {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "col-4"}
    schema = struct_of(column("v", "long", **given))
    stored = [leaf("v", 0, number=1), leaf("col-4", 2, number=4)]
    for mode, name in (("name", "col-4"), ("id", "anything")):
        with pytest.raises(Difference, match="v: 2 nulls in, 1 out"):
            footers(schema, stored, leaf(name, 1, number=4), **{"delta.columnMapping.mode": mode})


def test_columns_are_found_in_footers_at_every_level() -> None:
    listed = {"type": "array", "elementType": struct_of(column("a", "long")), "containsNull": True}
    pairs = {"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": True}
    columns, found_by = proof_columns(json.dumps(struct_of(column("l", listed), column("m", pairs))), (), "none")
    element = ParquetField("element", children=(leaf("a", 0),))
    entry = ParquetField("key_value", repetition="REPEATED", children=(leaf("key", 0), leaf("value", 1)))
    stored = [
        ParquetField("l", children=(ParquetField("list", repetition="REPEATED", children=(element,)),)),
        ParquetField("m", children=(entry,)),
    ]
    found = dict(stored_fields(columns, stored, found_by))
    assert {path: one.name for path, one in found.items() if one.leaf} == {
        ("l", "element", "a"): "a",
        ("m", "key"): "key",
        ("m", "value"): "value",
    }
    assert set(found) == {path for path, *_ in leaf_columns((*columns, Field("id", "row_id")))}


def test_of_a_removal_the_reader_is_asked_which_rows_are_older() -> None:
    """By the columns' physical names, however the owner spells them, and without those of the partition."""
    names = [column(name, "long", **{"delta.columnMapping.physicalName": f"c-{name}"}) for name in ("id", "ts")]
    marker = column("gone", "boolean", **{"delta.columnMapping.physicalName": "c-gone"})
    place = column("p", "string", **{"delta.columnMapping.physicalName": "c-p"})
    schema = json.dumps(struct_of(*names, marker, place))
    configuration = {"delta.columnMapping.mode": "name"}
    table, asked = FakeTable(), _Asked()
    table.commit({"metaData": METADATA | {"schemaString": schema, "configuration": configuration}})
    table.commit(*(add(path, 3, partitionValues={"c-p": "a"}) for path in "xyz"))
    log, live = table.log(), live_group(table, "x", "y", "z")
    shape = log.shape(log.snapshot())
    proofs = Proofs(cast("Proofreader", asked), log, shape, Proofread.NEW, "job", footerless(table))
    proofs.check_removal(live, live.inputs[:1], live.inputs[1:2], KeyRule(("ID", "p"), ("Ts",), "Gone"))
    group = asked.group
    assert group.newest is not None
    beside = group.newest.beside
    assert (group.newest, group.copied) == (NewestRows(("c-id",), ("c-ts",), "c-gone", beside), False)
    assert [file.path.rpartition("/")[2] for file in beside] == ["y", "z"]
    assert [file.deletes for file in (*group.inputs, *group.outputs)] == [(OLDER,), ()]
    proofs.check_changes(live, live.inputs[:1], live.inputs[1:])
    assert (asked.group.newest, len(asked.group.inputs), len(asked.group.outputs)) == (None, 1, 2)
    proofs.check_removal(live, live.inputs[:1], (), KeyRule(("id",), ("ts",)))
    assert asked.group.newest == NewestRows(("c-id",), ("c-ts",), None, beside)
    over = Deletes(DeleteForm.OVER, text='["c-ts", "2026-03-09"]')
    for outputs, columns in ((live.inputs[1:2], {"c-id", "c-ts", "c-gone"}), ((), {"c-ts"})):
        proofs.check_over(live, outputs, "c-ts", "2026-03-09")
        assert columns == {column.name for column in asked.group.columns}
        assert [file.deletes for file in asked.group.inputs] == [(over,)] * 3


TRACKED = (add("x", 3, baseRowId=7, defaultRowCommitVersion=2), add("y", 4))


@pytest.mark.parametrize("spelled", ["true", "TRUE"])
def test_where_the_table_tracks_rows_their_ids_are_compared(spelled: str) -> None:
    group = given({"delta.enableRowTracking": spelled} | ROW_COLUMNS, *TRACKED)
    assert (group.columns, group.found_by) == (ID_FIELDS, FoundBy.NAME)
    x, y = (ProofFile(f"{LOCATION}/x", 100, 3, first_row_id=7, sequence=2), ProofFile(f"{LOCATION}/y", 100, 4))
    assert (group.inputs, group.outputs) == ((x, y), (y,))


@pytest.mark.parametrize("configuration", [{}, {"delta.enableRowTracking": "false"} | ROW_COLUMNS])
def test_ids_that_rows_had_while_the_table_tracked_them_are_not_compared(configuration: dict[str, str]) -> None:
    group = given(configuration, *TRACKED)
    assert group.columns == ()
    assert [(file.first_row_id, file.sequence) for file in group.inputs] == [(None, None)] * 2


def test_a_file_with_a_deletion_vector_has_no_count_of_stored_rows() -> None:
    """Some writers count the visible ones."""
    x, y = given({}, add("x", 3, deletionVector=vector(2)), add("y", 4)).inputs
    assert (x.rows, y.rows) == (None, 4)
    assert x.deletes == (Deletes(DeleteForm.DELTA_VECTOR, text=json.dumps(vector(2))),)


@pytest.mark.parametrize(("path_taken", "is_copied"), [("", True), ("by column", False), ("encoded", False)])
def test_only_what_took_no_path_of_encoding_counts_as_copied(path_taken: str, is_copied: bool) -> None:
    assert given({}, *TRACKED, path_taken=path_taken).copied is is_copied
