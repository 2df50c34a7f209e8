"""The library is tried on a scratch table before the first real one: it must rewrite, and its commits be checked.

A check that is not called, or does not notice what it is for, would leave the worst of all errors unseen: rows that are
there twice. So an actor whose library fails here takes no jobs.
"""

import time

from pyspark.sql import SparkSession

from actor.formats.qbeast.engine import QbeastEngine
from actor.formats.qbeast.index_job import LibraryCall
from shared.errors import Conflict, PermanentError
from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import progress_of
from shared.jobs.payload import INDEX
from shared.layout.commit_metadata import CommitMetadata
from shared.table import CommitOrigin, Snapshot

_ROWS = 300
_APPENDS = 2


def self_test(spark: SparkSession, engine: QbeastEngine, scratch: str) -> int:
    """Return how long it took in ms; raises PermanentError with the expectation that did not hold.

    `scratch` is the URI of a directory that driver and executors can write to.
    """
    started, location = time.monotonic(), f"{scratch}/_self-test/qbeast"
    for number in range(_APPENDS):
        rows = spark.range(number * _ROWS, (number + 1) * _ROWS).selectExpr("id", "id % 97 AS other").coalesce(1)
        writer = rows.write.format("qbeast").mode("append").option("columnsToIndex", "id,other").option("cubeSize", 50)
        writer.option("columnStats", '{"id_min":0,"id_max":600,"other_min":0,"other_max":97}').save(location)
    with engine.library(location, tag=INDEX, key="self-test/0") as library:
        before = library.snapshot()
        # It has read the log up to here, and knows nothing of what follows.
        stale = library.table_read_now()
        library.optimize(_call(before, 0))
        after = library.snapshot()
        _expect(after.version == before.version + 1, "the rewrite is one commit")
        _expect(progress_of(_indexed(after)) < progress_of(_indexed(before)), "the rewrite merges blocks")
        _expect(_rows(after) == _ROWS * _APPENDS, "the rewrite keeps the number of rows")
        _expect(library.commits(before.version)[0].write_id == "self-test/0/0", "the commit carries its mark")
        try:
            library.optimize_with(stale, _call(before, 1))
        except Conflict:
            pass
        else:
            raise PermanentError("the self-test failed: files that were gone were written again, and nothing noticed")
        _expect(library.snapshot().version == after.version, "a refused commit changes nothing")
    return round((time.monotonic() - started) * 1000)


def _call(snapshot: Snapshot, token: int) -> LibraryCall:
    mark = CommitMetadata(CommitOrigin("self-test", token), round=0, mode=INDEX)
    files = _indexed(snapshot)
    rows = sum(file.rows for file in files)
    paths = tuple(file.path for file in files)
    return LibraryCall(f"self-test/{token}", snapshot.version, paths, rows, mark.encode())


def _indexed(snapshot: Snapshot) -> tuple[IndexFile, ...]:
    return QbeastIndex.of_snapshot(snapshot).of_revision(1)


def _rows(snapshot: Snapshot) -> int:
    return sum(file.rows for file in _indexed(snapshot))


def _expect(holds: bool, what: str) -> None:  # noqa: FBT001 - the condition is the point
    if not holds:
        raise PermanentError(f"the self-test failed: it is not so that {what}")
