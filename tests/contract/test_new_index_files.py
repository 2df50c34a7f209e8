"""Files of plain Delta writers in a table with an index: indexed without losing a row, and samples find every one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from actor.formats.qbeast.index_rows import Places
from actor.formats.qbeast.spark_rows import SparkRows
from shared.errors import Corrupt, RefusedFiles
from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.files import MAX_WEIGHT
from shared.formats.qbeast.weights import weight_of_fraction
from shared.refusals import RefusalReason
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import commit_info, live, newest
from tests.support.index_tables import FIRST, NAMES, IndexTable, verify
from tests.support.local_vacuum import Control
from tests.support.long_suites import beyond

pytestmark = pytest.mark.spark

ZONES = {"seven": "UTC", "zone": "America/New_York"}
FRACTIONS = (0.01, 0.05, 0.2)


def adds_of(table: IndexTable) -> list[Mapping[str, Any]]:
    return list(live(table.path).values())


def indexed_columns(table: IndexTable, revision: str) -> list[str]:
    detail = table.lab.sql(f"DESCRIBE DETAIL {table.name}")[0].asDict()["properties"]
    return [one["columnName"] for one in json.loads(detail[f"qbeast.revision.{revision}"])["columnTransformers"]]


def read_for_sample(adds: Sequence[Mapping[str, Any]], dimensions: int, limit: int) -> set[str]:
    """The files that the library's reader opens for a sample, by its own rule: cubes from the root down."""
    blocks = [(add["path"], block) for add in adds for block in json.loads(add["tags"]["blocks"])]
    weights: dict[str, int] = {}
    for _, block in blocks:
        weights[block["cubeId"]] = min(block["maxWeight"], weights.get(block["cubeId"], MAX_WEIGHT))
    space, cubes = CubeSpace(dimensions), set()
    for cube in weights:
        above = [weights[one] for one in space.path(cube)[1:] if one in weights]
        if all(limit > weight for weight in above):
            cubes.add(cube)
    return {path for path, block in blocks if block["cubeId"] in cubes and block["minWeight"] < limit}


def require_exact_samples(table: IndexTable) -> None:
    adds = adds_of(table)
    for revision in {add["tags"]["revision"] for add in adds}:
        of_revision = [add for add in adds if add["tags"]["revision"] == revision]
        columns = indexed_columns(table, revision)
        paths = [str(table.path / add["path"]) for add in of_revision]
        rows = table.lab.spark.read.parquet(*paths).selectExpr(
            f"hash({', '.join(f'`{name}`' for name in columns)}) AS weight", "_metadata.file_name AS file"
        )
        found = [(row.weight, row.file) for row in rows.collect()]
        for fraction in FRACTIONS:
            limit = weight_of_fraction(fraction)
            read = {Path(path).name for path in read_for_sample(of_revision, len(columns), limit)}
            missed = [file for weight, file in found if weight < limit and file not in read]
            assert missed == [], (revision, fraction)


def append_plainly(table: IndexTable, times: int = 3) -> None:
    """Append its own rows again, as a writer does that knows nothing of the index."""
    frame = table.lab.spark.read.format("delta").load(str(table.path)).coalesce(1)
    rows = frame.collect()
    for _ in range(times):
        table.lab.spark.createDataFrame(rows, frame.schema).coalesce(1).write.format("delta").mode("append").save(
            str(table.path)
        )


def revisions_of(adds: Iterable[Mapping[str, Any]]) -> set[str | None]:
    return {(add.get("tags") or {}).get("revision") for add in adds}


def in_zone(table: IndexTable, zone: str) -> None:
    if zone:
        table.lab.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('lakewright.index-zone' = '{zone}')")


