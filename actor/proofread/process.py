"""The process in which files are read: Python and DuckDB alone, with a limit on its memory, until its parent ends.

It is begun with the number of a pipe's end. A thread of its own waits for tasks, so that the process ends in the middle
of a query as soon as the other end is closed.
"""

import importlib.util
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import duckdb

from actor.proofread.comparison import compare_rows
from actor.proofread.copied_bytes import compare_bytes, fingerprint_of
from actor.proofread.deleted_rows import compare_deleted
from actor.proofread.locations import is_local, place_of, readable
from actor.proofread.model import CannotRead, ColumnsUnclear
from actor.proofread.sql import literal, quoted
from actor.proofread.task import Answer, ReadEnding, Task, Work

_SHOWN_CHARACTERS = 300  # Of what DuckDB says: the first lines name file and cause, the rest repeats the query.


def main(pipe: int, most_bytes: int, scratch: str) -> None:
    """Answer tasks until the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    tasks: SimpleQueue[Task] = SimpleQueue()
    parent = Connection(pipe)
    threading.Thread(target=_receive, args=(parent, tasks), daemon=True).start()
    connection = connect(scratch)
    while True:
        parent.send(answer(connection, tasks.get()))


def _receive(parent: Connection, tasks: SimpleQueue[Task]) -> None:
    try:
        while True:
            tasks.put(parent.recv())
    except (EOFError, OSError):
        os._exit(0)


def connect(scratch: str) -> duckdb.DuckDBPyConnection:
    """Return a connection that fetches nothing, keeps nothing and sees no zone."""
    options: dict[str, Any] = {
        "threads": 1,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "preserve_insertion_order": False,
        "temp_directory": scratch,
    }
    connection = duckdb.connect(config=options)
    # A kept block would be compared instead of the file; the bar prints, and takes memory.
    connection.execute("SET enable_external_file_cache = false")
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def use_secrets(connection: duckdb.DuckDBPyConnection, secrets: Mapping[str, Mapping[str, str]]) -> None:
    """Replace the secrets of buckets; the extension for object stores is loaded from its package, by path."""
    if not secrets:
        return
    spec = importlib.util.find_spec("duckdb_extension_httpfs")
    if spec is None or not spec.submodule_search_locations:
        raise CannotRead("files on object stores need the package duckdb-extension-httpfs")
    folder = Path(next(iter(spec.submodule_search_locations))) / "extensions" / f"v{duckdb.__version__}"
    connection.execute(f"LOAD {literal(str(folder / 'httpfs.duckdb_extension'))}")
    for bucket, options in secrets.items():
        given = {"SCOPE": f"s3://{bucket}", **options}
        listed = ", ".join(f"{name} {literal(value)}" for name, value in given.items())
        connection.execute(f"CREATE OR REPLACE TEMPORARY SECRET {quoted(bucket)} (TYPE s3, {listed})")


def answer(connection: duckdb.DuckDBPyConnection, task: Task) -> Answer:
    """Do a task; what a reader raises becomes its answer, and text of a reader that may show values is left out."""
    began = time.process_time()
    try:
        connection.execute(f"SET memory_limit = '{task.memory_mib}MiB'")
        use_secrets(connection, task.secrets)
        found = _done(connection, task)
    except ColumnsUnclear as unclear:
        found = Answer(ReadEnding.UNCLEAR, str(unclear))
    except CannotRead as unreadable:
        found = Answer(ReadEnding.UNREADABLE, str(unreadable))
    except (duckdb.OutOfMemoryException, MemoryError):
        found = Answer(ReadEnding.NO_MEMORY, "the memory that it may take does not suffice")
    except duckdb.Error as failure:
        found = Answer(ReadEnding.UNREADABLE, _described(failure))
    except Exception as failure:  # noqa: BLE001 - another reader may do better, and nothing is taken for equal
        found = Answer(ReadEnding.UNREADABLE, f"the reader failed with {type(failure).__name__}")
    return replace(found, cpu_ms=round(1000 * (time.process_time() - began)))


def _done(connection: duckdb.DuckDBPyConnection, task: Task) -> Answer:
    inputs, outputs = ([readable(file.path) for file in files] for files in (task.group.inputs, task.group.outputs))
    if len(set(inputs)) < len(inputs) or len(set(outputs)) < len(outputs):
        raise CannotRead("a file is listed twice")
    match task.work:
        case Work.ROWS:
            return compare_rows(connection, task.group, reader_of(connection))
        case Work.BYTES:
            return compare_bytes(connection, task.group)
        case Work.ROWS_AGAIN:
            # Only here, so that a process that never needs it does not load pyarrow.
            from actor.proofread.second_reader import compare_again  # noqa: PLC0415

            return compare_again(connection, task.group, reader_of(connection))
        case Work.DECODE:
            from actor.proofread.arrow_files import undecodable  # noqa: PLC0415

            broken = (file.path for file in task.group.inputs if undecodable(place_of(file.path)))
            return Answer(ReadEnding.SAME, files=tuple(broken))
        case Work.DELETES:
            return compare_deleted(connection, task.group, reader_of(connection))
        case Work.FINGERPRINT:
            return Answer(ReadEnding.SAME, fingerprint=fingerprint_of(connection, inputs))


def reader_of(connection: duckdb.DuckDBPyConnection) -> Callable[[str, int, int], bytes]:
    """Return what reads a number of bytes of a file from an offset."""

    def read(location: str, offset: int, size: int) -> bytes:
        if is_local(location):
            with Path(place_of(location)).open("rb") as file:
                file.seek(offset)
                return file.read(size)
        row = connection.execute("SELECT content FROM read_blob(?)", [readable(location)]).fetchone()
        return bytes(row[0][offset : offset + size]) if row else b""

    return read


def _described(failure: duckdb.Error) -> str:
    """Return what DuckDB says, but not of a value that it could not convert."""
    kind = type(failure).__name__
    if isinstance(failure, duckdb.ConversionException | duckdb.OutOfRangeException | duckdb.InvalidInputException):
        return f"DuckDB cannot read a value ({kind})"
    return f"DuckDB cannot read it: {' '.join(str(failure).split())[:_SHOWN_CHARACTERS]}"


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
