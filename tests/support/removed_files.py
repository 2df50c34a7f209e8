"""A table with many files that a commit removed long ago, written by hand: files of a few bytes that no one reads."""

import json
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from tests.support.aged_table import DAY_MS, age, commit_file, now_ms, set_time

LIVE = [1, 2, 3]


def with_removed_files(table: Path, files: int) -> set[str]:
    """Write a table of three rows, in which version 2 removed this many files a month ago; return their names."""
    write_deltalake(table, pa.table({"id": LIVE}), configuration={"delta.checkpointInterval": "1000"})
    names = [f"part-{number:06d}.parquet" for number in range(files)]
    adds = [
        {"path": name, "size": 9, "partitionValues": {}, "modificationTime": 1, "dataChange": True} for name in names
    ]
    removes = [{"path": name, "size": 9, "deletionTimestamp": 1, "dataChange": True} for name in names]
    for version, kind, actions in ((1, "add", adds), (2, "remove", removes)):
        lines = ({"commitInfo": {"timestamp": 1}}, *({kind: action} for action in actions))
        commit_file(table, version).write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in names:
        (table / name).write_bytes(b"long gone")
    age(table, {version: now_ms() - (32 - version) * DAY_MS for version in range(3)})
    for name in names:
        set_time(table / name, now_ms() - 31 * DAY_MS)
    return set(names)
