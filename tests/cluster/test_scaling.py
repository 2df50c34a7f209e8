"""500 jobs at once: from no actor to the bound and back to none, with each row exactly once at the end."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import keda
from tests.cluster.cluster import Cluster
from tests.cluster.lake import Lake
from tests.cluster.programs import ROOT
from tests.cluster.release import LONG_S, Release
from tests.cluster.scaling_picture import Sample, save
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(0), pytest.mark.long("cluster")]

TABLES, PARTITIONS, COMMITS = 25, 20, 10
JOBS = TABLES * PARTITIONS
ROWS = PARTITIONS * 5
"""Of each commit."""
BOUND = 3
RUN = ROOT / "artifacts" / "cluster" / "scaling.json"
SETTINGS = (
    f"--set=actor.autoscaling.enabled=true,actor.autoscaling.max={BOUND}",
    "--set=actor.autoscaling.secondsPerActor=60,actor.autoscaling.pollingSeconds=5,actor.autoscaling.cooldownSeconds=20",
)
WRITE = """
import pyarrow, deltalake, random
for table in range(TABLES):
    for n in range(COMMITS):
        ids = range(n * ROWS, n * ROWS + ROWS)
        values = [random.random() for _ in ids]
        rows = pyarrow.table({"id": ids, "part": [i % PARTITIONS for i in ids], "value": values})
        deltalake.write_deltalake(f"s3://lake/tables/fleet/table{table}", rows, mode="append", partition_by=["part"])
"""
READ = """
import json, deltalake
found = []
for n in range(TABLES):
    table = deltalake.DeltaTable(f"s3://lake/tables/fleet/table{n}")
    ids = sorted(table.to_pyarrow_table()["id"].to_pylist())
    found.append({"exact": ids == list(range(COMMITS * ROWS)), "files": len(table.file_uris())})
print(json.dumps(found))
"""
WORDS: dict[str, Any] = {"TABLES": TABLES, "PARTITIONS": PARTITIONS, "COMMITS": COMMITS, "ROWS": ROWS}


@pytest.fixture
def autoscaling(cluster: Cluster, release: Release) -> Iterator[None]:
    """KEDA, and the release with the chart's ScaledObject."""
    keda.install(cluster)
    release.install(*SETTINGS)
    yield
    release.install()


@pytest.mark.usefixtures("autoscaling")
def test_500_jobs_start_actors_up_to_the_bound_and_none_is_left_after_them(lake: Lake, release: Release) -> None:
    until("KEDA has ended the actor that has no work", lambda: not release.pods("actor"), seconds=LONG_S)
    lake.call("/v1/queue/pause", {"scope": "queue"})
    lake.run(WRITE, seconds=2 * LONG_S, **WORDS)
    until(f"{JOBS} jobs wait", lambda: lake.jobs()["queued"] >= JOBS, seconds=LONG_S)
    assert not release.pods("actor"), "a paused queue has no work for an actor"
    lake.call("/v1/queue/resume", {"scope": "queue"})
    samples = watch(lake, release)
    title = f"{JOBS} jobs at once: KEDA starts up to {BOUND} actors and ends them"
    save(RUN, title, samples, most=BOUND)
    assert samples[0].desired == 0
    assert max(sample.desired for sample in samples) == BOUND
    assert max(sample.ready for sample in samples) == BOUND
    found = json.loads(lake.run(READ, seconds=LONG_S, **WORDS))
    assert all(table["exact"] for table in found), found
    assert max(table["files"] for table in found) <= 2 * PARTITIONS
    assert not lake.jobs()["quarantined"]


def watch(lake: Lake, release: Release) -> list[Sample]:
    """Return what was seen until no job and no actor is left."""
    started_s = time.monotonic()
    samples: list[Sample] = []

    def is_over() -> bool:
        at_s = time.monotonic() - started_s
        if samples and at_s - samples[-1].at_s < 1:
            return False
        work_s = int(lake.call_from_node("/v1/backlog")["work_s"])
        desired, ready = release.actor_replicas()
        samples.append(Sample(at_s, work_s, desired, ready))
        return len(samples) > 1 and not (work_s or desired or release.pods("actor"))

    until("all jobs are done, and no actor is left", is_over, seconds=4 * LONG_S)
    return samples
