"""A real Delta table whose history is moved into the past: times of files, commits and removals."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

DAY_MS = 86_400_000
_TIMES = ("timestamp", "deletionTimestamp", "modificationTime", "inCommitTimestamp")


def now_ms() -> int:
    return int(time.time() * 1000)


def age(table: Path, at_ms: dict[int, int]) -> None:
    """Set the time of each commit, and of the files that it adds; the log must have no checkpoint."""
    for version, time_ms in at_ms.items():
        place = commit_file(table, version)
        actions = [json.loads(line) for line in place.read_text().splitlines() if line]
        for action in actions:
            (body,) = action.values()
            for name in _TIMES:
                if isinstance(body, dict) and name in body:
                    body[name] = time_ms
            if "add" in action and not body["path"].startswith(("/", "file:")):
                set_time(table / body["path"], time_ms)
        place.write_text("".join(json.dumps(action) + "\n" for action in actions))
        set_time(place, time_ms)
        place.with_name(f".{place.name}.crc").unlink(missing_ok=True)
    for vector in table.rglob("deletion_vector_*.bin"):
        set_time(vector, min(at_ms.values()))


def set_time(place: Path, time_ms: int) -> None:
    if place.exists():
        os.utime(place, (time_ms / 1000, time_ms / 1000))


def commit_file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def versions(table: Path) -> list[int]:
    return sorted(int(one.stem) for one in (table / "_delta_log").glob("[0-9]*.json"))


def undo_to(table: Path, version: int) -> None:
    """Remove the commits after a version, as a restored folder has none."""
    for one in versions(table):
        if one > version:
            commit_file(table, one).unlink()


def data_files(table: Path) -> set[str]:
    """Names of all files of the table, without those of its log and Hadoop's checksums."""
    return {
        str(one.relative_to(table))
        for one in table.rglob("*")
        if one.is_file() and "_delta_log" not in one.parts and not one.name.endswith(".crc")
    }


def forget_logs(spark: Any) -> None:
    """Make Spark read logs again: it keeps what it has read of a table."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def history(table: Path, days: int = 30) -> None:
    """Write a commit for each day; the newest is an hour old."""
    for day in range(days):
        rows = pa.table({"id": list(range(day * 10, day * 10 + 10)), "day": [day] * 10})
        if day % 5 == 4:
            DeltaTable(table).delete(f"id % 7 = {day % 7}")
        elif day % 5 == 3:
            DeltaTable(table).optimize.compact()
        else:
            write_deltalake(table, rows, mode="append", configuration={"delta.checkpointInterval": "1000"})
    newest = now_ms() - 3_600_000
    age(table, {version: newest - (days - 1 - version) * DAY_MS for version in versions(table)})


def contents(table: Path, retain_days: int, after: int = 10**9) -> dict[int, list[int]]:
    """The ids in each version, up to `after`, that was the newest at a moment inside the retention."""
    cutoff = now_ms() - retain_days * DAY_MS
    found = {}
    known = [version for version in versions(table) if version <= after]
    for version in known:
        following = commit_file(table, version + 1)
        if version == known[-1] or following.stat().st_mtime * 1000 >= cutoff:
            found[version] = sorted(DeltaTable(table, version=version).to_pyarrow_table()["id"].to_pylist())
    return found


def files_needed(table: Path, wanted: dict[int, list[int]]) -> set[str]:
    """The files of these versions, by deltalake."""
    return {
        str(Path(uri.removeprefix("file://")).relative_to(table))
        for version in wanted
        for uri in DeltaTable(table, version=version).file_uris()
    }


def remove_long_ago(table: Path, files: int) -> None:
    """Add so many files to the store that a commit outside the retention removed."""
    place = commit_file(table, 3)
    names = [f"gone-{number:05d}.parquet" for number in range(files)]
    removes = [{"remove": {"path": name, "size": 4, "deletionTimestamp": 1, "dataChange": True}} for name in names]
    time_ms = int(place.stat().st_mtime * 1000)
    with place.open("a") as log:
        log.writelines(json.dumps(action) + "\n" for action in removes)
    for name in names:
        (table / name).write_bytes(b"gone")
    for path in (place, *(table / name for name in names)):
        set_time(path, time_ms)
