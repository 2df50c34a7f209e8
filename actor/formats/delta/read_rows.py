"""The rows of a group's inputs as Spark reads them for a rewrite: as they are stored, with their ids, and checked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from actor.formats.delta import exact_values
from actor.formats.delta.actions import LoggedFile, json_array
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.formats.delta.log import TableLog
from shared.errors import LakewrightError, RefusedFiles
from shared.refusals import RefusalReason
from shared.table import FileKey


def exact_rows(scala: DeltaScala, log: TableLog, snapshot: Any, files: Sequence[LoggedFile], stored: Storage) -> Any:
    """Return the frame of the live rows of files that are stored like this, with the columns of row tracking.

    To compute it raises an error at a value that would become another one (see `refused_values`).
    """
    frame = log.frame(snapshot, scala.adds(json_array(files)))
    tracked = scala.row_tracking.preserveRowTrackingColumns(frame, snapshot)
    leaves = [column for columns in stored.schemas for column in columns if exact_values.is_doubtful(column)]
    if not leaves:
        return tracked
    schema = json.loads(json.loads(log.shape(snapshot).metadata_json)["metaData"]["schemaString"])
    checked = exact_values.checked_columns(schema["fields"], leaves)
    for name, expression in checked.items():
        tracked = tracked.withColumn(name, scala.resolve("org.apache.spark.sql.functions").expr(expression))
    return tracked


@contextmanager
def refused_sizes(log: TableLog, files: Sequence[LoggedFile]) -> Iterator[None]:
    """Raise RefusedFiles where files cannot be read because the log says another size of them than they have.

    Spark looks for the end of a file where the log says that it is, and does not name the file.
    """
    try:
        yield
    except LakewrightError:
        raise
    except Exception as error:
        wrong = _wrong_sizes(log, files)
        if not wrong:
            raise
        named = "; ".join(f"{one.file.path} has {size} bytes, not {one.file.size_bytes}" for one, size in wrong[:3])
        raise RefusedFiles(
            f"the log of {log.location} says other sizes of {len(wrong)} files than they have ({named}): add them "
            "again with their sizes, or restore them",
            reason=RefusalReason.DAMAGED,
            files=tuple(one.file.path for one, _ in wrong),
        ) from error


def _wrong_sizes(log: TableLog, files: Sequence[LoggedFile]) -> list[tuple[LoggedFile, int]]:
    """Return the files that have another size, and it; none where the store does not answer."""
    found: Mapping[FileKey, int | None] = {}
    with suppress(Exception):
        found = log.sizes(one.key for one in files)
    sizes = [(one, found.get(one.key)) for one in files]
    return [(one, size) for one, size in sizes if size is not None and size != one.file.size_bytes]


@contextmanager
def refused_values(location: str) -> Iterator[None]:
    """Raise RefusedFiles for the error of such a value."""
    try:
        yield
    except Exception as error:
        refusal = exact_values.refusal(error, location)
        if refusal is None:
            raise
        raise refusal from error
