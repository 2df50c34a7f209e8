"""A table with thirty days of history by deltalake: a commit a day, appended, deleted from, compacted."""

import json
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.support.aged_table import DAY_MS, age, commit_file, now_ms, set_time, versions


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