@pytest.mark.parametrize("name", beyond(len(FIRST), NAMES, "care"))
def test_files_of_a_plain_writer_are_indexed_by_the_rules_of_the_newest_revision(lab: DeltaLab, name: str) -> None:
    table, zone = IndexTable(lab, name), ZONES.get(name, "")
    in_zone(table, zone)
    before = revisions_of(adds_of(table))
    append_plainly(table)
    rows = table.rows()
    assert None in revisions_of(adds_of(table))
    done = table.run(zone=zone)
    assert (done.is_complete, table.rows()) == (True, rows)
    assert revisions_of(adds_of(table)) == before, "no value left the space"
    assert commit_info(table.path, done.commits[0])["operation"] == "OPTIMIZE"
    code, found = verify(table)
    assert (code, found["rows_verified"]) == (0, len(rows)), found
    require_exact_samples(table)


def test_spark_counts_outputs_of_new_rows_until_it_agreed_with_tasks_once(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, counted, calls = IndexTable(lab, "one"), SparkRows.counted, list[Places]()
    monkeypatch.setattr(SparkRows, "counted", lambda rows, places: calls.append(places) or counted(rows, places))
    lab.engine._caches.index_rules.clear()
    seen = []
    for _ in range(3):
        append_plainly(table, 1)
        calls.clear()
        assert table.run().is_complete
        seen.append(len(calls))
    assert (seen[0] > 0, seen[1:]) == (True, [0, 0])
    require_exact_samples(table)
    lab.engine._caches.index_rules.clear()
    append_plainly(table, 1)
    monkeypatch.setattr(SparkRows, "counted", lambda *_: {})
    with pytest.raises(Corrupt, match="was stopped before its commit"):
        table.run()
    assert lab.engine._caches.index_rules == set()


def test_values_outside_of_the_space_make_the_next_revision_and_files_of_the_old_one_stay(lab: DeltaLab) -> None:
    table = IndexTable(lab, "two")
    old = {add["path"] for add in adds_of(table)}
    lab.sql(f"INSERT INTO {table.name} SELECT id + 5000, double * 3 - 7, text FROM {table.name} WHERE id < 400")
    rows = table.rows()
    set_first, indexed, *_ = table.run().commits
    assert commit_info(table.path, set_first)["operation"] == "SET TBLPROPERTIES"
    assert {add["path"] for add in adds_of(table) if add["tags"]["revision"] == "1"} == old
    assert (revisions_of(adds_of(table)), table.rows()) == ({"1", "2"}, rows)
    assert indexed == set_first + 1
    code, found = verify(table)
    assert (code, found["rows_verified"]) == (0, len(rows)), found
    require_exact_samples(table)
    lab.sql(f"INSERT INTO {table.name} SELECT id + 9000, double, text FROM {table.name} WHERE id >= 5000")
    table.run()
    assert revisions_of(adds_of(table)) == {"1", "2"}, "these values have their place by now"


def converted(lab: DeltaLab, columns: str = "long, text, day, instant, real") -> IndexTable:
    """A plain table that the library converted: it has a revision 0 with the names of columns, and no index."""
    table = IndexTable(lab, "one", at="converted")
    lab.sql(
        f"CREATE TABLE {table.name} USING delta AS SELECT id, mod(id * 977, 1000) AS long, "
        "concat('t', mod(id, 37)) AS text, "
        "date_add(date'2024-03-01', cast(mod(id, 90) AS int)) AS day, timestamp_seconds(id * 86413) AS instant, "
        "cast(mod(id, 11) / 3 AS float) AS real FROM range(2000)"
    )
    empty = "io.qbeast.core.transform.Empty"
    revision = {
        "revisionID": 0,
        "timestamp": 7,
        "tableID": str(table.path),
        "desiredCubeSize": 100,
        "columnTransformers": [
            {"className": f"{empty}Transformer", "columnName": name} for name in columns.split(", ")
        ],
        "transformations": [{"className": f"{empty}Transformation"}] * len(columns.split(", ")),
    }
    properties = {"qbeast.lastRevisionID": "0", "qbeast.revision.0": json.dumps(revision)}
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    lab.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ({listed})")
    return table


def test_a_table_that_was_converted_gets_its_first_revision_and_all_its_files_are_indexed(lab: DeltaLab) -> None:
    table = converted(lab)
    in_zone(table, "Europe/Berlin")
    rows = table.rows()
    assert table.run(zone="Europe/Berlin").is_complete
    assert (revisions_of(adds_of(table)), table.rows()) == ({"1"}, rows)
    code, found = verify(table)
    assert (code, found["rows_verified"]) == (0, 2000), found
    require_exact_samples(table)
    assert table.run(zone="Europe/Berlin").commits == ()


def test_days_whose_zone_is_not_known_and_values_without_a_place_stay_unindexed(lab: DeltaLab) -> None:
    table = converted(lab)
    version = newest(table.path)
    with pytest.raises(RefusedFiles, match=r"lakewright\.index-zone") as refused:
        table.run()
    assert (refused.value.reason, newest(table.path)) == (RefusalReason.INDEX, version)

    other = IndexTable(lab, "two")
    lab.sql(f"INSERT INTO {other.name} VALUES (7000, DOUBLE('NaN'), 'x')")
    (refused_path,) = [add["path"] for add in adds_of(other) if not add.get("tags")]
    lab.sql(f"INSERT INTO {other.name} VALUES (7001, 1.5, 'y')")
    rows = other.rows()
    assert other.run().is_complete
    assert [add["path"] for add in adds_of(other) if not add.get("tags")] == [refused_path]
    assert other.rows() == rows
    with pytest.raises(RefusedFiles, match="NaN"):
        other.run()


@pytest.mark.parametrize("phase", ["describing", "optimizing", "committing"])
def test_what_others_do_while_files_are_indexed_is_neither_lost_nor_doubled(lab: DeltaLab, phase: str) -> None:
    table = IndexTable(lab, "two")
    lab.sql(f"INSERT INTO {table.name} SELECT id + 5000, double * 3 - 7, text FROM {table.name} WHERE id < 400")
    change, control = ["describing", "optimizing", "committing"].index(phase) + 1, Control()
    statements = [
        f"DELETE FROM {table.name} WHERE id % 7 = 3",
        f"INSERT INTO {table.name} SELECT id + 20000, double * 5, text FROM {table.name} WHERE id < 50",
    ]

    def others(count: int) -> None:
        if count == change:
            for statement in statements:
                lab.sql(statement)

    control.before_change = others
    wanted = [row for row in range(1000) if row % 7 != 3]
    wanted += [row + 5000 for row in range(400) if (row + 5000) % 7 != 3]
    wanted += [row + 20000 for row in range(50) if row % 7 != 3]
    done = table.run(control)
    assert done.is_complete
    assert sorted(json.loads(row)["id"] for row in table.rows()) == sorted(wanted)
    assert None not in revisions_of(adds_of(table))
    assert verify(table)[0] == 0
    require_exact_samples(table)


def test_a_revision_that_another_writer_sets_first_is_not_replaced(lab: DeltaLab) -> None:
    table = IndexTable(lab, "two")
    lab.sql(f"INSERT INTO {table.name} SELECT id + 5000, double * 3 - 7, text FROM {table.name} WHERE id < 400")
    control = Control()
    first = lab.sql(f"DESCRIBE DETAIL {table.name}")[0].asDict()["properties"]["qbeast.revision.1"]
    theirs = first.replace('"revisionID":1', '"revisionID":2').replace('"minNumber":0.0', '"minNumber":-99.0')
    theirs = theirs.replace('"maxNumber":142857', '"maxNumber":942857')
    assert theirs != first

    def others(count: int) -> None:
        if count == 1:
            properties = f"'qbeast.lastRevisionID' = '2', 'qbeast.revision.2' = '{theirs}'"
            lab.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ({properties})")

    control.before_change = others
    rows = table.rows()
    assert table.run(control).is_complete
    properties = lab.sql(f"DESCRIBE DETAIL {table.name}")[0].asDict()["properties"]
    assert (properties["qbeast.lastRevisionID"], properties["qbeast.revision.2"]) == ("2", theirs)
    assert (revisions_of(adds_of(table)), table.rows()) == ({"1", "2"}, rows)
    assert verify(table)[0] == 0
