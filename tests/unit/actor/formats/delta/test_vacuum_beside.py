"""What happens beside a running vacuum ends it before anything that is needed is deleted."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from actor.formats.delta.vacuum import Vacuum
from actor.ports import TableJob, TableJobOutcome
from actor.vacuum.steps import VacuumLimits
from shared.errors import LakewrightError, LeaseLost, RetryableError
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.paths.stored_file import StoredFile
from shared.table import CommitOrigin
from tests.support.aged_table import DAY_MS, commit_file, data_files, now_ms, set_time, versions
from tests.support.local_vacuum import ON, Control, LocalTable, rewritten_long_ago, run_locally

BATCHES = VacuumLimits(batch=2, files_per_s=10**6)


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    return rewritten_long_ago(tmp_path / "t")


def append(table: LocalTable, *actions: dict[str, Any]) -> None:
    """Commit these actions."""
    place = commit_file(table.path, versions(table.path)[-1] + 1)
    place.write_text(
        "".join(json.dumps(action) + "\n" for action in ({"commitInfo": {"timestamp": now_ms()}}, *actions))
    )


def metadata_of(table: LocalTable, **changes: Any) -> dict[str, Any]:
    first = [json.loads(line) for line in commit_file(table.path, 0).read_text().splitlines()]
    (found,) = (action["metaData"] for action in first if "metaData" in action)
    return {"metaData": {**found, **changes}}


def run_with(table: LocalTable, before_second_batch: Any) -> TableJobOutcome | None:
    """Run in batches of two, and let something happen when the second begins."""
    control = Control()
    reached = control.reached

    def at(point: str, done: int = 0, total: int = 0) -> None:
        reached(point, done, total)
        if (point, done) == ("deleting", 2):
            before_second_batch()

    control.reached = at  # type: ignore[method-assign]
    try:
        return run_locally(table, VacuumOptions(), control=control, limits=BATCHES)
    except LakewrightError:
        return None


@pytest.mark.parametrize(
    "configuration",
    [
        {"lakewright.vacuum": "off"},
        {"lakewright.enabled": "false"},
        {"delta.deletedFileRetentionDuration": "interval 60 days"},
        {"lakewright.retain": "60 days"},
    ],
)
def test_properties_that_forbid_further_deletions_stop_a_running_vacuum(
    table: LocalTable, configuration: dict[str, str]
) -> None:
    """A vacuum of a million files runs for more than an hour: its owner must be able to stop it."""
    run_with(table, lambda: append(table, metadata_of(table, configuration=configuration)))
    assert len(table.deleted) == 2


@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"], "writerFeatures": ["new"]},
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["catalogManaged"],
            "writerFeatures": ["catalogManaged", "inCommitTimestamp"],
        },
    ],
)
def test_a_protocol_that_is_not_known_stops_a_running_vacuum(table: LocalTable, protocol: dict[str, Any]) -> None:
    """Later commits of a catalog-managed table are staged: a RESTORE would not be seen any more."""
    run_with(table, lambda: append(table, {"protocol": protocol}))
    assert len(table.deleted) == 2


def test_a_table_that_was_dropped_and_made_again_meanwhile_loses_nothing(table: LocalTable) -> None:
    """Its log was lost, and CONVERT TO DELTA took all files of the folder in: they are live from now on."""
    files = sorted(data_files(table.path))

    def convert() -> None:
        shutil.rmtree(table.path / "_delta_log")
        (table.path / "_delta_log").mkdir()
        commit_file(table.path, 0).write_text("")
        left = [name for name in files if (table.path / name).exists()]
        adds = [{"add": {"path": name, "size": 1, "partitionValues": {}, "dataChange": True}} for name in left]
        commit_file(table.path, 0).write_text("".join(json.dumps(action) + "\n" for action in adds))

    run_with(table, convert)
    assert len(table.deleted) == 2


def test_commits_that_were_undone_meanwhile_make_their_files_live_again(table: LocalTable) -> None:
    """An operator restores `_delta_log` from a backup; writers then make other commits of the same numbers."""

    def undo() -> None:
        for version in range(10, versions(table.path)[-1] + 1):
            commit_file(table.path, version).unlink()
        for _ in range(4):
            append(table)

    run_with(table, undo)
    assert len(table.deleted) == 2


def test_a_commit_while_the_store_is_asked_for_a_batch_is_seen(table: LocalTable) -> None:
    """The store is asked for up to 100 files one by one, which takes seconds on S3: the log is read after that."""
    stored = table.stored

    def restoring(names: Any) -> Any:
        found = stored(names)
        if versions(table.path)[-1] == 12:
            DeltaTable(table.path).restore(9)
        return found

    table.stored = restoring  # type: ignore[method-assign]
    assert not run_locally(table, VacuumOptions(), limits=BATCHES).is_complete
    assert table.deleted == []


def test_a_forced_request_that_runs_late_deletes_nothing_that_was_removed_after_it(table: LocalTable) -> None:
    """A purge of all history that waits for an actor, or is tried again, for two days must not purge these two days."""
    asked = {**VacuumOptions(force=True, retain_s=0).encode(), "requested_ms": now_ms() - 2 * DAY_MS}
    job = TableJob(VACUUM, table.path.as_uri(), ON, CommitOrigin("job", 7), even_if_disabled=True, options=asked)
    Vacuum(table, job, Control()).run()
    assert DeltaTable(table.path, version=11).to_pyarrow_table().num_rows == 11


def test_a_host_whose_clock_is_days_ahead_of_the_stores_deletes_nothing(table: LocalTable) -> None:
    """The newest times in the store bound the clock from below only; one file written now shows the store's clock."""
    orphan = table.path / "being-written.parquet"
    orphan.write_bytes(b"x")
    job = TableJob(
        VACUUM, table.path.as_uri(), ON, CommitOrigin("job", 7), options=VacuumOptions(with_orphans=True).encode()
    )
    Vacuum(table, job, Control(), now_ms=lambda: now_ms() + 30 * DAY_MS).run()
    assert orphan.exists()
    assert DeltaTable(table.path, version=11).to_pyarrow_table().num_rows == 11


