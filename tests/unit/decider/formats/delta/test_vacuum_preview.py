"""A dry run names the files that a run deletes, whatever folders are called, and none behind a link."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from decider.formats.delta.format import DeltaFormat
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.jobs.vacuum_options import VacuumOptions
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
