"""A real Delta table whose history is moved into the past: times of files, commits and removals."""

import json
import os
import time
from pathlib import Path
from typing import Any

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
