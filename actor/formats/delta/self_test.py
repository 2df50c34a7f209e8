"""An exact rewrite is tried on a scratch table before the first real one: the API behind it is internal to Delta.

It appends, rewrites, provokes a conflict between two rewrites of the same files, and compares every row. What fails
here would fail on a customer's table, so the actor does not start. In a new JVM each step costs a second, so steps are
shared: the rewrite that succeeds is also the one that the other conflicts with. The first encodes rows, the other
copies row groups, so it is known from the start whether driver and executors can.
"""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

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
    spark.range(0, _ROWS, 1, _FILES).write.format("delta").save(hadoop_path(location))
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
    rows = sorted(row["id"] for row in spark.read.format("delta").load(hadoop_path(location)).collect())
    _expect(rows == list(range(_ROWS)), "rows differ after the rewrite")


def _remove(spark: SparkSession, location: str) -> None:
    scala = Scala(spark)
    path = scala.path(hadoop_path(location))
    path.getFileSystem(jvm_session(spark).sessionState().newHadoopConf()).delete(path, _RECURSIVELY)


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
