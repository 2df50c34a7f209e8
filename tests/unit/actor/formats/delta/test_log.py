"""What single commits tell: paths touched, whose commit it is, and whether it is still the one that was read."""

import json

import pytest
from structlog.testing import capture_logs

from actor.formats.delta import log as log_module
from actor.formats.delta.checkpoint_writer import MAX_FILES_HERE, MAX_INTERPRETED_FILES
from actor.formats.delta.snapshot_cache import SnapshotCache
from shared.errors import PermanentError, RetryableError
from shared.table import CommitOrigin, FileKey
from tests.support.fake_delta import FakeTable
from tests.support.fake_delta_table import METADATA, add, remove
from tests.support.java_errors import JavaError


def ours(job: str, token: int) -> dict[str, object]:
    return {"commitInfo": {"userMetadata": json.dumps({"lakewright": {"job": job, "token": token}})}}


def test_touched_paths_are_those_after_the_first_version_up_to_the_last_with_the_newest_touch_of_each() -> None:
    table = FakeTable()
    table.commit(add("a"))
    table.commit(add("b"), remove("x"))
    table.commit(remove("b"), {"commitInfo": {}})
    table.commit(add("c"))
    assert table.log().touched_paths(after=0, until=2) == {"b": 2, "x": 1}


def test_an_origin_is_found_by_job_and_token_above_the_version_since() -> None:
    table = FakeTable()
    for actions in ([add("a")], [ours("j", 1)], [ours("j", 2)], [ours("i", 2)]):
        table.commit(*actions)
    log = table.log()
    assert log.find_commit(CommitOrigin("j", 2), since_version=0) == 2
    assert log.find_commit(CommitOrigin("j", 2), since_version=1) == 2
    assert log.find_commit(CommitOrigin("j", 2), since_version=2) is None, "since_version itself is not searched"
    assert log.find_commit(CommitOrigin("j", 3), since_version=0) is None
    assert log.find_commit(CommitOrigin("i", 2), since_version=0) == 3


def test_a_commit_that_cannot_be_read_is_no_answer() -> None:
    table = FakeTable(unreadable=JavaError("IOException"))
    table.commit(add("a"))
    table.commit(ours("j", 1))
    with pytest.raises(JavaError):
        table.log().find_commit(CommitOrigin("j", 1), since_version=0)
    with pytest.raises(JavaError):
        table.log().commit_file(1)
    with pytest.raises(JavaError):
        table.log().digest(1)


@pytest.mark.parametrize(("since", "is_searched"), [(1, True), (0, False)])
def test_a_search_has_a_limit_beyond_which_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, since: int, is_searched: bool
) -> None:
    monkeypatch.setattr(log_module, "MAX_COMMITS_SEARCHED", 3)
    table = FakeTable()
    for _ in range(5):
        table.commit(add("a"))
    if is_searched:
        assert table.log().find_commit(CommitOrigin("j", 1), since_version=since) is None
    else:
        with pytest.raises(PermanentError, match="4 commits since version 0"):
            table.log().find_commit(CommitOrigin("j", 1), since_version=since)


def test_a_commit_stands_only_with_its_own_digest() -> None:
    table = FakeTable()
    table.commit(add("a"))
    log = table.log()
    digest = log.digest(0)
    assert digest is not None
    assert log.has_commit(0, digest)
    assert not log.has_commit(0, None)
    table.history[0] = [add("b")]
    assert not log.has_commit(0, digest)
    table.vanished.add(0)
    assert log.digest(0) is None
    assert not log.has_commit(0, digest)
    assert not log.has_commit(0, None), "nothing was read, and nothing is there: that is no match"


def test_a_checksum_that_was_carried_is_derived_further_and_not_written() -> None:
    table, snapshots = FakeTable(has_checksums=False), SnapshotCache()
    table.commit(add("a"))
    log = table.log(snapshots)
    log.cache(log.snapshot())
    seen: list[dict[str, str]] = []
    table.others = lambda: seen.append(dict(table.conf))
    log.commit(log.transaction(), [], {})
    (conf,) = seen
    assert conf == {
        "spark.databricks.delta.writeChecksumFile.enabled": "false",
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
    }


@pytest.mark.parametrize(("files", "has_checksums"), [(1, True), (1, False), (MAX_INTERPRETED_FILES + 1, True)])
def test_the_checkpoint_of_a_small_table_is_written_without_generated_code(files: int, has_checksums: bool) -> None:
    table, snapshots = FakeTable(has_checksums=has_checksums), SnapshotCache()
    table.commit(*(add(f"f{number}") for number in range(files)))
    log = table.log(snapshots)
    log.checkpoint(log.cache(log.snapshot()))
    ((version, conf),) = table.checkpoints
    assert version == 0
    assert (conf.get("spark.sql.codegen.factoryMode") == "NO_CODEGEN") is (files <= MAX_INTERPRETED_FILES)
    assert ("spark.databricks.delta.writeChecksumFile.enabled" in conf) is not has_checksums


