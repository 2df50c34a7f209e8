"""Outputs are compared by footers, then by a reader, which is asked as Iceberg defines columns, deletes and values."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.column_search import FoundColumns
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.output_check import OutputCheck, PathTaken
from actor.formats.iceberg.staged import IcebergFile, StagedGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.file_columns import DescribedFiles, FileSchema, LeafCounts, ParquetField
from actor.formats.parquet.footer_summary import FooterSummary
from actor.proofread.model import DeleteForm, Deletes, Field, FoundBy, Proof, ProofFile, Reading, Rewritten
from shared.errors import Corrupt, Difference
from shared.formats.iceberg.partitions import Spec, SpecField
from shared.policy.policy import Proofread
from shared.table import DataFile, PartitionKey
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import POSITIONS, VALUES, VECTOR, group, live

TABLE = TableColumns((Field("id", "int64", 1), Field("dt", "date", 2)))
ID = ParquetField("id", 1, "REQUIRED", physical="INT64", leaf=LeafCounts(200, 0))
SPEC = Spec(0, (SpecField("day", "identity", "date"), SpecField("cut", "bucket[4]", "int64")))
PLACE = PartitionKey('{"cut":"3","day":"2026-01-02"}')
OUTPUT = DataFile("out", 9, PLACE, rows=200)
FOOTERS = GroupFooters(TABLE, (FooterSummary(schema="i"),) * 2, {}, {"i": FoundColumns({1: ID})})
LACKING = replace(ID, leaf=LeafCounts(199, 0))


INPUTS = (live("a", replace(VALUES, key_ids=(1,))), live("b"))
PLACED = InputGroup(replace(group(*INPUTS), partition=PLACE), INPUTS)


class Bench:
    """A table of a format version, whose output has a footer, and a proofreader that answers."""

    def __init__(self, *, version: int = 2, output: ParquetField = ID, footer: str = "", nulls: Any = None) -> None:
        self.asked: list[tuple[Rewritten, Proofread, str]] = []
        self.output, self.footer = output, footer
        head = SimpleNamespace(
            location="t",
            metadata=SimpleNamespace(configuration={}),
            protocol=SimpleNamespace(min_writer=version),
            specs={0: SPEC},
            sources={0: ("dt", "id")},
        )
        table = SimpleNamespace(
            lineage=lambda inputs: [(7, 4)] * len(inputs), null_counts=lambda outputs: [nulls or {} for _ in outputs]
        )
        self.check: Any = OutputCheck(table, head, self, TABLE, self, Proofread.NEW, "job-1")  # type: ignore[arg-type]

    def output_columns(self, inputs: Any, outputs: Any) -> DescribedFiles:
        return DescribedFiles((FooterSummary(self.footer, schema="o"),), {"o": FileSchema((self.output,))})

    def __call__(
        self,
        *deletes: Any,
        path_taken: PathTaken = PathTaken.ENCODED,
        outputs: Sequence[DataFile] = (OUTPUT,),
        footers: GroupFooters = FOOTERS,
    ) -> Proof:
        inputs = (replace(live("a", *deletes), entry=replace(live("a").entry)), live("b"))
        planned = replace(group(*inputs), partition=PLACE)
        files = tuple(map(IcebergFile, outputs))
        found: Proof = self.check.check(InputGroup(planned, inputs), footers, files, path_taken=path_taken)
        return found


class Proofreading(Bench):
    """The same with a proofreader that finds no difference."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.check = replace(self.check, proofreader=SimpleNamespace(check=self.answer))

    def answer(self, asked: Rewritten, mode: Proofread, *, fingerprint: str, tag: str) -> Proof:
        assert fingerprint == "iceberg encoded" or asked.copied or "by column" in fingerprint
        self.asked.append((asked, mode, tag))
        return Proof(Reading.ROWS, 200)


def test_the_reader_is_asked_with_columns_deletes_and_partition_values_of_the_format() -> None:
    bench = Proofreading()
    values = replace(VALUES, key_ids=(1,), size_bytes=5)
    bench(replace(VECTOR, offset=4, size_bytes=40), POSITIONS, values)
    ((asked, mode, tag),) = bench.asked
    assert (asked.table, asked.partition, asked.columns, asked.found_by) == ("t", PLACE, TABLE.columns, FoundBy.ID)
    assert (asked.copied, mode, tag) == (False, Proofread.NEW, "job-1")
    first = asked.inputs[0]
    assert first.deletes == (
        Deletes(DeleteForm.PUFFIN_VECTOR, "v", offset=4, size_bytes=40, rows=3),
        Deletes(DeleteForm.POSITIONS, "p", rows=3),
        Deletes(DeleteForm.EQUALITY, "e", size_bytes=5, rows=1, key_ids=(1,)),
    )
    assert (first.path, first.size_bytes, first.rows, first.first_row_id) == ("a", 10, 100, None)
    assert [file.constants for file in (*asked.inputs, *asked.outputs)] == [{2: "2026-01-02"}] * 3
    assert asked.outputs == (ProofFile("out", 9, 200, constants={2: "2026-01-02"}),)


def test_ids_of_rows_are_asked_for_where_the_format_gives_them() -> None:
    bench = Proofreading(version=3)
    bench()
    ((asked, _, _),) = bench.asked
    assert {(file.first_row_id, file.sequence) for file in asked.inputs} == {(7, 4)}
    assert asked.outputs[0].first_row_id is None


