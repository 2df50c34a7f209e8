"""Nothing is committed that is not on disk, and nothing stays on disk that is not committed."""

import json
import random
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from actor.formats.delta.engine import EngineSettings
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.parquet.copy_rules import CopyLimits
from actor.ports import GroupStatus
from actor.rewrite.run import RewriteSettings
from shared.errors import RetryableError
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import FileKey
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab
from tests.support.forced_copies import FORCED_LIMITS, NEVER_COPIES
from tests.support.large_files import everything
from tests.support.long_suites import beyond

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
pytestmark = pytest.mark.spark


FAILS_MIDWAY = "assert_true(id < 70) IS NULL"


def test_a_write_that_fails_midway_leaves_nothing(lab: DeltaLab, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tables.table(lab.directory / "t", files=4)
    group, on_disk, frame = lab.group(table.location), everything(table.path), TableLog.frame
    left: list[set[str]] = []
    monkeypatch.setattr(TableLog, "frame", lambda *arguments: frame(*arguments).filter(FAILS_MIDWAY))
    list_names = TableLog.list_names

    def watched(log: TableLog, folder: str, pattern: str) -> list[str]:
        left.append(everything(table.path) - on_disk)
        return list_names(log, folder, pattern)

    monkeypatch.setattr(TableLog, "list_names", watched)

    with pytest.raises(RetryableError, match="the table is unchanged"):
        lab.rewrite(table.location, [group], may_copy=False)

    assert left[0], "Delta left the failed task's file: otherwise this test shows nothing"
    assert everything(table.path) == on_disk


def test_the_files_of_another_attempt_and_of_groups_that_were_written_stay(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group's inputs are taken and vacuumed while it is written; the other lands."""
    table = tables.table(lab.directory / "t", files=8)
    files = lab.files(table.location)
    groups = [
        FileGroup(WHOLE_TABLE, files[4:], RewriteMode.MINOR),
        FileGroup(WHOLE_TABLE, files[:4], RewriteMode.MINOR),
    ]
    alone = lab.with_settings(EngineSettings(rewrite=RewriteSettings(write_threads=1)))
    foreign = table.path / "lw0123456789abcdef-part-00000.parquet"
    foreign.write_bytes(b"x")
    frame = TableLog.frame
    written: list[int] = []

    def taken(log: TableLog, snapshot: Any, adds: Any) -> Any:
        written.append(1)
        if len(written) == 2:
            table.remove(groups[1].files[0].path)
            return frame(log, snapshot, adds).filter(FAILS_MIDWAY.replace("70", "0"))
        return frame(log, snapshot, adds)

    monkeypatch.setattr(TableLog, "frame", taken)

    outcome = alone.rewrite(table.location, groups, may_copy=False)

    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED, GroupStatus.CONFLICTED]
    (add,) = tables.added(table.path, outcome.version or 0)
    assert everything(table.path) == {file.path for file in files} | {foreign.name, add["path"], f".{add['path']}.crc"}


def filled(disk: Path, value: str | None) -> tables.HandTable:
    """A table that takes more than half of the disk, of text that does not compress, in one partition if any."""
    table = tables.HandTable(disk / "t", partitions={} if value is None else {"p": "string"})
    rng, rows = random.Random(1), 8000
    for _ in range(4):
        add = table.new_file(1, {"p": value})
        columns = {"id": list(range(rows)), "v": [rng.randbytes(24).hex() for _ in range(rows)], "x": [1] * rows}
        schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("x", pa.int32())])
        pq.write_table(pa.table(columns, schema=schema), table.path / add["path"])
        stats = json.dumps({"numRecords": rows})
        table.commit([{"add": add | {"size": (table.path / add["path"]).stat().st_size, "stats": stats}}])
    return table


@pytest.mark.parametrize("value", beyond(1, ["a b", None, "plain"]))
def test_a_full_disk_is_given_back_and_the_job_may_try_again(
    lab: DeltaLab, small_disk: Path, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs lie in the table's root, in a Hive-style folder, or in a random one."""
    table = filled(small_disk, value)
    group = lab.group(table.location, WHOLE_TABLE if value is None else lab.partition(p=value))
    on_disk = everything(table.path)
    assert shutil.disk_usage(small_disk).free < group.bytes
    unchecked = EngineSettings(rewrite=RewriteSettings(reserved_disk_bytes=-(1 << 40)))
    left: list[set[str]] = []
    leftovers = OutputPaths.leftovers

    def watched(paths: OutputPaths, known: Collection[FileKey]) -> list[FileKey]:
        left.append(everything(table.path) - on_disk)
        return leftovers(paths, known)

    monkeypatch.setattr(OutputPaths, "leftovers", watched)

    full = lab.with_settings(unchecked)
    with pytest.raises(RetryableError, match=r"No space left on device.*the table is unchanged"):
        full.rewrite(table.location, [group], may_copy=False)

    assert left[0], "Delta left the failed task's file: otherwise this test shows nothing"
    assert everything(table.path) == on_disk
    assert tables.newest(table.path) == table.version


@pytest.mark.parametrize("limits", [FORCED_LIMITS, NEVER_COPIES], ids=["copied", "by column"])
def test_an_output_that_fills_the_disk_leaves_no_file_and_what_is_written_lands(
    lab: DeltaLab, small_disk: Path, limits: CopyLimits
) -> None:
    table = filled(small_disk, None)
    table.append(2)
    files, on_disk = lab.files(table.location), everything(table.path)
    groups = [FileGroup(WHOLE_TABLE, files[at : at + count], RewriteMode.MINOR) for at, count in ((0, 2), (2, 4))]
    assert shutil.disk_usage(small_disk).free < groups[1].bytes
    settings = RewriteSettings(write_threads=1, reserved_disk_bytes=-(1 << 40))
    limited = lab.with_settings(EngineSettings(rewrite=settings, copy_limits=limits))

    landed, failed = limited.rewrite(table.location, groups).groups

    assert (landed.status, failed.status) == (GroupStatus.COMMITTED, GroupStatus.FAILED)
    assert (landed.is_copied, landed.by_column) == (limits is FORCED_LIMITS, limits is NEVER_COPIES)
    assert "No space left on device" in str(failed.error)
    assert everything(table.path) == on_disk | {landed.outputs[0].path}


def test_the_size_of_a_file_is_known_that_needs_more_than_32_bits(lab: DeltaLab) -> None:
    """An output that is not found with its size is not committed."""
    table = tables.table(lab.directory / "t", files=1)
    (there, _), *_ = tables.live(table.path)
    with (table.path / "large.parquet").open("wb") as file:
        file.truncate(3 << 30)  # Takes no room.
    keys = [FileKey(name) for name in ("gone.parquet", "large.parquet", there)]
    with lab.engine._sessions.lease(tag="t") as owned:
        sizes = TableLog(lab.engine._scala, owned.session, table.location).sizes(keys)

    assert [sizes[key] for key in keys] == [None, 3 << 30, (table.path / there).stat().st_size]
