"""Vacuum and checkpoint in an actor whose JVM has known the table for long, and in folders of special names."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from actor.ports import TableJob
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import CHECKPOINT, VACUUM
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.aged_table import DAY_MS, age, commit_file, data_files, now_ms, set_time, undo_to, versions
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark


def ids(table: Path) -> list[int]:
    return sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist())


def append(table: Path, *rows: int) -> None:
    for row in rows:
        write_deltalake(
            table, pa.table({"id": [row]}), mode="append", configuration={"delta.checkpointInterval": "1000"}
        )


def run(lab: DeltaLab, kind: str, table: Path, options: dict[str, int] | None = None) -> Any:
    job = TableJob(kind, table.as_uri(), Policy(vacuum=True), CommitOrigin("job", 7), options=options or {})
    return lab.engine.run_table_job(job, Control())


@pytest.mark.parametrize("later", [0, 1])
def test_a_checkpoint_holds_what_the_commits_say_although_commits_were_undone(
    lab: DeltaLab, tmp_path: Path, later: int
) -> None:
    """An operator restores `_delta_log`; writers make other commits of the same numbers; the JVM knows the old ones."""
    table = tmp_path / "t"
    append(table, 0, 1, 2, 3)
    lab.engine.read_partition(table.as_uri(), WHOLE_TABLE)
    run(lab, VACUUM, table, {})
    undo_to(table, 1)
    append(table, *range(10, 13 + later))
    truth = ids(table)
    run(lab, CHECKPOINT, table)
    assert (table / "_delta_log" / "_last_checkpoint").exists()
    assert ids(table) == truth


def test_a_vacuum_sees_files_that_are_live_again_because_their_removal_was_undone(
    lab: DeltaLab, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    append(table, 0, 1)
    DeltaTable(table).delete("id = 0")
    append(table, 2)
    age(table, {version: now_ms() - (30 - version) * DAY_MS for version in versions(table)})
    lab.engine.read_partition(table.as_uri(), WHOLE_TABLE)
    undo_to(table, 1)
    append(table, 10, 11)
    age(table, {version: now_ms() - (28 - version) * DAY_MS for version in (2, 3)})
    run(lab, VACUUM, table, VacuumOptions(with_orphans=True).encode())
    assert ids(table) == [0, 1, 10, 11]


def test_a_link_to_a_folder_of_the_table_deletes_nothing_live(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by=["p"])
    age(table, {0: now_ms() - 30 * DAY_MS})
    (table / "latest").symlink_to("p=b")
    before = data_files(table)
    run(lab, VACUUM, table, VacuumOptions(with_orphans=True).encode())
    assert data_files(table) >= before
    assert ids(table) == [1, 2]


def test_several_vectors_in_one_file_live_as_long_as_one_of_them(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    lab.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '1000')"
    )
    for start in (0, 1000):
        lab.sql(f"INSERT INTO delta.`{table}` SELECT /*+ COALESCE(1) */ id FROM range({start}, {start + 1000})")
    lab.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 1")
    lab.sql(f"DELETE FROM delta.`{table}` WHERE id < 1000 AND id % 10 = 2")
    age(table, {version: now_ms() - (40 - version) * DAY_MS for version in versions(table)})
    before = lab.digest(str(table))
    run(lab, VACUUM, table, VacuumOptions(with_orphans=True).encode())
    assert lab.digest(str(table)) == before


@pytest.mark.parametrize("value", ["a b", "a%b", "a:b", "ü", "a/b", "x=y", "_h", ".h"])
def test_live_files_in_folders_of_special_values_stay_and_removed_ones_go(
    lab: DeltaLab, tmp_path: Path, value: str
) -> None:
    table = tmp_path / "t"
    frame = lab.spark.createDataFrame([(1, value), (2, value)], "id int, _p string")
    frame.coalesce(1).write.format("delta").partitionBy("_p").save(str(table))
    frame.coalesce(1).write.format("delta").mode("append").save(str(table))
    lab.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    age_all(table)
    before = lab.digest(str(table))
    run(lab, VACUUM, table, VacuumOptions(with_orphans=True).encode())
    assert lab.digest(str(table)) == before
    assert len([one for one in data_files(table) if one.endswith(".parquet")]) == len(DeltaTable(table).file_uris())


def age_all(table: Path) -> None:
    """Like `age`, for folders that are escaped twice in the log."""
    for version in versions(table):
        time_ms = now_ms() - (40 - version) * DAY_MS
        place = commit_file(table, version)
        actions = [json.loads(line) for line in place.read_text().splitlines() if line]
        for action in actions:
            (body,) = action.values()
            for name in ("timestamp", "deletionTimestamp", "modificationTime"):
                if name in body:
                    body[name] = time_ms
        place.write_text("".join(json.dumps(action) + "\n" for action in actions))
        set_time(place, time_ms)
        place.with_name(f".{place.name}.crc").unlink(missing_ok=True)
    for place in [*table.rglob("*.parquet"), *table.rglob("*.bin")]:
        if "_delta_log" not in place.parts:
            set_time(place, now_ms() - 41 * DAY_MS)
