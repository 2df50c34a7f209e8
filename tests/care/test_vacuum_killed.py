"""A vacuum whose actor is killed twice, with kill -9, is finished by the third, and nothing that is needed is gone."""

from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.aged_table import data_files, versions
from tests.support.long_history import contents, files_needed, history, remove_long_ago
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.redis]

NAME = "db.killed"
FILES = 6_000
"""Half a minute of deletions at the default rate, so that two kills fall into it."""


def results(stack: Stack) -> list[str]:
    finished = stack.get("/v1/jobs", state="finished")["jobs"]
    return [job["result"] for job in finished if job["kind"] == "vacuum"]


def test_a_vacuum_killed_twice_is_finished_and_every_version_inside_the_retention_works(stack: Stack) -> None:
    table = stack.tables / "killed"
    history(table)
    remove_long_ago(table, FILES)
    newest = versions(table)[-1]
    before = contents(table, 7)
    needed = files_needed(table, before)
    stack.decider(LAKEWRIGHT_SWEEP_S="2")
    stack.post("/v1/tables", {"location": table.as_uri(), "name": NAME}).raise_for_status()
    listed = stack.post(f"/v1/tables/{NAME}/vacuum", {"dry_run": True, "orphans": True}).json()
    assert {one["name"] for one in listed["deletions"]} == data_files(table) - needed
    assert stack.post(f"/v1/tables/{NAME}/vacuum", {"orphans": True}).status_code == 202

    left = [len(data_files(table))]
    for _ in range(2):
        actor = stack.actor()
        until("the vacuum deletes", lambda: len(data_files(table)) < left[-1] - 300, seconds=120)
        actor.kill()
        left.append(len(data_files(table)))
        assert versions(table)[-1] == newest, "no end is committed before the end"
        assert needed <= data_files(table)
    assert len(needed) < left[2] < left[1] < left[0]
    # Others go on writing meanwhile.
    write_deltalake(table, DeltaTable(table).to_pyarrow_table().slice(0, 1), mode="append")
    stack.actor()
    until("the vacuum ends", lambda: "done" in results(stack), seconds=180)
    assert sorted(results(stack)) == ["done", "expired", "expired"]
    assert contents(table, 7, after=newest) == before
    fresh = {str(Path(uri.removeprefix("file://")).relative_to(table)) for uri in DeltaTable(table).file_uris()}
    assert data_files(table) == needed | fresh
    ends = [one for one in DeltaTable(table).history() if one["operation"] == "VACUUM END"]
    assert len(ends) == 1
    print(f"\nfiles left after each kill: {left}; needed: {len(needed)}")
