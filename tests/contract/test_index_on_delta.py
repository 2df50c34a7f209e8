"""Rewrites of index files on tables that Qbeast's library wrote: its blocks, no row lost, and what is refused."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JError

from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.job_table import JobTable
from actor.formats.delta.log import TableLog
from actor.formats.qbeast.delta_index import DeltaIndex
from actor.formats.qbeast.index_table import IndexRewrite
from actor.formats.qbeast.index_writer import IndexWriter
from actor.ports import TableJob
from shared.errors import Corrupt, RefusedFiles
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.transformations import Coordinate, encode_coordinates
from shared.jobs.payload import INDEX
from shared.layout.commit_metadata import CommitMetadata
from shared.policy.policy import Policy
from shared.refusals import RefusalReason
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import commit_info, newest
from tests.support.index_tables import FIRST, NAMES, IndexTable, optimized, verify
from tests.support.local_vacuum import Control
from tests.support.long_suites import beyond

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_overload")]

ZONE = "America/New_York"


def rewrite_all(table: IndexTable, zone: str) -> int:
    """Rewrite all files of each revision, a commit for each; return how many commits."""
    engine, origin = table.lab.engine, CommitOrigin("all", 1)
    job = TableJob(INDEX, str(table.path), Policy(index=True), origin)
    with engine._sessions.lease(tag="all") as owned, engine._sessions.bound(owned) as session:
        log = TableLog(engine._scala, session, str(table.path))
        parts = engine._scala, log, engine.proofreader, engine._settings.boundary
        opened = DeltaIndex(JobTable(*parts, job, Control(), 0, DeltaCaches()))
        index = QbeastIndex.of_snapshot(opened.snapshot())
        revisions = sorted({file.revision for file in index.files})
        for number in revisions:
            index = QbeastIndex.of_snapshot(opened.snapshot())
            wanted = IndexRewrite.of(index, index.of_revision(number), zone)
            opened.rewrite(wanted, CommitMetadata(origin, round=number, mode=INDEX))
    return len(revisions)


def test_a_call_that_py4j_could_take_for_either_of_two_overloads_fails(lab: DeltaLab) -> None:
    scala = lab.engine._scala
    function = scala.qbeast.QbeastCube.ofPlaces("[]", "[]")
    text = scala.resolve("org.apache.spark.sql.types.DataTypes").StringType
    with pytest.raises(Py4JError, match=r"udf\(.*, .*udf\("):
        scala.resolve("org.apache.spark.sql.functions").udf(function, text)
    with pytest.raises(Py4JError, match=r"Exception\(java.lang.*, .*Exception\(java.lang"):
        scala.resolve("java.lang.Exception")(None)
    assert function.ofColumns().deterministic()


@pytest.mark.parametrize("name", beyond(len(FIRST), NAMES, "care"))
def test_what_the_library_wrote_is_rewritten_as_it_does_it_block_for_block(lab: DeltaLab, name: str) -> None:
    table = IndexTable(lab, name)
    rows, version = table.rows(), newest(table.path)
    commits = rewrite_all(table, ZONE if name == "zone" else "UTC")
    assert newest(table.path) == version + commits
    assert table.blocks() == optimized(name)
    assert table.rows() == rows


def test_a_job_optimizes_until_nothing_is_left_and_every_commit_is_compared(lab: DeltaLab) -> None:
    table = IndexTable(lab, "four")
    rows, before = table.rows(), table.blocks()
    done = table.run(budget_bytes=0)
    assert done.commits
    assert (done.is_complete, table.rows()) == (True, rows)
    assert sum(len(blocks) for _, blocks in table.blocks()) < sum(len(blocks) for _, blocks in before)
    assert done.figures["groups_proofread_by_rows"] == done.figures["iterations"] == len(done.commits)
    assert [commit_info(table.path, one)["operation"] for one in done.commits] == ["OPTIMIZE"] * len(done.commits)
    assert table.run().commits == ()


DELETED, APPENDED = range(2, 200), range(5000, 5010)


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("DELETE FROM {} WHERE id > 1 AND id < 200", [row for row in range(1000) if row not in DELETED]),
        ("INSERT INTO {} SELECT id + 5000, long FROM {} WHERE id < 10", [*range(1000), *APPENDED]),
    ],
    ids=["delete", "append"],
)
def test_what_others_do_before_the_commit_is_neither_lost_nor_doubled(
    lab: DeltaLab, statement: str, wanted: list[int]
) -> None:
    table = IndexTable(lab, "one")
    control = Control()
    # The first change is begun before rows are read, the second is the commit.
    control.before_change = lambda count: lab.sql(statement.replace("{}", table.name)) if count == 2 else None
    done = table.run(control)
    assert sorted(json.loads(row)["id"] for row in table.rows()) == wanted
    assert (done.is_complete, None in done.commits) == (True, False), "what did not land is no commit"


def test_an_index_is_verified_by_all_its_rows_and_the_first_block_that_differs_is_named(lab: DeltaLab) -> None:
    table = IndexTable(lab, "one")
    version, blocks = newest(table.path), table.blocks()
    code, found = verify(table)
    compared = {"files": len(blocks), "blocks": sum(len(of_file) for _, of_file in blocks), "rows": 1000}
    assert (code, found) == (0, {"problem": "", **{f"{name}_verified": count for name, count in compared.items()}})
    assert verify(table, "--revision-id", "9")[1]["rows_verified"] == 0
    with_log(table, one_row_more)
    code, found = verify(table)
    assert (code, newest(table.path)) == (1, version)
    assert re.search(r"the block '.*' of .*\.parquet says \d+ rows from the weight", found["problem"])


def with_log(table: IndexTable, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions of all commits of a table."""
    for commit in sorted((table.path / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            change(action)
        commit.write_text("\n".join(map(json.dumps, actions)))


def one_row_more(action: dict[str, Any]) -> None:
    if "add" in action:
        blocks = json.loads(action["add"]["tags"]["blocks"])
        blocks[0]["elementCount"] += 1
        action["add"]["tags"]["blocks"] = json.dumps(blocks)


def wider(action: dict[str, Any]) -> None:
    if "metaData" in action:
        properties = action["metaData"]["configuration"]
        properties["qbeast.revision.1"] = properties["qbeast.revision.1"].replace(
            '"minNumber":0', '"minNumber":-99999999999999'
        )


def unknown(action: dict[str, Any]) -> None:
    if "metaData" in action:
        properties = action["metaData"]["configuration"]
        properties["qbeast.revision.1"] = properties["qbeast.revision.1"].replace(
            "LinearTransformation", "NewTransformation"
        )


@pytest.mark.parametrize(
    ("name", "change", "zone", "says"),
    [
        ("one", one_row_more, "", "rows from the weight"),
        ("one", wider, "", "do not lead to the blocks"),
        ("one", unknown, "", "'NewTransformation' of 'long' is not known"),
        ("zone", lambda _action: None, "", "lakewright.index-zone"),
        ("zone", lambda _action: None, "UTC", "do not lead to the blocks"),
        ("zone", lambda _action: None, "Europe/Nowhere", "no time zone"),
    ],
)
def test_rows_that_are_not_in_the_blocks_that_their_tags_say_are_refused_for_good(
    lab: DeltaLab, name: str, change: Callable[[dict[str, Any]], None], zone: str, says: str
) -> None:
    table = IndexTable(lab, name)
    with_log(table, change)
    version, files = newest(table.path), set(table.path.rglob("*.parquet"))
    with pytest.raises(RefusedFiles, match=says) as refused:
        table.run(zone=zone)
    assert refused.value.reason is RefusalReason.INDEX
    assert (newest(table.path), set(table.path.rglob("*.parquet"))) == (version, files)


def test_an_output_whose_blocks_have_other_rows_is_never_committed(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = IndexTable(lab, "one")
    version, files = newest(table.path), set(table.path.rglob("*.parquet"))
    write = IndexWriter._by_task

    def exchanged(writer: IndexWriter, *given: Any) -> Any:
        written = write(writer, *given)
        writer._planned.reverse()
        return written

    monkeypatch.setattr(IndexWriter, "_by_task", exchanged)
    with pytest.raises(Corrupt, match="stopped before its commit"):
        table.run()
    assert (newest(table.path), set(table.path.rglob("*.parquet"))) == (version, files)


@pytest.mark.parametrize(
    "properties",
    [
        "'delta.enableDeletionVectors' = 'true'",
        "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'",
    ],
    ids=["deletion vectors", "column mapping"],
)
def test_what_delta_reads_of_files_is_what_is_placed(lab: DeltaLab, properties: str) -> None:
    table = IndexTable(lab, "two")
    lab.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ({properties})")
    if "Vectors" in properties:
        lab.sql(f"DELETE FROM {table.name} WHERE id % 10 = 3")
    rows = table.rows()
    assert table.run(budget_bytes=0).commits
    assert table.rows() == rows
    version = newest(table.path)
    assert rewrite_all(table, "UTC") == 1
    assert (newest(table.path), table.rows()) == (version + 1, rows)


@pytest.mark.parametrize("of", ["ofFiles", "ofIndex"])
def test_a_cube_keeps_the_rows_up_to_its_own_weight(lab: DeltaLab, of: str) -> None:
    """Weights of the golden tables' rows never equal those of their cubes."""
    jvm, gateway = lab.spark._jvm, lab.spark.sparkContext._gateway
    assert jvm is not None
    assert gateway is not None
    coordinates = encode_coordinates([Coordinate("linear", "id", "LongDataType", 0.0, 1 / 100)])
    cubes = getattr(jvm.io.lakewright.qbeast.QbeastCube, of)(coordinates, '{"f":{"":10,"A":20}}')
    values = gateway.new_array(jvm.Object, 1)
    values[0] = 1
    row = jvm.org.apache.spark.sql.RowFactory.create(values)
    below = "(outside)" if of == "ofFiles" else "AA"
    assert [cubes.call(row, weight, "f") for weight in (9, 10, 11, 20, 21)] == ["", "", "A", "A", below]