def test_a_link_to_a_folder_of_the_table_makes_no_file_an_orphan(table: LocalTable) -> None:
    """As Hadoop lists a table with `latest -> .`: each file once more, below the link."""
    list_files = table.list_files

    def with_link() -> Any:
        for file in list_files():
            yield file
            if "/" not in file.name:
                yield StoredFile(f"latest/{file.name}", file.size_bytes, file.modified_ms)

    (table.path / "latest").symlink_to(".")
    table.list_files = with_link  # type: ignore[method-assign]
    run_locally(table)
    assert DeltaTable(table.path).to_pyarrow_table().num_rows == 10


def test_a_newest_commit_that_is_gone_deletes_nothing(table: LocalTable) -> None:
    """Log cleanup never deletes the newest commit: the log was moved away since the snapshot was read."""
    head, live, tombstones = table.head(), table.live(), table.tombstones()
    table.head, table.live, table.tombstones = lambda: head, lambda: live, lambda: tombstones  # type: ignore[method-assign]
    shutil.rmtree(table.path / "_delta_log")
    (table.path / "_delta_log").mkdir()
    orphan = table.path / "perhaps-live.parquet"
    orphan.write_bytes(b"x")
    set_time(orphan, now_ms() - 30 * DAY_MS)
    with pytest.raises(RetryableError, match="is gone"):
        run_locally(table)
    assert table.deleted == []


@pytest.mark.parametrize("requested_ms", [None, 1 << 50])
def test_an_automatic_vacuum_runs_under_the_properties_that_it_was_decided_by(
    table: LocalTable, requested_ms: int | None
) -> None:
    """An owner who takes the property away has nothing deleted by a job that waited; one who requests it has."""
    options = VacuumOptions(requested_ms=requested_ms).encode()
    job = TableJob(VACUUM, table.path.as_uri(), ON, CommitOrigin("job", 7), policy_digest="another", options=options)
    done = Vacuum(table, job, Control()).run()
    assert bool(table.deleted) == (requested_ms is not None)
    assert done.is_complete
    assert ("changed" in done.reason) == (requested_ms is None)