@pytest.mark.parametrize(("files", "is_here"), [(1, True), (MAX_FILES_HERE, True), (MAX_FILES_HERE + 1, False)])
def test_the_checkpoint_of_a_small_log_needs_no_job(files: int, is_here: bool) -> None:
    table = FakeTable(is_small=True)
    table.commit(*(add(f"f{number}") for number in range(files)))
    log = table.log()
    log.checkpoint(log.snapshot())
    assert [(version, "here" in conf) for version, conf in table.checkpoints] == [(0, is_here)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.checkpointPolicy", "v2"),
        ("delta.checkpoint.writeStatsAsJson", "false"),
        ("delta.checkpoint.writeStatsAsStruct", "true"),
    ],
)
def test_a_checkpoint_of_another_kind_is_written_by_the_job(name: str, value: str) -> None:
    table = FakeTable(is_small=True)
    table.commit({"metaData": METADATA | {"configuration": {name: value}}}, add("a"))
    log = table.log()
    log.checkpoint(log.snapshot())
    assert [version for version, conf in table.checkpoints if "here" not in conf] == [0]


def test_a_snapshot_without_a_checksum_is_no_measure_of_a_checkpoint() -> None:
    table = FakeTable(is_small=True, has_checksums=False)
    table.commit(add("a"))
    log = table.log()
    log.checkpoint(log.snapshot())
    assert [version for version, conf in table.checkpoints if "here" not in conf] == [0]


def test_a_replay_that_fails_leaves_the_checkpoint_to_the_job() -> None:
    table = FakeTable(is_small=True, fails_replay=JavaError("IllegalStateException", message="other files"))
    table.commit(add("a"))
    log = table.log()
    with capture_logs() as logs:
        log.checkpoint(log.snapshot())
    assert [line["event"] for line in logs] == ["checkpoint_by_job"]
    assert [version for version, conf in table.checkpoints if "here" not in conf] == [0]


def test_a_checkpoint_that_fails_does_not_hide_the_commit() -> None:
    table = FakeTable(checkpoint_interval=1, fails_checkpoint=JavaError("IOException"))
    table.commit(add("a"))
    log = table.log()
    with capture_logs() as logs:
        assert log.commit(log.transaction(), [], {}) == 1
    assert [line["event"] for line in logs] == ["checkpoint_not_written"]


def test_only_the_named_files_are_deleted() -> None:
    table = FakeTable()
    assert table.log().delete([FileKey("a"), FileKey("p=1/b", "v")]) == 2
    assert table.deleted == ["a", "p=1/b"]


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({"configuration": {"lakewright.enabled": "false"}}, True),
        ({"name": "t", "description": "d"}, True),
        ({"configuration": {"delta.appendOnly": "true"}}, False),
        ({"schemaString": '{"fields":[{"name":"p","type":"string"},{"name":"q","type":"string"}]}'}, False),
        ({"partitionColumns": []}, False),
        ({"id": "t-2"}, False),
    ],
)
def test_files_fit_a_changed_table_only_if_nothing_changed_that_delta_honors(
    change: dict[str, object], is_same: bool
) -> None:
    table = FakeTable()
    table.commit(add("a"))
    log = table.log()
    before = log.shape(log.snapshot())
    table.commit({"metaData": METADATA | change})
    assert log.shape(log.snapshot()).same_layout(before) is is_same


def test_files_do_not_fit_under_another_protocol() -> None:
    table = FakeTable()
    table.commit(add("a"))
    log = table.log()
    before = log.shape(log.snapshot())
    table.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}})
    assert not log.shape(log.snapshot()).same_layout(before)


def test_a_commit_that_is_gone_is_none_or_an_error() -> None:
    table = FakeTable(vanished={0})
    table.commit(add("a"))
    assert table.log().commit_file(0) is None
    with pytest.raises(RetryableError, match="commit 0 of file:///lake/t is gone"):
        table.log().actions(0)


def test_a_commit_is_read_once_for_a_snapshot_and_again_for_the_next() -> None:
    table = FakeTable()
    table.commit(add("a"))
    log = table.log()
    before = log.commit_of_snapshot(0)
    table.history[0] = [add("b")]
    assert log.commit_of_snapshot(0) == before
    assert log.commit_file(0) != before
    log.snapshot()
    assert log.commit_of_snapshot(0) == log.commit_file(0)
