"""Tables of a REST catalog, which is a process: decider, actor and command line, and what each failure of it means."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from shared.errors import NoTable, PermanentError, RetryableError
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import CommitOrigin
from tests.contract.formats.worlds import access
from tests.support.iceberg_rest_lake import ICEBERGS, SCHEMA, SERVERS, RestLake, rest_lake
from tests.support.stack import lakewright
from tests.support.steering import Steering
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from actor.formats.iceberg.engine import IcebergEngine

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
    pytest.mark.long("iceberg"),
]

PLACE = "catalog://lake/db/t"


@pytest.fixture(params=SERVERS)
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RestLake]:
    with rest_lake(tmp_path, request.param) as running:
        yield running


def engine(spark: "SparkSession", options: dict[str, str]) -> "IcebergEngine":
    from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings

    return IcebergEngine(spark, IcebergEngineSettings({"lake": options}))


def rewrite(actor: "IcebergEngine", control: Any = None, place: str = PLACE) -> RewriteOutcome:
    files = actor.read_partition(place, WHOLE_TABLE).files
    mark = CommitMetadata(CommitOrigin("job-1", 7), partition="{}", round=1, mode="full", started_ms=500).encode()
    return actor.rewrite(
        RewriteRequest(place, (FileGroup(WHOLE_TABLE, files, RewriteMode.FULL),), mark), control or Steering()
    )


def test_a_rewrite_lands_once_whatever_the_catalog_answers(spark: "SparkSession", lake: RestLake) -> None:
    """A commit whose reply is lost is found; one that was dropped, or is made late, leads to another try of the job."""
    lake.make(3)
    rows, actor = lake.ids(), engine(spark, lake.options)
    reader = IcebergFormat(access(), IcebergSettings({"lake": lake.options})).open(PLACE)
    before = asyncio.run(reader.snapshot())

    lake.fail("dropped")
    with pytest.raises(RetryableError, match="unknown"):
        rewrite(actor)
    assert (lake.ids(), lake.files()) == (rows, 3)

    lake.fail("lost-reply")
    outcome = rewrite(actor)
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    assert (lake.ids(), lake.files()) == (rows, 1)

    async def follow() -> list[Any]:
        return [one async for one in reader.changes(before.position, before.metadata)]

    (commit,) = asyncio.run(follow())
    assert (commit.version, commit.data_change, len(commit.removed), len(commit.added)) == (
        outcome.version,
        False,
        3,
        1,
    )

    lake.append(100)
    rows = lake.ids()
    lake.fail("late")
    with pytest.raises(RetryableError, match="unknown"):
        rewrite(actor)
    until("the late commit is made", lambda: lake.files() == 1)
    assert lake.ids() == rows
    found = actor.find_commit(PLACE, job="job-1", token=7, since_version=commit.version)
    assert found is not None

    assert actor.find_commit(PLACE, job="job-1", token=7, since_version=found) is None


MOST_REQUESTS = 5
"""Requests of a job to its catalog: Iceberg's own action makes more, and each takes a round trip."""


def test_a_job_asks_its_catalog_five_times_at_most(spark: "SparkSession", lake: RestLake) -> None:
    lake.make(3)
    actor = engine(spark, lake.options)
    rewrite(actor)
    lake.append(100)
    before = lake.asked()
    assert rewrite(actor).groups[0].status is GroupStatus.COMMITTED
    assert lake.asked() - before <= MOST_REQUESTS


@pytest.mark.parametrize("fault", ["lost-reply", "cut", "slow", "conflict"])
def test_a_commit_that_was_made_is_found_whatever_the_answer(spark: "SparkSession", lake: RestLake, fault: str) -> None:
    lake.make(3)
    rows, actor = lake.ids(), engine(spark, lake.options)
    lake.fail(fault)
    assert rewrite(actor).groups[0].status is GroupStatus.COMMITTED
    assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, 1, 1)
    assert lake.data_files() == 4


@pytest.mark.parametrize("fault", ["dropped", "error", "unavailable"])
def test_a_commit_whose_outcome_is_unknown_is_left_to_another_run_of_the_job(
    spark: "SparkSession", lake: RestLake, fault: str
) -> None:
    lake.make(3)
    rows, actor = lake.ids(), engine(spark, lake.options)
    lake.fail(fault)
    with pytest.raises(RetryableError, match="unknown"):
        rewrite(actor)
    assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, 3, 0)
    assert lake.data_files() == 4, "an output whose commit may still be made is not deleted"
    assert rewrite(actor).groups[0].status is GroupStatus.COMMITTED
    assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, 1, 1)