def test_a_lease_that_is_lost_leaves_the_end_uncommitted(table: LocalTable) -> None:
    control = Control()

    def lose(count: int) -> None:
        if count == 2:
            raise LeaseLost("gone")

    control.before_change = lose
    with pytest.raises(LeaseLost):
        run_locally(table, control=control, limits=VacuumLimits(batch=100, files_per_s=10**6))
    assert versions(table.path)[-1] == 12


def test_a_new_schema_alone_does_not_end_a_running_vacuum(table: LocalTable) -> None:
    """With identity columns each insert changes it: a vacuum of such a table would never come to its end."""
    done = run_with(table, lambda: append(table, metadata_of(table, description="another", schemaString="{}")))
    assert done is not None
    assert done.is_complete
    assert len(table.deleted) > 2


def test_a_run_whose_log_was_undone_after_its_last_batch_commits_no_end(table: LocalTable) -> None:
    """The mark would say of another history what is gone."""
    delete = table.delete

    def undoing(names: Any) -> None:
        delete(names)
        for version in range(10, versions(table.path)[-1] + 1):
            commit_file(table.path, version).unlink()

    table.delete = undoing  # type: ignore[method-assign]
    with pytest.raises(RetryableError, match="was undone"):
        run_locally(table)
    assert versions(table.path)[-1] == 9


FORCED = VacuumOptions(with_orphans=True, force=True, retain_s=0)


def removed_yesterday(table: LocalTable) -> Path:
    """Return the file that the newest commit of the fixture removed."""
    commit = table.commit(12)
    assert commit is not None
    (name,) = {name for one in commit.removed for name in one.kept}
    return table.path / name


def test_an_orphan_that_was_written_again_since_the_listing_stays_whatever_is_forced(table: LocalTable) -> None:
    """A writer that tries again under the same name is about to commit it."""
    orphan = table.path / "again.parquet"
    orphan.write_bytes(b"x")
    set_time(orphan, now_ms() - 30 * DAY_MS)
    stored = table.stored

    def written_again(names: Any) -> Any:
        found = dict(stored(names))
        if orphan.name in found:
            found[orphan.name] = replace(found[orphan.name], modified_ms=now_ms() - 3_600_000)
        return found

    table.stored = written_again  # type: ignore[method-assign]
    run_locally(table, FORCED)
    assert len(table.deleted) > 10
    assert orphan.exists()


def test_a_file_inside_the_retention_that_a_backup_put_back_after_a_forced_vacuum_stays(table: LocalTable) -> None:
    """The forced vacuum's mark covers its removal; its commit is inside the retention and is read all the same."""
    gone = removed_yesterday(table)
    body = gone.read_bytes()
    write_deltalake(table.path, pa.table({"id": [11]}), mode="append")
    run_locally(table, FORCED)
    assert not gone.exists()
    gone.write_bytes(body)
    set_time(gone, now_ms() - 30 * DAY_MS)
    table.tombstones = list  # type: ignore[method-assign, assignment]
    run_locally(table)
    assert DeltaTable(table.path, version=11).to_pyarrow_table().num_rows == 11


def test_a_removal_inside_the_retention_is_not_covered_and_is_deleted_by_name_later(table: LocalTable) -> None:
    gone = removed_yesterday(table)
    run_locally(table, VacuumOptions())
    assert gone.exists()
    table.tombstones = list  # type: ignore[method-assign, assignment]
    table.clock_ms = lambda: now_ms() + 8 * DAY_MS  # type: ignore[method-assign]
    job = TableJob(VACUUM, table.path.as_uri(), ON, CommitOrigin("job", 8), options=VacuumOptions().encode())
    Vacuum(table, job, Control(), now_ms=table.clock_ms).run()
    assert not gone.exists()
