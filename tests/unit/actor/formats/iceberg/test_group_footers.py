"""What footers forbid is known before anything is written, and names every file."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.copy_choice import ManifestEntry
from actor.formats.iceberg.group_footers import POSITION_KEYS, GroupFooters, read_group
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.file_columns import DescribedFiles, FileSchema, ParquetField, decode_described
from actor.formats.parquet.footer_summary import FooterSummary
from actor.proofread.model import Field
from shared.errors import RefusedFiles
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import POSITIONS, VALUES, VECTOR, group, live

TABLE = TableColumns((Field("id", "int64", 1),), frozenset({1}))
CLEAR = FileSchema((ParquetField("id", 1, "REQUIRED", physical="INT64"),))
UNCLEAR = FileSchema((ParquetField("id", None, physical="INT64"), ParquetField("x", 2)))
OBSTACLE = FooterSummary(obstacle="no_footer")


class Reader:
    """Tells this schema of each file; `deletes` of each delete file."""

    def __init__(self, *files: FileSchema | FooterSummary, deletes: FileSchema | FooterSummary = CLEAR) -> None:
        self.files, self.deletes = files, deletes
        self.asked: list[str] = []

    def columns(self, inputs: Sequence[LiveInput]) -> DescribedFiles:
        self.asked += [one.path for one in inputs]
        return _described(self.files[: len(inputs)])

    def delete_columns(self, inputs: Sequence[LiveInput], deletes: Sequence[AppliedDelete]) -> DescribedFiles:
        self.asked += [one.path for one in deletes]
        return _described([self.deletes] * len(deletes))


def _described(files: Sequence[FileSchema | FooterSummary]) -> DescribedFiles:
    schemas = {str(id(one)): one for one in files if isinstance(one, FileSchema)}
    told = [one if isinstance(one, FooterSummary) else FooterSummary(schema=str(id(one))) for one in files]
    return DescribedFiles(tuple(told), schemas)


def read(reader: Reader, *inputs: LiveInput) -> bool:
    return footers(reader, *inputs).may_hold_forbidden_nulls


def footers(reader: Reader, *inputs: LiveInput) -> GroupFooters:
    return read_group(reader, TABLE, InputGroup(group(*inputs), inputs), "t")


def test_all_files_that_are_unclear_are_refused_at_once_and_named() -> None:
    with pytest.raises(RefusedFiles, match="b, and 1 more files: the column id has no field id") as refused:
        read(Reader(CLEAR, UNCLEAR, UNCLEAR), live("a"), live("b"), live("c"))
    assert (refused.value.reason, refused.value.files) == ("columns_unclear", ("b", "c"))


def test_a_file_that_is_not_what_its_manifest_says_is_named_with_the_size() -> None:
    with pytest.raises(RefusedFiles, match=r"^b in \{\} of t is no Parquet file of 10 bytes") as refused:
        read(Reader(CLEAR, OBSTACLE), live("a"), live("b"))
    assert (refused.value.reason, refused.value.files) == ("damaged", ("b",))


def test_each_delete_file_with_columns_is_read_once() -> None:
    values, places = replace(VALUES, key_ids=(1,), is_parquet=True), replace(POSITIONS, is_parquet=True)
    reader = Reader(CLEAR, CLEAR)
    assert footers(reader, live("a", values, VECTOR), live("b", values)).keys == ({1: CLEAR.fields[0]},)
    assert reader.asked == ["a", "b", "e"]
    with pytest.raises(RefusedFiles, match="e: the column id of the delete file has no field id"):
        read(Reader(CLEAR, deletes=UNCLEAR), live("a", values))
    with pytest.raises(RefusedFiles, match="p: the column file_path of the delete file has no field id"):
        read(Reader(CLEAR, deletes=CLEAR), live("a", places))
    reserved = FileSchema(tuple(ParquetField(name, number) for number, name in POSITION_KEYS))
    read(Reader(CLEAR, deletes=reserved), live("a", places))
    with pytest.raises(RefusedFiles, match="the column with id 7 of the delete file"):
        read(Reader(CLEAR), live("a", replace(values, key_ids=(7,))))


def test_a_delete_file_without_a_footer_says_nothing_unclear_and_is_left_to_the_reader_of_deletes() -> None:
    reader = Reader(CLEAR, deletes=OBSTACLE)
    assert not read(reader, live("a", replace(VALUES, key_ids=(1,), is_parquet=True)))
    assert reader.asked == ["a", "e"]


def test_of_files_of_other_formats_no_footer_is_read_and_nulls_are_expected() -> None:
    avro = replace(live("a"), entry=ManifestEntry("avro"))
    reader = Reader(CLEAR)
    assert read(reader, avro, live("b"))
    assert reader.asked == ["b"]
    assert not read(Reader(CLEAR), live("b"))


def test_what_the_jvm_tells_is_decoded_with_counts_of_each_leaf() -> None:
    leaf = {"values": 3, "nulls": None, "is_bounded": True, "least": "1", "greatest": "2"}
    field = {
        "name": "id", "id": 1, "repetition": "REQUIRED", "logical": "", "physical": "INT64", "length": 0, "leaf": leaf,
    }  # fmt: skip
    struct = {"name": "s", "id": None, "repetition": "OPTIONAL", "logical": "LIST", "children": [field]}
    told = decode_described({"files": [{"obstacle": "", "schema": "d"}], "schemas": {"d": {"fields": [struct]}}})
    (found,) = told.schemas["d"].fields
    assert (found.logical, found.children[0].id, told.files[0].schema) == ("LIST", 1, "d")
    assert found.children[0].leaf is not None
    assert (found.children[0].leaf.values, found.children[0].leaf.nulls) == (3, None)
