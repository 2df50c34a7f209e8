"""Every other action is switched on for a Qbeast table: plain rewrites never touch it, the others do it no harm."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shared.jobs.payload import CHECKPOINT, VACUUM
from tests.support.aged_table import DAY_MS, age, data_files, now_ms, set_time, versions
from tests.support.outside import is_at_rest
from tests.support.qbeast_process import QbeastProcess
from tests.support.qbeast_services import NAME, actor, begin, decisions, is_done, set_properties, unset
from tests.support.qbeast_table import index_versions, newest_index
from tests.support.stack import Stack, commits_of
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.redis, pytest.mark.long("qbeast")]

ROWS = 400
CUBE = 50
APPENDS = 8
EVERYTHING = {
    "lakewright.index": "on",
    # Compaction: after every second commit small files would be merged, and everything rewritten.
    "lakewright.target-file-size": "64kb",
    "lakewright.min-input-files": "2",
    "lakewright.tolerance": "0",
    "lakewright.max-small-files": "2",
    "lakewright.compact-every-commits": "2",
    "lakewright.full-every-commits": "2",
    "lakewright.portable-paths": "always",
    "lakewright.sort-by": "price",
    "lakewright.max-depth": "2",
    # Removals by key, and clustering.
    "lakewright.primary-key": "user",
    "lakewright.sequence-by": "price",
    "lakewright.deduplicate-every": "1s",
    "lakewright.cluster": "on",
    # What changes no rows.
    "lakewright.vacuum": "on",
    "lakewright.vacuum-every": "1s",
    "lakewright.orphans-every": "1s",
    "lakewright.checkpoint-every": "2",
}
PLAIN = {"compact", "sort", "deduplicate", "cluster", "rewrite_manifests"}
"""Actions that would rewrite files without index data."""


def written(qbeast: QbeastProcess, table: Path) -> list[int]:
    """Write a table with a history of weeks, in which files were removed; return its users.

    The library appends, Delta appends without an index, and a DELETE rewrites the files of the first append.
    """
    source = table.with_name("written")
    for number in range(APPENDS):
        qbeast.append(path=source.as_uri(), first=number * ROWS, rows=ROWS, cube_size=CUBE)
    qbeast.append_plainly(path=source.as_uri(), first=APPENDS * ROWS, rows=30)
    qbeast.sql(text=f"DELETE FROM delta.`{source.as_uri()}` WHERE user < 40")
    source.rename(table)  # Spark reads the log again at its new path.
    age(table, {version: now_ms() - (20 - version) * DAY_MS for version in versions(table)})
    return list(range(40, APPENDS * ROWS + 30))


def removed(table: Path, first: int, last: int) -> set[str]:
    """Return the files that the commits of these versions removed."""
    commits = commits_of(table)[first : last + 1]
    return {action["remove"]["path"] for commit in commits for action in commit if "remove" in action}


def changed_files(table: Path, after: int) -> int:
    """Return how many files the commits after a version added or removed."""
    return sum("add" in action or "remove" in action for commit in commits_of(table)[after + 1 :] for action in commit)


def checkpoints(table: Path) -> set[int]:
    return {int(one.name.partition(".")[0]) for one in (table / "_delta_log").glob("*.checkpoint*.parquet")}


def modes(table: Path) -> set[str | None]:
    return {one.mark.mode for one in index_versions(table) if one.mark is not None and one.mark.origin.job != "test"}


def request_everything(stack: Stack) -> dict[str, Any]:
    """Request each action as a person may; return the answers to plain rewrites."""
    url = f"/v1/tables/{NAME}"
    answers = {
        "force": stack.post(f"{url}/optimize", {"force": True}).json()["reasons"],
        "sort": stack.post(f"{url}/optimize", {"actions": ["sort"], "force": True}).json()["reasons"],
        "deduplicate": stack.post(f"{url}/actions/deduplicate", {}).status_code,
        "cluster": stack.post(f"{url}/actions/cluster", {}).status_code,
    }
    for what, body in (
        (VACUUM, {"orphans": True}),
        (CHECKPOINT, {}),
        ("reclaim", {"confirm": NAME, "retain_hours": None}),
    ):
        stack.post(f"{url}/actions/{what}", body).raise_for_status()
    return answers


@dataclass(frozen=True)
class Past:
    """What a table was before services saw it: rows, files that may be deleted, those that must stay, and reads."""

    users: list[int]
    files: set[str]
    may_go: set[str]
    kept: set[str]
    checksum: list[str]
    index: dict[str, int]
    sampled_bytes: int

    @staticmethod
    def of(qbeast: QbeastProcess, table: Path) -> "Past":
        """Write the table; its library rewrites today, so what that removes is inside the retention."""
        users = written(qbeast, table)
        aged, place = versions(table)[-1], table.as_uri()
        assert qbeast.run(path=place)["commits"]
        for name, days in (("orphan.parquet", 9), ("young.parquet", 0.5)):
            (table / name).write_bytes(b"x")
            set_time(table / name, int(now_ms() - days * DAY_MS))
        expired, kept = removed(table, 0, aged), removed(table, aged + 1, versions(table)[-1])
        assert expired
        assert kept
        sampled = qbeast.sample(path=place, fraction=0.2)["bytes"]
        return Past(
            users,
            data_files(table),
            expired | {"orphan.parquet"},
            kept,
            qbeast.checksum(path=place),
            qbeast.index(path=place),
            sampled,
        )


def test_plain_rewrites_never_touch_the_table_and_vacuum_and_checkpoints_do_no_harm(
    stack: Stack, qbeast: QbeastProcess
) -> None:
    table = stack.tables / "t"
    table.parent.mkdir(parents=True, exist_ok=True)
    past, place = Past.of(qbeast, table), table.as_uri()
    set_properties(qbeast, table, **EVERYTHING)
    altered = versions(table)[-1]
    begin(stack, table)
    assert stack.get(f"/v1/tables/{NAME}")["policy"]["issues"] == []
    stack.actor()

    # Vacuum and checkpoints run by themselves, then everything is requested.
    until("what may be deleted is deleted", lambda: not past.may_go & data_files(table), seconds=240)
    until("a checkpoint is written", lambda: max(checkpoints(table), default=0) > altered, seconds=120)
    until("nothing waits", lambda: is_at_rest(stack, NAME, table), seconds=120)
    answers = request_everything(stack)
    assert answers == {"force": {"indexed_table": 1}, "sort": {"indexed_table": 1}, "deduplicate": 409, "cluster": 422}
    until("nothing waits", lambda: is_at_rest(stack, NAME, table), seconds=120)
    unset(qbeast, table, "lakewright.sort-by")
    set_properties(qbeast, table, **{"lakewright.zorder-by": "price, user"})
    until("the change is read", lambda: is_at_rest(stack, NAME, table), seconds=60)
    assert request_everything(stack) == answers
    until("nothing waits", lambda: is_at_rest(stack, NAME, table), seconds=120)
    assert data_files(table) == past.files - past.may_go, "what a version inside the retention needs is kept"
    assert past.kept <= data_files(table)
    assert changed_files(table, altered) == 0
    print(f"\ndeleted {len(past.may_go)} of {len(past.files)} files, {len(past.kept)} removed ones kept")
    print(f"checkpoints {sorted(checkpoints(table))}, index {past.index}")

    # The library reads what it read before, ...
    assert qbeast.checksum(path=place) == past.checksum
    assert qbeast.index(path=place) == past.index
    assert qbeast.sample(path=place, fraction=0.2)["bytes"] == past.sampled_bytes > 0
    # ... appends, and optimizes, while everything else stays switched on.
    actor(stack)
    for number in range(APPENDS):
        qbeast.append(path=place, first=10_000 + number * ROWS, rows=ROWS, cube_size=CUBE)
    assert not newest_index(table).is_done
    until("the index is optimized", lambda: is_done(stack, table), seconds=300)
    assert qbeast.users(path=place) == [*past.users, *range(10_000, 10_000 + APPENDS * ROWS)]
    assert qbeast.run(path=place)["commits"] == []
    assert_only_the_library_rewrote(stack, table)


def assert_only_the_library_rewrote(stack: Stack, table: Path) -> None:
    # The commits of a vacuum have no mode.
    assert modes(table) == {None, "index"}
    plain = {(one["action"], one["reason"]) for one in decisions(stack) if one["action"] in PLAIN}
    print(f"decisions about plain rewrites: {sorted(plain)}")
    assert ("compact", "indexed_table") in plain
    assert {reason for _, reason in plain} <= {"indexed_table", "own_commit", "no_data_change", "not_a_clustered_table"}
    jobs = {job["kind"] for job in stack.get("/v1/jobs", state="finished", limit=100)["jobs"]}
    assert jobs == {"index", VACUUM, CHECKPOINT}
    assert not stack.get("/v1/status")["queue"]["depth"]["quarantined"]
