"""The plain replay compares texts as engines do, reads vectors, and finds removes that miss and files of no one."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.soak.log import (
    RESTORABLE_S,
    Orphans,
    TableLog,
    deleted_rows,
    newest_version,
    orphans_of,
    restorable_versions,
)

OURS = {"userMetadata": json.dumps({"lakewright": {"job": "j", "token": 1}})}
MAPPED = {"name": "a b", "metadata": {"delta.columnMapping.physicalName": "col-1"}}
SCHEMA = json.dumps({"fields": [MAPPED, {"name": "c", "metadata": {}}]})


def write(table: Path, *actions: dict[str, Any], info: dict[str, Any] | None = None) -> None:
    (table / "_delta_log").mkdir(exist_ok=True)
    number = len(list((table / "_delta_log").glob("*.json")))
    lines = [{"commitInfo": info or {"engineInfo": "delta-rs:py-1.5.1"}}, *actions]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    (table / "_delta_log" / f"{number:020d}.json").write_text(text)


def file(path: str, *, change: bool = True, p: str = "x", **more: Any) -> dict[str, Any]:
    return {"path": path, "dataChange": change, "partitionValues": {"p": p}, "size": 1, **more}


def read(table: Path) -> TableLog:
    log = TableLog(table)
    log.read_to(log.newest())
    return log


@pytest.mark.parametrize(("added", "removed"), [("p=b%20b/f", "p=b b/f"), ("p=Zürich/f", "p=Z%C3%BCrich/f")])
def test_a_remove_that_spells_the_path_otherwise_misses_and_is_found(tmp_path: Path, added: str, removed: str) -> None:
    write(tmp_path, {"add": file(added, change=False)}, info=OURS)
    write(tmp_path, {"remove": file(removed)})
    log = read(tmp_path)
    assert [(one.path, one.by, one.owner) for one in log.stray] == [(removed, "delta-rs", "lakewright")]
    assert len(log.live) == 1, "the file stays live for everybody"


def test_a_remove_of_what_no_one_ever_added_is_found(tmp_path: Path) -> None:
    write(tmp_path, {"remove": file("x", change=False)}, info=OURS)
    assert [(one.by, one.owner) for one in read(tmp_path).stray] == [("lakewright", "no one")]


def test_a_file_that_is_removed_twice_is_counted(tmp_path: Path) -> None:
    write(tmp_path, {"add": file("a")})
    write(tmp_path, {"remove": file("a")})
    write(tmp_path, {"remove": file("a")})
    assert read(tmp_path).removed_twice == 1


@pytest.mark.parametrize(
    ("actions", "problem"),
    [
        ([{"add": file("a")}], "says that it changes data"),
        ([{"add": file("a", change=False)}, {"remove": file("b", change=False, p="y")}], "more partitions than"),
        ([{"add": file("a", change=False)}, {"txn": {}}], "has the action txn"),
        ([{"add": file("a", change=False)}, {"metaData": {"schemaString": SCHEMA}}], "has the action metaData"),
        ([], "without files"),
    ],
)
def test_a_commit_of_ours_that_breaks_a_promise_is_found(
    tmp_path: Path, actions: list[dict[str, Any]], problem: str
) -> None:
    write(tmp_path, {"add": file("b", p="y")})
    write(tmp_path, *actions, info=OURS)
    assert [problem in broken for broken in read(tmp_path).broken] == [True]


def test_jobs_that_share_a_commit_may_touch_as_many_partitions(tmp_path: Path) -> None:
    files = [{"add": file(name, change=False, p=name)} for name in "xyz"]
    for jobs in (3, 2):
        mark = {"lakewright": {"job": "j-0", "token": 1, "others": [[f"j-{number}", 2] for number in range(1, jobs)]}}
        write(tmp_path, *files, info={"userMetadata": json.dumps(mark)})
    (broken,) = read(tmp_path).broken
    assert broken == "version 1: a commit of ours touches more partitions than it has jobs"


def test_a_commit_that_was_replaced_or_is_gone_is_found(tmp_path: Path) -> None:
    write(tmp_path, {"add": file("a")})
    write(tmp_path, {"add": file("b")})
    log = read(tmp_path)
    assert log.changed_commits() == []
    first, second = sorted((tmp_path / "_delta_log").glob("*.json"))
    first.write_text(second.read_text())
    second.unlink()
    assert log.changed_commits() == [0, 1]


def test_versions_to_restore_end_at_the_newest_change_of_schema(tmp_path: Path) -> None:
    write(tmp_path, {"metaData": {"schemaString": SCHEMA}})
    for _ in range(2):
        write(tmp_path, {"add": file("a")})
    write(tmp_path, {"metaData": {"schemaString": SCHEMA}})
    for _ in range(2):
        write(tmp_path, {"add": file("a")})
    assert newest_version(tmp_path) == 5
    assert restorable_versions(tmp_path, 5, time.time()) == [4, 3]
    assert restorable_versions(tmp_path, 5, time.time() + 2 * RESTORABLE_S) == [], (
        "a VACUUM may be about to delete their files"
    )


@pytest.mark.parametrize(
    "vector", [{"storageType": "p", "pathOrInlineDv": "/x"}, {"storageType": "i", "pathOrInlineDv": "0" * 20}]
)
def test_what_is_no_vector_is_refused(tmp_path: Path, vector: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="deletion vector"):
        deleted_rows(tmp_path, vector)


def test_orphans_are_reported_by_kind(tmp_path: Path) -> None:
    for name in (
        "p=a b/live.parquet",
        "p=a b/.live.parquet.crc",
        "p=a b/half.parquet",
        ".gone.parquet.crc",
        "_delta_log/00000000000000000000.json",
        "_delta_log/00000000000000000010.checkpoint.parquet",
        "_delta_log/_last_checkpoint",
        "_delta_log/00000000000000000003.json#1",
        "_delta_log/.00000000000000000004.json.tmp",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = orphans_of(tmp_path, {"p=a b/live.parquet"})
    assert found == Orphans(
        data=("p=a b/half.parquet",),
        staged=("_delta_log/.00000000000000000004.json.tmp", "_delta_log/00000000000000000003.json#1"),
        hidden=(".gone.parquet.crc",),
    )
    assert found.counts() == {"data": 1, "staged": 2, "hidden": 1}
