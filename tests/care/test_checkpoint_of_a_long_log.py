"""A table of 5,000 commits of deltalake without a checkpoint: what one checkpoint saves each reader.

deltalake makes the first commits. The others are its last one with another file, because it takes longer for each
commit the more of them no checkpoint covers: six minutes for the first 2,500.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake

from actor.ports import TableJob
from shared.jobs.payload import CHECKPOINT
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.interop.engines.duck import connected
from tests.support.aged_table import commit_file, forget_logs
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark

COMMITS = 5_000
WRITTEN = 200
"""Commits that deltalake makes itself."""

QUIET = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
TIMES = 3
"""The fastest of so many tries counts: what else the machine does only ever adds time."""


def write(table: Path) -> None:
    write_deltalake(table, pa.table({"id": [0]}))
    opened = DeltaTable(table)
    for number in range(1, WRITTEN):
        write_deltalake(opened, pa.table({"id": [number]}), mode="append", post_commithook_properties=QUIET)
    last = [json.loads(line) for line in commit_file(table, WRITTEN - 1).read_text().splitlines()]
    assert [next(iter(action)) for action in last] == ["commitInfo", "add"]
    info, add = last[0]["commitInfo"], last[1]["add"]
    for number in range(WRITTEN, COMMITS):
        name = f"part-00000-{number:08d}-9cd1-3a3618729dc2-c000.snappy.parquet"
        pq.write_table(pa.table({"id": [number]}), table / name)
        statistics = json.loads(add["stats"]) | {"minValues": {"id": number}, "maxValues": {"id": number}}
        add |= {"path": name, "size": (table / name).stat().st_size, "stats": json.dumps(statistics)}
        lines = (json.dumps({"commitInfo": info}), json.dumps({"add": add}))
        commit_file(table, number).write_text("".join(f"{line}\n" for line in lines))


def readers(lab: DeltaLab, table: Path, duck: duckdb.DuckDBPyConnection) -> Mapping[str, Callable[[], int]]:
    """Calls that open the table and read none of its rows: statistics leave out every file."""

    def spark() -> int:
        forget_logs(lab.spark)
        return int(lab.spark.read.format("delta").load(str(table)).where("id < 0").count())

    return {
        "spark": spark,
        "deltalake": lambda: DeltaTable(table).to_pyarrow_dataset().count_rows(filter=pyarrow_field("id") < 0),
        "duckdb": lambda: duck.sql(f"SELECT count(*) FROM delta_scan('{table}') WHERE id < 0").fetchall()[0][0],
    }


def pyarrow_field(name: str) -> "pa.dataset.Expression":
    import pyarrow.dataset

    return pyarrow.dataset.field(name)


def fastest_s(call: Callable[[], int]) -> float:
    found = []
    for _ in range(TIMES):
        started_s = time.monotonic()
        assert call() == 0
        found.append(time.monotonic() - started_s)
    return round(min(found), 2)


def test_every_reader_opens_a_table_of_five_thousand_commits_by_its_checkpoint(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "long"
    started_s = time.monotonic()
    write(table)
    print(f"\n{COMMITS:,} commits in {time.monotonic() - started_s:.0f} s")
    assert not list((table / "_delta_log").glob("*.checkpoint*"))
    opens = readers(lab, table, connected(delta=True))
    before = {name: fastest_s(call) for name, call in opens.items()}
    job = TableJob(CHECKPOINT, table.as_uri(), Policy(), CommitOrigin("job", 7))
    started_s = time.monotonic()
    assert lab.engine.run_table_job(job, Control()).figures["written"] == 1
    print(f"checkpoint in {time.monotonic() - started_s:.1f} s")
    after = {name: fastest_s(call) for name, call in opens.items()}
    print(f"seconds to open: {before} -> {after}")
    assert after.keys() == before.keys()
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == list(range(COMMITS))
