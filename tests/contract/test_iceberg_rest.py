"""Tables of a REST catalog, which is a process: decider, actor and command line, and what each failure of it means."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from shared.commit_metadata import CommitMetadata
from shared.errors import PermanentError, RetryableError
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import CommitOrigin
from tests.contract.formats.worlds import access
from tests.support.iceberg_rest_lake import RestLake, rest_lake
from tests.support.stack import ROOT
from tests.support.time_limits import scaled
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from actor.formats.iceberg.engine import IcebergEngine

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
    pytest.mark.skipif(
        "LAKEWRIGHT_TEST_ICEBERG" not in os.environ, reason="no long suite of Iceberg asked for: make test-iceberg"
    ),
]

PLACE = "catalog://lake/db/t"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[RestLake]:
    with rest_lake(tmp_path) as running:
        yield running


def engine(spark: "SparkSession", options: dict[str, str]) -> "IcebergEngine":
    from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings

    return IcebergEngine(spark, IcebergEngineSettings({"lake": options}))


def rewrite(actor: "IcebergEngine") -> RewriteOutcome:
    from tests.support.iceberg_lab import Steps

    files = actor.read_partition(PLACE, WHOLE_TABLE).files
    mark = CommitMetadata(CommitOrigin("job-1", 7), partition="{}", round=1, mode="full", started_ms=500).encode()
    return actor.rewrite(RewriteRequest(PLACE, (FileGroup(WHOLE_TABLE, files, RewriteMode.FULL),), mark), Steps())


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

    lake.append(110)
    rows = lake.ids()
    lake.fail("conflict")
    assert rewrite(actor).groups[0].status is GroupStatus.COMMITTED
    assert (lake.ids(), lake.files()) == (rows, 1)

    lake.append(120)
    rows = lake.ids()
    lake.fail("unavailable")
    with pytest.raises(RetryableError, match="unknown"):
        rewrite(actor)
    assert (lake.ids(), lake.files()) == (rows, 2)
    assert rewrite(actor).groups[0].status is GroupStatus.COMMITTED
    assert (lake.ids(), lake.files()) == (rows, 1)


def test_a_catalog_that_refuses_the_token_is_no_failure_of_the_moment(spark: "SparkSession", lake: RestLake) -> None:
    lake.make(1)
    wrong = lake.options | {"token": "another"}
    with pytest.raises(PermanentError, match="LAKEWRIGHT_CATALOGS"):
        engine(spark, wrong).read_partition(PLACE, WHOLE_TABLE)
    with pytest.raises(PermanentError, match="LAKEWRIGHT_CATALOGS"):
        asyncio.run(IcebergFormat(access(), IcebergSettings({"lake": wrong})).open(PLACE).snapshot())


def test_the_command_line_optimizes_a_table_by_its_name_without_a_service(lake: RestLake) -> None:
    lake.make(5)
    rows = lake.ids()
    environment = {**os.environ, "LAKEWRIGHT_CATALOGS": json.dumps({"lake": lake.options})}
    command = [sys.executable, "-m", "services.cli", "--json", "optimize", "lake.db.t", "--yes", "--mode", "full"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=scaled(240), check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert json.loads(done.stdout)["result"]["files"] == {"before": 5, "after": 1}
    assert (lake.ids(), lake.files()) == (rows, 1)
