"""What readers may not agree on is refused by name before a delete by value is converted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from actor.formats.iceberg.convert_deletes import Conversion, ValueDeletes
from actor.formats.iceberg.copy_choice import ManifestEntry
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.staged import NewDeletes
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.iceberg.value_groups import LiveValues
from actor.formats.parquet.file_columns import DescribedFiles, FileSchema, ParquetField
from actor.formats.parquet.footer_summary import FooterSummary
from actor.proofread.model import DeleteForm, Field, Proof, Reading, Rewritten
from shared.errors import RefusedFiles
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind
from tests.support.memory_snapshots import Footers, MemorySnapshots

COLUMNS = TableColumns(
    (
        Field("n", "int64", 1),
        Field("f", "double", 2),
        Field("d", "decimal(9,2)", 3),
        Field("s", "struct", 4, children=(Field("t", "string", 5),)),
        Field("at", "timestamp", 6),
        Field("since", "timestamptz", 7),
    )
)
VALUE = AppliedDelete("e", DeleteKind.EQUALITY, 1, False, key_ids=(1,), is_parquet=True, sequence=5)
HEAD = MemorySnapshots().head()
FOUND = LiveValues(7)


def conversion(stored: ParquetField | None = None, asked: list[Rewritten] | None = None) -> Conversion:
    def prove(group: Rewritten) -> Proof:
        (asked if asked is not None else []).append(group)
        return Proof(Reading.ROWS, 0)

    footers = Footers()
    if stored is not None:
        schema = FileSchema((stored,))
        files = DescribedFiles((FooterSummary(schema="s"),), {"s": schema})
        footers.columns = lambda _: files  # type: ignore[method-assign]
        if stored.id in (6, 7):
            footers.delete_columns = lambda *_: files  # type: ignore[method-assign]
    return Conversion(cast("ValueDeletes", None), lambda _: COLUMNS, footers, prove)


def live(*deletes: AppliedDelete, path: str = "a") -> LiveInput:
    return LiveInput(path, 10, 100, 0, deletes, DataFile(path, 10, WHOLE_TABLE, rows=100))


def group(*inputs: LiveInput, delete: AppliedDelete = VALUE) -> InputGroup:
    found = LiveValues(7, inputs, dict.fromkeys([one.path for one in inputs], 1), (delete,), {0})
    return found.group([delete])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"is_parquet": False}, "it is no Parquet file"),
        ({"sequence": 0}, "its sequence number or its columns are not known"),
        ({"key_ids": (9,)}, "a column of its keys was dropped, or is a part of another"),
        ({"key_ids": (1, 5)}, "a column of its keys was dropped, or is a part of another"),
        ({"key_ids": (1, 2)}, "its column f is a double, whose values readers may compare in several ways"),
        ({"key_ids": (4,)}, "its column s is a struct, whose values readers may compare in several ways"),
        ({"key_ids": (1, 3)}, ""),
    ],
)
def test_a_delete_file_whose_keys_have_several_forms_is_not_converted(change: Mapping[str, object], why: str) -> None:
    delete = replace(VALUE, **change)  # type: ignore[arg-type]
    found = LiveValues(7, (), {}, (delete,), {0})
    assert conversion().unusable(found, HEAD) == ({"e": why} if why else {})


def test_data_files_must_be_plain_parquet_files() -> None:
    conversion().require_clear(group(live()), FOUND, HEAD)
    for entry in (ManifestEntry("orc"), ManifestEntry(is_encrypted=True)):
        with pytest.raises(RefusedFiles, match="a is no Parquet file, or encrypted; a full rewrite removes them"):
            conversion().require_clear(group(replace(live(), entry=entry)), FOUND, HEAD)


def test_a_group_must_have_all_data_files_that_a_scan_finds_its_deletes_for() -> None:
    found = replace(FOUND, uncovered=lambda _: "b")
    with pytest.raises(RefusedFiles, match="b is read with one of them, which does not apply to it by the numbers"):
        conversion().require_clear(group(live()), found, HEAD)


def test_keys_must_be_stored_as_all_readers_take_them() -> None:
    with pytest.raises(RefusedFiles, match="the column n is a int64, and files store it as INT96"):
        conversion(ParquetField("n", 1, physical="INT96")).require_clear(group(live()), FOUND, HEAD)
    conversion(ParquetField("other", 9, physical="INT96")).require_clear(group(live()), FOUND, HEAD)


@pytest.mark.parametrize(
    ("column", "physical", "logical", "is_clear"),
    [
        (6, "INT64", "TIMESTAMP(MICROS,false)", True),
        (7, "INT64", "TIMESTAMP(MICROS,true)", True),
        (6, "INT64", "TIMESTAMP(MILLIS,false)", True),
        (6, "INT64", "TIMESTAMP(MICROS,true)", False),
        (7, "INT64", "TIMESTAMP(MICROS,false)", False),
        (6, "INT96", "", False),
        (7, "INT96", "", False),
    ],
)
def test_times_have_one_unit_that_readers_round_alike_and_the_zone_of_their_column(
    column: int, physical: str, logical: str, is_clear: bool
) -> None:
    """Of nanoseconds before 1970, some readers cut what others round down."""
    stored = ParquetField("stored", column, physical=physical, logical=logical)
    keyed = group(live(), delete=replace(VALUE, key_ids=(column,)))
    if is_clear:
        conversion(stored).require_clear(keyed, FOUND, HEAD)
        return
    with pytest.raises(RefusedFiles, match=rf"is a timestamp.*, and files store it as {physical}"):
        conversion(stored).require_clear(keyed, FOUND, HEAD)


def test_the_rule_of_the_format_is_compared_with_what_was_written() -> None:
    """Of a file for which nothing was written, the deletes by value alone; a vector holds what was there before."""
    vector = AppliedDelete("v#4", DeleteKind.VECTOR, 1, is_exact=True)
    asked: list[Rewritten] = []
    read = group(live(vector), live(vector, path="b"))
    new = NewDeletes("n#4", "n", 10, vector=(4, 6), rows=3)
    conversion(asked=asked).check(read, [new, None], HEAD)
    (made,) = asked
    forms = [[one.form for one in file.deletes] for file in (*made.inputs, *made.outputs)]
    equality, of_vector = DeleteForm.EQUALITY, DeleteForm.PUFFIN_VECTOR
    assert forms == [[of_vector, equality], [equality], [of_vector], []]
    assert made.inputs[0].deletes[1] is made.inputs[1].deletes[0], "one for thousands of data files"
    assert ([one.name for one in made.columns], [one.path for one in made.outputs]) == (["n"], ["a", "b"])
