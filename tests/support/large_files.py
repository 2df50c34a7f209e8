"""A table whose rewrite takes long enough to be interrupted, although it takes little room, and what is in it."""

import json
import os
import random
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.bench.rewrite.tables import BYTES_PER_ROW, DAY, append
from tests.support import delta_tables as tables
from tests.support.delta_tables import actions, newest

_ROWS = 2**19


def large_table(
    path: Path, *, files: int, rows_of_file: int = _ROWS, configuration: Mapping[str, str] | None = None
) -> tables.HandTable:
    """Make a table of files that share their bytes on disk, by default of 32 MiB each."""
    table = tables.HandTable(path, configuration=configuration or {})
    add = table.new_file(1, {})
    columns = {"id": range(rows_of_file), "v": ["x" * 56] * rows_of_file, "x": pa.array([1] * rows_of_file, pa.int32())}
    rows = pa.table(columns)
    options = {"compression": "none", "use_dictionary": False, "data_page_size": 1 << 16}
    first = path / add["path"]
    pq.write_table(rows, first, **options)
    stats = json.dumps({"numRecords": rows_of_file})
    adds = []
    for number in range(files):
        os.link(first, path / f"{number}.parquet")
        named = {"path": f"{number}.parquet", "size": first.stat().st_size, "stats": stats}
        adds.append({"add": add | named})
    first.unlink()
    table.commit(adds)
    return table


def everything(path: Path) -> set[str]:
    """All files of a table outside of its log, hidden ones and checksums included."""
    return {
        str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts
    }


def contents(table: Path, text: str = "v") -> tuple[int, int, int]:
    """Return the rows of a table and sums over `id` and a text, by another reader of its live files."""
    files = DeltaTable(str(table)).file_uris()
    query = f"SELECT count(*), sum(hash(id) % 1000)::BIGINT, sum(hash({text}) % 1000)::BIGINT FROM read_parquet(?)"
    with duckdb.connect(config={"threads": 1}) as connection:
        found = connection.execute(query, [files]).fetchone()
    assert found is not None
    return found[0], found[1], found[2]


def left_behind(table: Path, before: set[str]) -> list[str]:
    """Return the files on disk that are neither live nor were there before."""
    live = {uri.rpartition("/")[2] for uri in DeltaTable(str(table)).file_uris()}
    known = live | {f".{name}.crc" for name in live}
    return sorted(file for file in everything(table) - before if file.rpartition("/")[2] not in known)


def written(path: Path, *, files: int, file_bytes: int, seed: int) -> Path:
    """Write a table of files of about this size, a commit for each, all in one partition.

    They have no dictionaries, because of which groups of small files would not be copied.
    """
    dice = random.Random(seed)
    for _ in range(files):
        append(path, dice, DAY, rows=file_bytes // BYTES_PER_ROW, dictionaries=False)
    return path


def linked(source: Path, table: Path, *, files: int) -> Path:
    """Make a table, in one commit, that shares the first files of another one."""
    commits = [action for version in range(newest(source) + 1) for action in actions(source, version)]
    kept = [action for action in commits if "protocol" in action or "metaData" in action]
    adds = [action for action in commits if "add" in action][:files]
    if len(adds) < files:
        raise ValueError(f"{source} has {len(adds)} files and not {files}")
    (table / "_delta_log").mkdir(parents=True)
    for action in adds:
        path = action["add"]["path"]
        (table / path).parent.mkdir(exist_ok=True)
        os.link(source / path, table / path)
    lines = (f"{json.dumps(action)}\n" for action in [*kept, *adds])
    (table / "_delta_log" / f"{0:020d}.json").write_text("".join(lines))
    return table
