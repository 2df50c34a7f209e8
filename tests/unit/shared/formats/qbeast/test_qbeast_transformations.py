"""Properties, revisions and transformations of an index: what is read of them, and what is refused."""

import json
import struct
from fractions import Fraction
from typing import Any

import pytest

from shared.errors import Corrupt, RefusedFiles
from shared.formats.qbeast.iterations import IndexOptions, Strategy
from shared.formats.qbeast.options import read_options
from shared.formats.qbeast.revisions import IndexedColumn, decode_revisions
from shared.formats.qbeast.transformations import Coordinate, coordinates, encode_coordinates, in_zone
from shared.policy.properties import read_properties
from shared.refusals import RefusalReason
from tests.support.qbeast_data import qbeast_data

TABLES = qbeast_data() / "qbeast_tables"


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


AUTO = "use.optimization.autoOptimize."
UNINDEXED = AUTO + "optimizeUnindexedFiles."


@pytest.mark.parametrize(
    ("properties", "options"),
    [
        ({}, IndexOptions()),
        ({AUTO + "revisionId": "2"}, IndexOptions(revision=2)),
        ({"use.optimization.revision-id": "2"}, IndexOptions(revision=2)),
        ({"use.optimization.revision-id": "2", AUTO + "revisionId": "3"}, IndexOptions(revision=3)),
        ({UNINDEXED + "enabled": "false"}, IndexOptions(indexes_files=False)),
        ({UNINDEXED + "prioritize": "false"}, IndexOptions(indexes_first=False)),
        ({UNINDEXED + "batchBytes": "10000000"}, IndexOptions(batch_bytes=10_000_000)),
        ({UNINDEXED + "fromTimestamp": "1700000000000"}, IndexOptions(from_ms=1_700_000_000_000)),
        ({UNINDEXED + "fromTimestamp": "2023-11-14 22:13:20"}, IndexOptions(from_ms=1_700_000_000_000)),
        ({UNINDEXED + "fromTimestamp": "2023-11-14T23:13:20+01:00"}, IndexOptions(from_ms=1_700_000_000_000)),
        ({"use.optimization.bytes-per-iter": "0"}, IndexOptions(budget_bytes=0)),
        ({"use.optimization.bytes-per-iter": "2GB"}, IndexOptions(budget_bytes=2 << 30)),
        ({"use.optimization.revision-rewrite": "false"}, IndexOptions()),
        ({"use.optimization.revision-rewrite": "true"}, IndexOptions()),
        ({"lakewright.index-sample": "0.05"}, IndexOptions(sample=Fraction(1, 20))),
        ({"lakewright.index-sample": "off"}, IndexOptions()),
    ],
)
def test_a_property_sets_its_option(properties: dict[str, str], options: IndexOptions) -> None:
    assert read_options(properties) == (options, ())


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (AUTO + "revisionId", "latest", "a whole number"),
        (UNINDEXED + "enabled", "yes", "true or false"),
        (UNINDEXED + "batchBytes", "0", "1 byte or more"),
        (UNINDEXED + "fromTimestamp", "yesterday", "milliseconds since 1970"),
        ("use.optimization.revision-rewrite", "whole", "true or false"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_the_default_stays(name: str, value: str, reason: str) -> None:
    options, issues = read_options({name: value})
    assert options == IndexOptions()
    assert [(one.property, one.value) for one in issues] == [(name, value)]
    assert reason in issues[0].reason


def test_to_index_nothing_of_the_revision_without_an_index_is_a_contradiction() -> None:
    options, issues = read_options({AUTO + "revisionId": "0", UNINDEXED + "enabled": "false"})
    assert options.strategies == (Strategy.UNINDEXED,)
    assert "not to be indexed" in issues[0].reason


@pytest.mark.parametrize(
    ("text", "job_bytes"), [("0", 16 << 30), ("20000", 64 << 10), ("1 GB", 1 << 30), ("5000 GB", 1 << 40)]
)
def test_the_bytes_of_an_iteration_also_bound_a_job_and_are_never_an_error(text: str, job_bytes: int) -> None:
    layer = read_properties({"use.optimization.bytes-per-iter": text})
    assert (layer.values, layer.issues) == ({"max_bytes_per_job": job_bytes}, ())


COLUMNS = [
    {"className": "io.qbeast.core.transform.LinearTransformer", "columnName": "price", "dataType": "DoubleDataType"},
    {"className": "io.qbeast.core.transform.CDFQuantilesTransformer", "columnName": "name"},
]
REVISION = {"revisionID": 1, "timestamp": 17, "tableID": "/old", "desiredCubeSize": 500, "columnTransformers": COLUMNS}


def configuration(revision: object = REVISION, last: str = "1") -> dict[str, str]:
    return {"qbeast.lastRevisionID": last, "qbeast.revision.1": json.dumps(revision), "delta.x": "y"}


def test_a_revision_has_its_columns_and_cube_size() -> None:
    found = decode_revisions(configuration() | {"qbeast.revision.0": json.dumps(REVISION | {"new": [1]})})
    assert found.last == 1
    assert found.get(1) == found.by_id[1]
    assert found.get(0) is None, "no file is indexed under it"
    assert found.get(2) is None
    revision = found.by_id[1]
    assert revision.columns == (IndexedColumn("price", "linear"), IndexedColumn("name", "cdfquantiles"))
    assert (revision.desired_cube_size, revision.space.dimensions) == (500, 2)


@pytest.mark.parametrize(
    ("transformer", "kind"),
    [("Hash", "hashing"), ("StringHistogram", "histogram"), ("Histogram", "histogram"), ("Linear", "linear")],
)
def test_a_column_is_named_as_the_option_of_the_library_names_it(transformer: str, kind: str) -> None:
    column = {"className": f"io.qbeast.core.transform.{transformer}Transformer", "columnName": "c"}
    found = decode_revisions(configuration(REVISION | {"columnTransformers": [column]}))
    assert found.by_id[1].columns == (IndexedColumn("c", kind),)


def test_a_table_that_was_converted_has_no_indexed_revision_yet() -> None:
    assert decode_revisions({"qbeast.lastRevisionID": "0"}).last == 0


@pytest.mark.parametrize("last", ["", "-1", "one", "٢"])
def test_a_last_revision_that_is_no_number_is_refused(last: str) -> None:
    with pytest.raises(Corrupt, match=r"qbeast\.lastRevisionID"):
        decode_revisions(configuration(last=last))


def test_a_last_revision_that_is_missing_is_refused() -> None:
    with pytest.raises(Corrupt, match=r"no property qbeast\.revision\.2"):
        decode_revisions(configuration(last="2"))


@pytest.mark.parametrize(
    "revision",
    [
        [],
        {},
        REVISION | {"columnTransformers": []},
        REVISION | {"columnTransformers": ["price"]},
        REVISION | {"desiredCubeSize": 0},
        REVISION | {"desiredCubeSize": "500"},
    ],
)
def test_a_revision_that_cannot_be_read_is_refused_by_its_property(revision: object) -> None:
    with pytest.raises(Corrupt, match=r"qbeast\.revision\.1"):
        decode_revisions(configuration(revision))


def test_a_revision_that_is_no_json_is_refused() -> None:
    with pytest.raises(Corrupt, match=r"qbeast\.revision\.1"):
        decode_revisions({"qbeast.lastRevisionID": "1", "qbeast.revision.1": "{"})
