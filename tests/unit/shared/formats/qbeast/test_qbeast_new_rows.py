"""Rows that are added to an index: what cubes weigh with them, and the revision whose space holds them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import RefusedFiles
from shared.formats.qbeast.domains import (
    MAX_PASSES,
    count_domains,
    domains_of_index,
    lowered_weights,
    without_unrecorded,
)
from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, FileClass, IndexFile
from shared.formats.qbeast.next_revision import NewestRevision, ValueRange
from shared.formats.qbeast.revisions import IndexedColumn, Revision
from shared.formats.qbeast.transformations import coordinates
from shared.formats.qbeast.weights import fraction_of_weight, weight_of_fraction, weights_to_place_by
from shared.refusals import RefusalReason

LINE = Revision(1, 10, (IndexedColumn("a", "linear"),))


def file(**cubes: int) -> IndexFile:
    blocks = tuple(Block(cube.strip("_"), MIN_WEIGHT, MAX_WEIGHT, rows) for cube, rows in cubes.items())
    return IndexFile("f", 1, FileClass.INDEXED, 1, blocks)


def test_a_cube_keeps_as_many_rows_as_it_wants_above_the_weight_of_its_parent() -> None:
    found = lowered_weights({"": 100, "A": 80, "g": 20, "AA": 8}, {}, {}, LINE)
    root = weight_of_fraction(0.1)
    below = weight_of_fraction(fraction_of_weight(root) + 10 / 80)
    assert found == {"": root, "A": below, "g": weight_of_fraction(fraction_of_weight(root) + 0.5)}
    assert "AA" not in found, "it wants all of its rows"
    assert [fraction_of_weight(one) for one in (MIN_WEIGHT, MAX_WEIGHT)] == [0, 1]


def test_a_cube_that_wants_all_of_its_rows_is_a_leaf_and_no_weight_rises() -> None:
    low = weight_of_fraction(0.3)
    assert lowered_weights({"": 10}, {}, {}, LINE) == {}
    assert lowered_weights({"": 20}, {}, {"": low}, LINE) == {"": low}
    lower = lowered_weights({"": 20}, {"": 80.0}, {"": low, "A": MAX_WEIGHT}, LINE)
    assert lower == {"": weight_of_fraction(0.1), "A": MAX_WEIGHT}
    capped = lowered_weights({"": 20, "A": 20}, {}, {"": low}, LINE)
    assert capped["A"] == weight_of_fraction(fraction_of_weight(low) + 0.5), "from the weight that its parent has"


def test_rows_that_a_cube_keeps_lie_below_it_as_its_other_rows_do() -> None:
    found = domains_of_index([file(_=40, A=10, AA=20), file(g=30)], LINE.space)
    assert found == {"": 100, "A": 50, "g": 50, "AA": 50}


def test_no_cube_is_written_with_a_weight_that_live_rows_below_do_not_exceed() -> None:
    blocks = Block("A", 5, 30, 1), Block("AA", 20, MAX_WEIGHT, 1), Block("gA", 40, MAX_WEIGHT, 1)
    files = [IndexFile("f", 1, FileClass.INDEXED, 1, blocks)]
    known = {"A": 30, "AA": MAX_WEIGHT, "gA": MAX_WEIGHT}
    assert weights_to_place_by(files, LINE.space) == {**known, "": 4, "g": 39}
    assert weights_to_place_by(files, LINE.space, repairs=True) == {**known, "": 4, "g": 39, "A": 19}
    least = IndexFile("f", 1, FileClass.INDEXED, 1, (Block("A", MIN_WEIGHT, 30, 1),))
    assert weights_to_place_by([least], LINE.space)[""] == MIN_WEIGHT


def test_a_weight_that_no_block_records_is_not_used() -> None:
    weights = {"": 5, "A": 9}
    lowered = {"": 3, "A": 7, "AA": 8}
    assert without_unrecorded(lowered, weights, {"", "A", "AA", "AAA"}) == lowered
    assert without_unrecorded(lowered, weights, {"", "AA"}) == {"": 3, "A": 9, "AA": 8}
    assert without_unrecorded(lowered, weights, {""}) == {"": 3, "A": 9}


def test_rows_are_counted_in_passes_and_those_that_none_tells_apart_stay_in_one_cube() -> None:
    passes: list[Mapping[str, int]] = []

    def in_one_place(levels: Mapping[str, int]) -> Mapping[str, int]:
        passes.append(levels)
        return {cube + "A" * more: 50 for cube, more in levels.items()} | {"g": 7}

    found = count_domains(in_one_place, 57, LINE)
    assert len(passes) == MAX_PASSES
    assert passes[0] == {"": 6}
    assert set(passes[1].values()) == {6}
    assert (found[""], found["A"], found["AAAAAA"], max(map(len, found))) == (57, 50, 50, 6 + 6 * (MAX_PASSES - 1))
    assert found["g"] == 7, "counted where it was asked for, and nowhere else"
    assert count_domains(lambda _levels: pytest.fail("not counted"), 10, LINE) == {"": 10}


TYPES = {"a": "long", "b": "string", "c": "decimal(9,2)", "d": "timestamp", "e": "binary", "f": "integer", "g": "float"}


def staging(*names: str, **more: Any) -> dict[str, str]:
    transformers = [{"className": "io.qbeast.core.transform.EmptyTransformer", "columnName": name} for name in names]
    empty = [{"className": "io.qbeast.core.transform.EmptyTransformation"}] * len(names)
    revision = {"revisionID": 0, "tableID": "/t", "desiredCubeSize": 9, "columnTransformers": transformers}
    return {
        "qbeast.lastRevisionID": "0",
        "qbeast.revision.0": json.dumps({**revision, "transformations": empty}),
        **more,
    }


def decoded(properties: Mapping[str, str], number: int) -> dict[str, Any]:
    assert properties["qbeast.lastRevisionID"] == str(number)
    found: dict[str, Any] = json.loads(properties[f"qbeast.revision.{number}"])
    assert (found["revisionID"], found["desiredCubeSize"], found["tableID"]) == (number, 9, "/t")
    return found


def following(configuration: dict[str, str], created_ms: int = 5, **ranges: ValueRange) -> dict[str, str]:
    return NewestRevision.of(configuration, TYPES).holding(ranges, created_ms)


def test_the_first_revision_maps_texts_by_a_hash_and_all_else_by_value_as_the_library_spells_it() -> None:
    given = staging("a", "b", "c", "d")
    newest = NewestRevision.of(given, TYPES)
    assert [(one.name, one.type) for one in newest.ranged] == [
        ("a", "LongDataType"),
        ("c", "DecimalDataType"),
        ("d", "TimestampDataType"),
    ]
    properties = following(given, a=ValueRange(2**60 + 1, 2**60 + 2001), c=ValueRange(1, 3.5))
    found = decoded(properties, 1)
    assert (found["timestamp"], [one["dataType"] for one in found["columnTransformers"]][1]) == (5, "StringDataType")
    line, text, decimal, none = found["transformations"]
    assert (line["minNumber"], line["maxNumber"], line["orderedDataType"]) == (2**60 + 1, 2**60 + 2001, "LongDataType")
    assert text["className"].endswith("HashTransformation")
    assert '"minNumber":1.0,"maxNumber":3.5,"nullValue":1.0' in properties["qbeast.revision.1"]
    assert (decimal["orderedDataType"], none["className"][-25:]) == ("DecimalDataType", "NullToZeroTransformation$")
    assert [one.kind for one in coordinates(properties, 1)] == ["linear", "hashing", "linear", "constant"]


def test_a_revision_stays_while_its_space_holds_all_values_and_the_next_one_is_wider_on_the_side_that_was_left() -> (
    None
):
    first = staging("a", "b")
    first |= following(first, a=ValueRange(100, 200))
    assert following(first) == following(first, a=ValueRange(100, 200)) == {}
    for values, low, high in (
        (ValueRange(100, 201), 100, 300),
        (ValueRange(99, 150), 0, 200),
        (ValueRange(5, 950), 0, 950),
    ):
        line, text = decoded(following(first, a=values), 2)["transformations"]
        assert (line["minNumber"], line["maxNumber"], line["nullValue"]) == (low, high, 100), values
        assert text == json.loads(first["qbeast.revision.1"])["transformations"][1]


def test_bounds_stay_within_the_type_and_a_line_of_one_value_has_a_length() -> None:
    least, greatest = -(2**31), 2**31 - 1
    first = staging("f") | following(staging("f"), f=ValueRange(0, greatest - 1))
    (line,) = decoded(following(first, f=ValueRange(greatest, greatest)), 2)["transformations"]
    assert (line["minNumber"], line["maxNumber"]) == (0, greatest)
    for value, low, high in ((7, 7, 14), (0, 0, 1), (greatest, greatest - 1, greatest), (least, least, 0)):
        (line,) = decoded(following(staging("f"), f=ValueRange(value, value)), 1)["transformations"]
        assert (line["minNumber"], line["maxNumber"]) == (low, high)


def test_what_was_constant_becomes_a_line_once_it_has_other_values() -> None:
    first = staging("a")
    first |= following(first)
    (line,) = decoded(following(first, a=ValueRange(3, 9)), 2)["transformations"]
    assert (line["minNumber"], line["maxNumber"]) == (3, 9)
    one = dict(first)
    one["qbeast.revision.1"] = one["qbeast.revision.1"].replace(
        "NullToZeroTransformation$", "IdentityToZeroTransformation"
    )
    one["qbeast.revision.1"] = one["qbeast.revision.1"].replace(
        'Transformation"}', 'Transformation","identityValue":7}'
    )
    assert following(one, a=ValueRange(7, 7)) == {}
    (line,) = decoded(following(one, a=ValueRange(3, 7)), 2)["transformations"]
    assert (line["minNumber"], line["maxNumber"]) == (3, 7)
    one["qbeast.revision.1"] = one["qbeast.revision.1"].replace(":7}", ':"x"}')
    with pytest.raises(RefusedFiles, match="is no number"):
        following(one, a=ValueRange(3, 7))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (staging("e"), "'e' of type binary cannot be indexed as usual"),
        (staging("gone"), "'gone' of type none"),
        (staging("b", columnsToIndex="b:histogram"), "as histogram"),
        (staging("b", columnsToIndex="a,b:linear"), "as linear"),
        (staging("d", columnsToIndex="d:hashing"), "as hashing"),
    ],
)
def test_a_column_that_cannot_be_indexed_is_refused_by_name(given: dict[str, str], says: str) -> None:
    with pytest.raises(RefusedFiles, match=says) as refused:
        NewestRevision.of(given, TYPES)
    assert refused.value.reason is RefusalReason.INDEX


def test_a_number_is_hashed_where_the_table_says_so_and_other_transformations_stay() -> None:
    assert NewestRevision.of(staging("a", columnsToIndex="a:hashing"), TYPES).ranged == ()
    given = staging("a")
    given |= following(given, a=ValueRange(1, 2))
    given["qbeast.revision.1"] = given["qbeast.revision.1"].replace("LinearTransformation", "EmptyTransformation")
    assert following(given, a=ValueRange(5, 9)) == {}
    with pytest.raises(RefusedFiles, match="no line is long enough"):
        following(staging("g"), g=ValueRange(1.0, float("inf")))