@pytest.mark.parametrize("fault", ["malformed", "forbidden", "missing", "invalid"])
def test_a_commit_that_the_catalog_refuses_leaves_no_files(spark: "SparkSession", lake: RestLake, fault: str) -> None:
    lake.make(3)
    rows, actor = lake.ids(), engine(spark, lake.options)
    lake.fail(fault)
    with pytest.raises(NoTable if fault == "missing" else PermanentError, match="nothing was committed"):
        rewrite(actor)
    assert (lake.ids(), lake.files(), lake.rewrites(), lake.data_files()) == (rows, 3, 0, 3)


def test_what_fails_before_the_catalog_is_asked_leaves_no_files(
    spark: "SparkSession", lake: RestLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java refuses what the commit is built from."""
    from actor.formats.iceberg.java_table import JavaTable

    lake.make(3)
    rows, actor, real = lake.ids(), engine(spark, lake.options), JavaTable._build

    def build(self: JavaTable, rewrite: Any, change: Any, *more: Any) -> None:
        real(self, rewrite, change, *more)
        rewrite.addFile(None)

    monkeypatch.setattr(JavaTable, "_build", build)
    with pytest.raises(PermanentError, match="nothing was committed"):
        rewrite(actor)
    assert (lake.ids(), lake.files(), lake.rewrites(), lake.data_files()) == (rows, 3, 0, 3)


def test_a_catalog_that_is_down_at_the_commit_loses_nothing(spark: "SparkSession", lake: RestLake) -> None:
    from tests.support.proxy import TcpProxy

    lake.make(3)
    rows, proxy = lake.ids(), TcpProxy(int(lake.uri.rpartition(":")[2]))
    actor = engine(spark, lake.options | {"uri": proxy.url})
    try:
        with pytest.raises(RetryableError):
            rewrite(actor, Steering(at={"files_written": proxy.cut}))
        assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, 3, 0)
        proxy.restore()
        assert rewrite(actor).groups[0].status is GroupStatus.COMMITTED
        assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, 1, 1)
    finally:
        proxy.close()


def test_a_catalog_that_refuses_the_token_is_no_failure_of_the_moment(spark: "SparkSession", lake: RestLake) -> None:
    lake.make(1)
    wrong = lake.options | {"token": "another"}
    with pytest.raises(PermanentError, match="LAKEWRIGHT_CATALOGS"):
        engine(spark, wrong).read_partition(PLACE, WHOLE_TABLE)
    with pytest.raises(PermanentError, match="LAKEWRIGHT_CATALOGS"):
        asyncio.run(IcebergFormat(access(), IcebergSettings({"lake": wrong})).open(PLACE).snapshot())


def test_an_actor_gets_tokens_by_oauth2_and_new_ones_when_they_are_refused(
    spark: "SparkSession", lake: RestLake
) -> None:
    lake.make(3)
    rows, actor = lake.ids(), engine(spark, lake.oauth())
    assert rewrite(actor).groups[0].status is GroupStatus.COMMITTED
    lake.revoke()
    assert len(actor.read_partition(PLACE, WHOLE_TABLE).files) == 1
    assert lake.ids() == rows
    with pytest.raises(PermanentError, match="LAKEWRIGHT_CATALOGS"):
        engine(spark, lake.oauth("lakewright:another-secret")).read_partition(PLACE, WHOLE_TABLE)


def test_a_commit_whose_token_is_refused_is_made_by_the_next_run(spark: "SparkSession", lake: RestLake) -> None:
    lake.make(3)
    rows, actor = lake.ids(), engine(spark, lake.oauth())
    with pytest.raises(RetryableError):
        rewrite(actor, Steering(at={"files_written": lake.revoke}))
    assert (lake.ids(), lake.files(), lake.rewrites(), lake.data_files()) == (rows, 3, 0, 3)
    assert rewrite(actor).groups[0].status is GroupStatus.COMMITTED
    assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, 1, 1)


@pytest.mark.parametrize("lake", [ICEBERGS], indirect=True)
def test_a_table_of_a_nested_namespace_is_rewritten_however_the_server_separates_names(
    spark: "SparkSession", lake: RestLake
) -> None:
    for name in [("a",), ("a", "b")]:
        lake.catalog.create_namespace(name)
    table = lake.catalog.create_table(("a", "b", "t"), SCHEMA)
    for number in range(3):
        table.append(pa.table({"id": [number]}, schema=SCHEMA))
    outcome = rewrite(engine(spark, lake.options), place="catalog://lake/a/b/t")
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    table.refresh()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert len(list(table.scan().plan_files())) == 1


def test_the_command_line_optimizes_a_table_by_its_name_without_a_service(lake: RestLake) -> None:
    lake.make(5)
    rows = lake.ids()
    env = {**os.environ, "LAKEWRIGHT_CATALOGS": json.dumps({"lake": lake.options})}
    done = lakewright("--json", "optimize", "lake.db.t", "--yes", "--mode", "full", env=env, seconds=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert json.loads(done.stdout)["result"]["files"] == {"before": 5, "after": 1}
    assert (lake.ids(), lake.files()) == (rows, 1)
