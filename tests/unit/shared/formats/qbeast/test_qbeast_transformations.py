"""How revisions map values: what is read of the JSON of a table that the library wrote, and what is refused."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from shared.errors import RefusedFiles
from shared.formats.qbeast.transformations import Coordinate, coordinates, encode_coordinates, in_zone
from shared.refusals import RefusalReason

TABLES = Path(__file__).parents[4] / "data" / "qbeast_tables"


def configured(name: str) -> dict[str, str]:
    log = (TABLES / name / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    found: dict[str, str] = next(one["metaData"]["configuration"] for one in map(json.loads, log) if "metaData" in one)
    return found


def revision(*transformations: dict[str, Any], columns: int = 1) -> dict[str, str]:
    transformers = [{"className": "T", "columnName": f"c{number}"} for number in range(columns)]
    return {"qbeast.revision.4": json.dumps({"columnTransformers": transformers, "transformations": transformations})}


def linear(**more: Any) -> dict[str, Any]:
    given = {"minNumber": 1, "maxNumber": 5, "nullValue": 3, "orderedDataType": "LongDataType", **more}
    return {"className": "io.qbeast.core.transform.LinearTransformation", **given}


def test_each_column_of_a_table_of_the_library_is_read() -> None:
    found = coordinates(configured("seven"), 1)
    assert [(one.column, one.kind) for one in found] == [
        *((name, "linear") for name in ("long", "int", "double", "float", "decimal", "day")),
        ("text", "hashing"),
    ]
    assert [one.is_day for one in found] == [False] * 5 + [True, False]
    words, _ = coordinates(configured("histogram"), 1)
    assert (words.kind, words.values[0], words.values[-1]) == ("histogram", "axol", "zebr")
    assert [one.kind for one in coordinates(configured("constants"), 1)] == ["linear", "constant", "constant"]


def test_a_line_is_mapped_by_the_librarys_own_steps() -> None:
    (found,) = coordinates(revision(linear(minNumber=0.1, maxNumber=0.7, orderedDataType="DoubleDataType")), 4)
    assert (found.minimum, found.scale, found.null) == (0.1, 1.0 / (0.7 - 0.1), 3.0)
    (rounded,) = coordinates(revision(linear(minNumber=0.1, maxNumber=0.7, orderedDataType="FloatDataType")), 4)
    low, high = (struct.unpack("f", struct.pack("f", value))[0] for value in (0.1, 0.7))
    assert (rounded.minimum, rounded.scale) == (low, 1.0 / (high - low))
    assert rounded.minimum != 0.1
    (instant,) = coordinates(revision(linear(orderedDataType="TimestampDataType")), 4)
    assert (instant.is_instant, instant.is_day) == (True, False)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"className": "io.qbeast.core.transform.CDFStringQuantilesTransformation"}, "is not known"),
        ({}, "'' of 'c0' is not known"),
        (linear(nullValue=None), "lacks a value"),
        (linear(minNumber="1"), "lacks a value"),
        (linear(minNumber=True), "lacks a value"),
        (linear(minNumber=5), "lacks a value"),
        (linear(orderedDataType="StringDataType"), "the type 'StringDataType' is not known"),
        (linear(maxNumber=1e300, orderedDataType="FloatDataType"), "lacks a value"),
        ({"className": "x.HashTransformation"}, "lacks a value"),
        ({"className": "x.StringHistogramTransformation", "histogram": ["a"]}, "two texts or more"),
        ({"className": "x.StringHistogramTransformation", "histogram": ["a", 1]}, "two texts or more"),
    ],
)
def test_what_is_not_known_is_refused_by_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedFiles, match=says) as refused:
        coordinates(revision(given), 4)
    assert (refused.value.reason, refused.value.field) == (RefusalReason.INDEX, "qbeast.revision.4")


def test_a_column_without_a_transformation_is_refused() -> None:
    with pytest.raises(RefusedFiles, match="another number of transformations"):
        coordinates(revision(linear(), columns=2), 4)


def test_the_text_for_java_has_every_field() -> None:
    text = encode_coordinates((Coordinate("hashing", "c", null="-1"),))
    assert json.loads(text) == [
        {
            "kind": "hashing",
            "column": "c",
            "type": "",
            "minimum": 0.0,
            "scale": 0.0,
            "null": "-1",
            "values": [],
            "zone": "",
        }
    ]


def test_days_have_a_place_once_the_zone_of_their_writers_is_named() -> None:
    found = coordinates(configured("zone"), 1)
    with pytest.raises(RefusedFiles, match=r"\(day\).*lakewright.index-zone") as refused:
        in_zone(found, "")
    assert refused.value.reason is RefusalReason.INDEX
    assert [one.zone for one in in_zone(found, "America/New_York")] == ["America/New_York", ""]
    assert in_zone(coordinates(configured("one"), 1), "") == coordinates(configured("one"), 1)


def test_numbers_whose_text_is_hashed_are_known() -> None:
    found = {one.column: one.is_spelled for one in coordinates(configured("hashes"), 1)}
    assert found == {"text": False, "long": False, "double": True, "float": True, "decimal": False}
