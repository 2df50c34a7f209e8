"""The doctor on tables that Spark really wrote and delta-rs really changed, and its repair as Spark reads it."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from services.cli.commands.doctor_table import TableReport, examine
from shared.paths.locations import canonical_location
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark

VALUES = {
    "blank": "'a b'",
    "letters": "'Zürich'",
    "timestamp": "TIMESTAMP '2024-01-01 00:00:00'",
    "plain": "'x'",
}


def spark_table(lab: DeltaLab, value: str) -> Path:
    """Two commits of twenty rows in one partition, written by Spark."""
    path = lab.directory / "t"
    for start in (0, 20):
        frame = lab.spark.sql(f"SELECT id, {value} AS p FROM range({start}, {start + 20}, 1, 1)")
        frame.write.format("delta").partitionBy("p").mode("append").save(str(path))
    return path


def reported(path: Path) -> TableReport:
    return examine(canonical_location(str(path)))


UNREADABLE = {"blank", "timestamp"}
"""A blank stands unescaped in the path of delta-rs' remove, which Spark takes for a URI and cannot parse."""


def ids(lab: DeltaLab, path: Path) -> list[int]:
    return sorted(row["id"] for row in lab.spark.read.format("delta").load(str(path)).collect())


@pytest.mark.parametrize("kind", list(VALUES))
def test_a_delete_by_delta_rs_on_a_table_of_sparks_is_reported_and_repaired_where_it_missed(
    lab: DeltaLab, kind: str
) -> None:
    path = spark_table(lab, VALUES[kind])
    lab.sql(f"DELETE FROM delta.`{path}` WHERE id = 39")
    assert not reported(path).is_harmed, "Spark alone"
    DeltaTable(str(path)).delete("id < 10")
    expected = list(range(10, 39))
    report = reported(path)
    assert report.is_harmed == (kind != "plain")
    if kind in UNREADABLE:
        with pytest.raises(Exception, match="URISyntaxException"):
            ids(lab, path)
    else:
        assert report.is_harmed == (ids(lab, path) != expected)
    if not report.is_harmed:
        return
    (missed,) = report.missed
    assert (missed["operation"], missed["fate"], missed["rows"]) == ("DELETE", "live", 20)
    made = next(finding for finding in report.findings if finding.check == "removes")
    assert f"TO VERSION AS OF {missed['version'] - 1}" in made.action
    newest = tables.newest(path)
    commit_repair(path, newest + 1, report)
    if kind not in UNREADABLE:
        assert ids(lab, path) == expected
    assert not reported(path).is_harmed


def commit_repair(path: Path, version: int, report: TableReport) -> None:
    """Commit the repair as docs/doctor.md tells it."""
    file = path / "_delta_log" / f"{version:020d}.json"
    with file.open("x") as out:
        out.write("\n".join(map(json.dumps, report.repair)))
