"""Revisions are read from a table's properties, of which only columns and cube size matter here."""

import json

import pytest

from shared.errors import Corrupt
from shared.formats.qbeast.revisions import IndexedColumn, decode_revisions

COLUMNS = [
    {"className": "io.qbeast.core.transform.LinearTransformer", "columnName": "price", "dataType": "DoubleDataType"},
    {"className": "io.qbeast.core.transform.CDFQuantilesTransformer", "columnName": "name"},
]
REVISION = {"revisionID": 1, "timestamp": 17, "tableID": "/old", "desiredCubeSize": 500, "columnTransformers": COLUMNS}


def configuration(revision: object = REVISION, last: str = "1") -> dict[str, str]:
    return {"qbeast.lastRevisionID": last, "qbeast.revision.1": json.dumps(revision), "delta.x": "y"}


def test_a_revision_has_its_columns_cube_size_and_time() -> None:
    found = decode_revisions(configuration() | {"qbeast.revision.0": json.dumps(REVISION | {"new": [1]})})
    assert found.last == 1
    assert found.get(1) == found.by_id[1]
    assert found.get(0) is None, "no file is indexed under it"
    assert found.get(2) is None
    revision = found.by_id[1]
    assert revision.columns == (IndexedColumn("price", "linear"), IndexedColumn("name", "cdfquantiles"))
    assert (revision.desired_cube_size, revision.created_ms, revision.space.dimensions) == (500, 17, 2)


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
        REVISION | {"timestamp": "now"},
    ],
)
def test_a_revision_that_cannot_be_read_is_refused_by_its_property(revision: object) -> None:
    with pytest.raises(Corrupt, match=r"qbeast\.revision\.1"):
        decode_revisions(configuration(revision))


def test_a_revision_that_is_no_json_is_refused() -> None:
    with pytest.raises(Corrupt, match=r"qbeast\.revision\.1"):
        decode_revisions({"qbeast.lastRevisionID": "1", "qbeast.revision.1": "{"})