@pytest.mark.parametrize("reading", [Reading.ROWS, Reading.NONE])
def test_rows_at_chosen_places_are_compared_whatever_else_is_deleted(reading: Reading) -> None:
    bench, inputs = Bench(), (live("a", VALUES), live("b"))
    asked: list[tuple[Rewritten, Proofread]] = []
    check = SimpleNamespace(check=lambda *given, **_: asked.append(given) or Proof(reading))
    staged = StagedGroup(InputGroup(replace(group(*inputs), partition=PLACE), inputs), (IcebergFile(OUTPUT),), 200)
    is_same = replace(bench.check, proofreader=check).check_places(staged, [[3], [0, 9]], [3, 100, 109])
    assert is_same is (reading is Reading.ROWS)
    ((found, mode),) = asked
    assert mode is Proofread.ALWAYS
    assert [file.deletes for file in (*found.inputs, *found.outputs)] == [
        (Deletes(DeleteForm.OTHERS, text=text),) for text in ("[3]", "[0, 9]", "[3, 100, 109]")
    ]


OVER = Deletes(DeleteForm.OVER, text='["dt", "2026-01-02"]')


def test_rows_that_were_left_out_are_left_out_of_the_comparison() -> None:
    bench = Proofreading(output=LACKING)
    outputs = (IcebergFile(replace(OUTPUT, rows=199)),)
    bench.check.check(PLACED, FOOTERS, outputs, path_taken=PathTaken.ENCODED, over=OVER)
    ((asked, _, _),) = bench.asked
    by_value = Deletes(DeleteForm.EQUALITY, "e", rows=1, key_ids=(1,))
    assert [file.deletes for file in (*asked.inputs, *asked.outputs)] == [(by_value, OVER), (OVER,), ()]
    assert asked.columns == TABLE.columns


def test_of_rows_that_all_go_the_columns_of_their_time_and_of_deletes_by_value_are_read() -> None:
    asked: list[Rewritten] = []
    bench = Bench()
    check = replace(
        bench.check,
        proofreader=SimpleNamespace(check=lambda group, _, **__: asked.append(group) or Proof(Reading.ROWS)),
        columns=TableColumns((*TABLE.columns, Field("more", "string", 3))),
    )
    check.check(PLACED, FOOTERS, (), path_taken=PathTaken.ENCODED, over=OVER)
    check.check_over(replace(PLACED, inputs=(live("b"),)), OVER)
    assert [[column.name for column in one.columns] for one in asked] == [["id", "dt"], ["dt"]]
    assert [one.outputs for one in asked] == [(), ()]
    assert asked[0].inputs[0].deletes[-1] == asked[1].inputs[0].deletes[0] == OVER


def test_a_group_of_which_no_row_is_left_is_read_and_each_row_found_to_be_deleted() -> None:
    bench = Bench()
    asked: list[Rewritten] = []
    ask = SimpleNamespace(check=lambda group, _, **__: asked.append(group) or Proof(Reading.ROWS, 0))
    check = replace(bench.check, proofreader=ask, columns=TableColumns((*TABLE.columns, Field("more", "string", 3))))
    for deletes in ((replace(VALUES, key_ids=(1,)),), (POSITIONS,)):
        inputs = (live("a", *deletes),)
        assert check.check(replace(PLACED, inputs=inputs), FOOTERS, (), path_taken=PathTaken.ENCODED).rows == 0
    assert [[column.name for column in one.columns] for one in asked] == [["id"], [TABLE.columns[0].name]]
    assert [(len(one.inputs[0].deletes), one.outputs) for one in asked] == [(1, ()), (1, ())]


def test_footers_that_contradict_are_a_difference_before_any_row_is_read() -> None:
    bench = Proofreading(output=LACKING)
    with pytest.raises(Difference, match="id: 199 values of 200 rows") as found:
        bench()
    assert (found.value.columns, found.value.files, bench.asked) == (("id",), ("a", "b"), [])
    with pytest.raises(Difference, match="a copy has another schema"):
        Proofreading()(path_taken=PathTaken.COPIED)
    Proofreading()(path_taken=PathTaken.BY_COLUMN)
    with pytest.raises(Corrupt, match="the output out has no footer"):
        Proofreading(footer="no_footer")()


def test_an_output_never_claims_fewer_nulls_than_its_footer_has() -> None:
    """Readers would pass over rows, whatever the rows are: also where not every input has a footer."""
    some = replace(ID, repetition="OPTIONAL", leaf=LeafCounts(200, 3))
    others = replace(FOOTERS, has_other_formats=True)
    for footers in (FOOTERS, others):
        with pytest.raises(Corrupt, match=r"claim fewer nulls than its footer has.*: id"):
            Proofreading(output=some, nulls={1: 2})(footers=footers)
    for output, nulls in ((some, {1: 3}), (some, {2: 0}), (replace(some, leaf=LeafCounts(200)), {1: 0})):
        assert Proofreading(output=output, nulls=nulls)(footers=others).reading is Reading.ROWS


def test_where_not_every_input_has_a_footer_the_reader_of_rows_alone_compares() -> None:
    others = replace(FOOTERS, has_other_formats=True)
    bench = Proofreading(output=LACKING)
    assert bench(footers=others) == Proof(Reading.ROWS, 200)
    assert len(bench.asked) == 1
    with pytest.raises(Corrupt, match="the output out has no footer"):
        Proofreading(footer="no_footer")(footers=others)


@pytest.mark.parametrize("name", ["out.orc", "out.avro"])
def test_an_output_of_another_format_has_no_footer_and_is_compared_by_rows_alone(name: str) -> None:
    bench = Proofreading(footer="no_footer")
    assert bench(outputs=(replace(OUTPUT, path=name),)).reading is Reading.ROWS
    with pytest.raises(Corrupt, match="no footer"):
        bench(outputs=(replace(OUTPUT, path="out.parquet"),))
