"""An exact rewrite is tried on a scratch table before the first real one: the API behind it is internal to Delta.

It rewrites, provokes a conflict between two rewrites of the same files, and compares every row. What fails here would
fail on a customer's table, so the actor does not start. In a new JVM each step costs a second, so steps are shared: the
rewrite that succeeds is also the one that the other conflicts with. The first encodes rows, the other copies row
groups, so it is known from the start whether driver and executors can. The table itself is written by DuckDB with
a commit by hand, and read as plain Parquet: Delta's own commands took two thirds of the test, and no job uses them.
"""

import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession
from structlog.contextvars import bound_contextvars

from actor.jvm.errors import first_line
from actor.jvm.scala import Scala, jvm_session
from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest, TableEngine
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.paths.locations import hadoop_path

SELF_TEST = "self_test"
"""Marks log events of the self-test: its conflict is provoked, and would alarm a reader of the log."""

_ROWS = 40
_FILES = 2
_SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
_NEVER_FULL = 1 << 62  # Below the full size row groups are copied however small they are.
_RECURSIVELY = True  # Scala's positional flag by name.


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """Result of the self-test: `reason` is empty if it passed, otherwise the expectation that did not hold."""

    reason: str
    took_ms: int

    @property
    def passed(self) -> bool:
        """True if the executor may be used."""
        return not self.reason


class _ExpectationFailed(Exception):  # noqa: N818 - it never leaves this module
    """An expectation that did not hold."""


@dataclass(slots=True)
class _SelfTestControl:
    """Allows everything, and runs one action before the first commit."""

    before_commit: Callable[[], object] = lambda: None

    def may_commit(self) -> None:
        action, self.before_commit = self.before_commit, lambda: None
        action()

    def should_stop(self) -> bool:
        return False

    def reached(self, point: str) -> None:
        pass


def self_test(spark: SparkSession, engine: TableEngine, scratch: str) -> SelfTestResult:
    """Try `engine` on a new table below the directory `scratch` (a URI that executors can write to)."""
    started = time.monotonic()
    # Hidden: below a root of the decider, no event and no discovery registers it.
    location = f"{scratch}/_self-test-{uuid.uuid4().hex}"
    try:
        with bound_contextvars(**{SELF_TEST: True}):
            _try(spark, engine, location)
        reason = ""
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is the verdict
        reason = first_line(error)
    finally:
        _remove(spark, location)
    return SelfTestResult(reason, round((time.monotonic() - started) * 1000))


def _try(spark: SparkSession, engine: TableEngine, location: str) -> None:
    _make_table(spark, location)
    files = engine.read_partition(location, WHOLE_TABLE).files
    _expect(len(files) == _FILES, f"the table has {len(files)} files, not {_FILES}")
    group = FileGroup(WHOLE_TABLE, files, RewriteMode.MINOR)
    landed: list[RewriteOutcome] = []
    control = _SelfTestControl(lambda: landed.append(_rewrite(engine, location, group, token=1)))
    late = _rewrite(engine, location, group, token=2, control=control, copies=True)

    _expect(len(landed) == 1, "it committed without asking whether it may")
    outcome = landed[0]
    _expect(outcome.version == 1, f"the rewrite committed version {outcome.version}, not 1")
    _expect(outcome.groups[0].status is GroupStatus.COMMITTED, f"its group is {outcome.groups[0].status}")
    _expect(outcome.groups[0].rows == _ROWS, f"it counted {outcome.groups[0].rows} of {_ROWS} rows")
    found = engine.find_commit(location, job="self-test", token=1, since_version=0)
    _expect(found == 1, f"its commit was found as version {found}, not 1")
    _expect(late.version is None, f"a rewrite of files taken by others committed version {late.version}")
    _expect(late.groups[0].status is GroupStatus.CONFLICTED, f"its group is {late.groups[0].status}, not stale")
    _expect(late.conflicts > 0, "the conflict was not noticed")
    live = engine.read_partition(location, WHOLE_TABLE).files
    rows = sorted(row for file in live for row in _rows(spark, f"{location}/{file.path}"))
    _expect(rows == list(range(_ROWS)), "rows differ after the rewrite")


def _make_table(spark: SparkSession, location: str) -> None:
    """Write plain files, and a commit that names them."""
    table = {"id": uuid.uuid4().hex, "format": {"provider": "parquet", "options": {}}, "partitionColumns": []}
    actions: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": table | {"schemaString": _SCHEMA, "configuration": {}}},
    ]
    now_ms = time.time_ns() // 1_000_000
    for number, content in enumerate(_contents()):
        name = f"part-{number}.parquet"
        _write(spark, f"{location}/{name}", content)
        add = {"path": name, "partitionValues": {}, "size": len(content), "modificationTime": now_ms}
        actions.append({"add": add | {"dataChange": True, "stats": json.dumps({"numRecords": _ROWS // _FILES})}})
    _write(spark, f"{location}/_delta_log/{0:020d}.json", "\n".join(map(json.dumps, actions)).encode())


def _contents() -> Iterator[bytes]:
    """Yield what the files hold: numbers that ascend from file to file."""
    each = _ROWS // _FILES
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file, duckdb.connect() as connection:
        for number in range(_FILES):
            rows = connection.sql(f"SELECT range AS id FROM range({number * each}, {(number + 1) * each})")  # noqa: S608
            rows.write_parquet(file.name)
            yield Path(file.name).read_bytes()


def _write(spark: SparkSession, location: str, content: bytes) -> None:
    store, path = _store(spark, location)
    file = store.create(path)
    file.write(content)
    file.close()


def _rows(spark: SparkSession, location: str) -> list[int]:
    """Read a file by another reader than the one that wrote it."""
    store, path = _store(spark, location)
    opened = store.open(path)
    content = bytes(opened.readAllBytes())
    opened.close()
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file, duckdb.connect() as connection:
        Path(file.name).write_bytes(content)
        return [number for (number,) in connection.read_parquet(file.name).fetchall()]


def _remove(spark: SparkSession, location: str) -> None:
    store, folder = _store(spark, location)
    store.delete(folder, _RECURSIVELY)


def _store(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """Return Hadoop's file system of a location, and its path there."""
    path = Scala(spark).path(hadoop_path(location))
    return path.getFileSystem(jvm_session(spark).sessionState().newHadoopConf()), path


def _rewrite(
    engine: TableEngine,
    location: str,
    group: FileGroup,
    *,
    token: int,
    control: _SelfTestControl | None = None,
    copies: bool = False,
) -> RewriteOutcome:
    mark = json.dumps({"lakewright": {"job": "self-test", "token": token}})
    request = RewriteRequest(location, (group,), mark, may_copy=copies, full_bytes=_NEVER_FULL)
    return engine.rewrite(request, control or _SelfTestControl())


def _expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not holds:
        raise _ExpectationFailed(otherwise)
