"""A dry run names the files that a run deletes, and the mark of a vacuum says what is gone."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from decider.formats.delta.actions import decode_commit, decode_vacuum
from decider.formats.delta.damage import LogFile
from decider.formats.delta.format import DeltaFormat
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.formats.delta_vacuum_plan import RETENTION
from shared.jobs.options import VacuumOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.table import CommitOrigin, TableMetadata, VacuumMark
from tests.support.aged_table import DAY_MS, age, data_files, now_ms, set_time, versions
from tests.support.local_vacuum import ON, LocalTable, run_locally


def preview(table: Path) -> set[str]:
    reader = DeltaFormat(StorageAccess(ReadMeter())).open(table.as_uri())
    found = asyncio.run(reader.plan_vacuum(ON, VacuumOptions(with_orphans=True), now_ms()))
    return {one.name for one in found.deletions}


@pytest.mark.parametrize("value", ["a b", "a%20b", "a:b", "Zürich", "a+b", "100%", "a&b#c?d", "_h", "a\\b"])
def test_a_dry_run_names_the_same_files_as_a_run_whatever_the_folder_is_called(tmp_path: Path, value: str) -> None:
    table = tmp_path / "t"
    for number in range(2):
        write_deltalake(table, pa.table({"id": [number], "p": [value]}), partition_by=["p"], mode="append")
    DeltaTable(table).delete("id = 0")
    age(table, {version: now_ms() - (30 - version) * DAY_MS for version in versions(table)})
    (folder,) = (one for one in table.iterdir() if one.name.startswith("p="))
    (folder / "orphan.parquet").write_bytes(b"x")
    for place in folder.iterdir():
        set_time(place, now_ms() - 40 * DAY_MS)
    before, shown = data_files(table), preview(table)
    run_locally(LocalTable(table), VacuumOptions(with_orphans=True))
    assert before - data_files(table) == shown
    assert len(shown) == 2
    assert DeltaTable(table).to_pyarrow_table()["id"].to_pylist() == [1]


def test_a_dry_run_shows_no_file_behind_a_link(tmp_path: Path) -> None:
    table, other = tmp_path / "t", tmp_path / "other"
    for place in (table, other):
        write_deltalake(place, pa.table({"id": [1], "p": [1]}), partition_by=["p"])
        age(place, {0: now_ms() - 30 * DAY_MS})
    (table / "x").symlink_to(other / "p=1")
    (table / "latest").symlink_to("p=1")
    assert preview(table) == set()


NOW_MS = 100 * DAY_MS
FOREIGN = {"operation": "VACUUM END", "operationParameters": {"status": "COMPLETED"}}


def test_the_end_of_our_own_vacuum_says_what_it_deleted() -> None:
    ours = CommitMetadata(CommitOrigin("j", 1), vacuumed_version=4, vacuumed_until_ms=17, vacuumed_orphans=1)
    info = FOREIGN | {"userMetadata": ours.encode(), "timestamp": NOW_MS}
    assert decode_vacuum(info, NOW_MS, None) == VacuumMark(17, with_orphans=True)
    body = json.dumps({"commitInfo": info}).encode()
    commit = decode_commit(body, LogFile("memory:///t", 9, "9.json"), TableMetadata("u"))
    assert commit.vacuum == VacuumMark(17, with_orphans=True)


@pytest.mark.parametrize(
    ("configuration", "days"),
    [({}, 7), ({RETENTION: "interval 2 weeks"}, 14), ({RETENTION: "interval 1 month"}, 7)],
)
def test_the_vacuum_of_another_engine_deletes_what_the_tables_retention_permits(
    configuration: dict[str, str], days: int
) -> None:
    expected = VacuumMark(NOW_MS - days * DAY_MS)
    assert decode_vacuum(FOREIGN, NOW_MS, TableMetadata("u", (), configuration)) == expected
    assert decode_vacuum(FOREIGN, NOW_MS, None) == VacuumMark(NOW_MS - 7 * DAY_MS)


@pytest.mark.parametrize(
    "info",
    [
        None,
        [],
        {"operation": "VACUUM START"},
        {"operation": "VACUUM END"},
        {"operation": "VACUUM END", "operationParameters": {"status": "FAILED"}},
    ],
)
def test_no_other_commit_ends_a_vacuum(info: Any) -> None:
    assert decode_vacuum(info, NOW_MS, None) is None
