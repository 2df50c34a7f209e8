"""The chart on a real API server, kubelet and containerd: what is killed, rolled or deleted loses no row and no job.

`make test-cluster` builds Kubernetes and the images first, which takes most of an hour the first time.
"""

import json
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import Cluster, running_pods
from tests.cluster.images import ACTOR, DECIDER, REDIS, TAG, built_images
from tests.cluster.lake import RELEASE, STORE, Lake, prepare
from tests.cluster.programs import FOLDER, ROOT, missing
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(0), pytest.mark.long("cluster")]

VALUES: dict[str, Any] = {
    "image": {"decider": DECIDER, "actor": ACTOR, "tag": TAG, "pullPolicy": "Never"},
    "redis": {"embedded": {"image": f"{REDIS}:{TAG}", "storage": "1Gi", "resources": {"requests": {"cpu": "10m"}}}},
    "roots": ["s3://lake/tables"],
    "state": "s3://lake/registry",
    "storeOptions": STORE,
    "credentialsSecret": "store",
    "decider": {"resources": {"requests": {"cpu": "50m"}}},
    "actor": {
        "allowS3": True,
        "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "3Gi"}},
        "environment": {"LAKEWRIGHT_LEASE_S": 10},
    },
}
LONG_S = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := missing():
        pytest.skip(reason)
    for old in FOLDER.glob("run-*"):  # Kept for its logs until now.
        shutil.rmtree(old)
    made = Cluster(FOLDER / f"run-{time.time_ns()}")
    with built_images() as docker:
        try:
            made.start(docker)
        except BaseException:
            made.close()
            raise
    try:
        prepare(made)
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def lake(cluster: Cluster) -> Lake:
    values = cluster.folder / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    cluster.helm("install", RELEASE, str(ROOT / "helm"), f"--values={values}", "--wait", "--timeout=10m")
    made = Lake(cluster)
    made.notify()
    return made


def pods(cluster: Cluster, component: str) -> list[dict[str, Any]]:
    return cluster.get("pods", f"--selector=app.kubernetes.io/component={component}")


def is_idle(lake: Lake) -> bool:
    depth = (lake.answers("/v1/status") or {}).get("queue", {}).get("depth", {"queued": 1})
    return not any(depth.values())


def require_compacted(lake: Lake, table: str, rows: int) -> None:
    """Wait until no job is left, and require that each row is there once and in few files."""
    until(f"{table} is compacted", lambda: lake.read(table)["files"] < 5, seconds=LONG_S)
    until("no job is left", lambda: is_idle(lake), seconds=LONG_S)
    found = lake.read(table)
    assert found["exact"]
    assert found["rows"] == rows


def scale_actors(cluster: Cluster, number: int) -> None:
    """Have so many actors; without one, jobs wait, and the first that comes begins with them."""
    cluster.kubectl("scale", f"deployment/{RELEASE}-actor", f"--replicas={number}")
    if not number:
        until("no actor is left", lambda: not pods(cluster, "actor"), seconds=LONG_S)


def wait_for_rewrites(lake: Lake) -> None:
    """Wait until an actor has begun with a job."""
    until("a rewrite runs", lambda: lake.jobs()["leased"], seconds=LONG_S)


def upgrade(cluster: Cluster, *settings: str) -> None:
    values = f"--values={cluster.folder / 'values.yaml'}"
    cluster.helm("upgrade", RELEASE, str(ROOT / "helm"), values, *settings, "--wait", "--timeout=10m")


def test_a_table_that_another_pod_writes_is_found_by_an_event_and_compacted(cluster: Cluster, lake: Lake) -> None:
    lake.write("web/clicks")
    require_compacted(lake, "web/clicks", 1_200)
    assert not [pod for pod in pods(cluster, "actor") if pod["status"]["containerStatuses"][0]["restartCount"]]
    assert len(running_pods(pods(cluster, "decider"))) == 2


def test_an_actor_that_is_killed_in_a_rewrite_loses_and_doubles_no_row(cluster: Cluster, lake: Lake) -> None:
    scale_actors(cluster, 0)
    lake.write("web/orders", commits=16, rows=100_000)
    until("a job waits", lambda: lake.jobs()["queued"], seconds=LONG_S)
    scale_actors(cluster, 1)
    wait_for_rewrites(lake)
    # The container's first process is beyond the reach of its own namespace.
    for pid in cluster.machine.run("pgrep", "--full", "services.actor").split():
        cluster.machine.run("kill", "-KILL", pid)
    until(
        "the kubelet started it again",
        lambda: pods(cluster, "actor")[0]["status"]["containerStatuses"][0]["restartCount"],
        seconds=LONG_S,
    )
    require_compacted(lake, "web/orders", 1_600_000)


def test_the_pod_of_redis_is_deleted_and_nothing_is_forgotten(cluster: Cluster, lake: Lake) -> None:
    before = {one["id"]: one["name"] for one in lake.call("/v1/tables")["tables"]}
    cluster.kubectl("delete", "pod", f"{RELEASE}-redis-0", "--wait")
    cluster.wait_for("Redis is back", "wait", "--for=condition=Ready", "--timeout=5s", f"pod/{RELEASE}-redis-0")
    until("deciders are ready", lambda: len(running_pods(pods(cluster, "decider"))) == 2, seconds=LONG_S)
    until("a decider answers", lambda: lake.answers("/v1/tables"), seconds=LONG_S)
    assert {one["id"]: one["name"] for one in lake.call("/v1/tables")["tables"]} == before
    assert before
    lake.write("web/clicks2")
    require_compacted(lake, "web/clicks2", 1_200)


@pytest.mark.usefixtures("lake")
def test_deciders_are_not_ready_without_redis_and_are_not_restarted_for_it(cluster: Cluster) -> None:
    cluster.kubectl("scale", f"statefulset/{RELEASE}-redis", "--replicas=0")
    until("no decider is ready", lambda: not running_pods(pods(cluster, "decider")), seconds=LONG_S)
    cluster.kubectl("scale", f"statefulset/{RELEASE}-redis", "--replicas=1")
    until("both are ready", lambda: len(running_pods(pods(cluster, "decider"))) == 2, seconds=LONG_S)
    assert not any(pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods(cluster, "decider"))


@pytest.mark.usefixtures("lake")
def test_a_second_decider_is_not_evicted_while_the_first_is_away(cluster: Cluster) -> None:
    until("both may serve", lambda: len(running_pods(pods(cluster, "decider"))) == 2, seconds=LONG_S)

    def evict(pod: str) -> str:
        body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})
        path = f"/api/v1/namespaces/lake/pods/{pod}/eviction"
        try:
            return cluster.kubectl("create", f"--raw={path}", "--filename=-", text=body)
        except AssertionError as refused:
            return str(refused)

    first, second = running_pods(pods(cluster, "decider"))
    until("the budget allows one", lambda: "Success" in evict(first), seconds=60)
    assert "disruption budget" in evict(second)
    until("both serve again", lambda: len(running_pods(pods(cluster, "decider"))) == 2, seconds=LONG_S)


def test_an_upgrade_and_a_rollback_with_jobs_in_flight_lose_nothing(cluster: Cluster, lake: Lake) -> None:
    tables = [f"team{number}/events" for number in range(4)]
    scale_actors(cluster, 0)
    for table in tables:
        lake.write(table, commits=12, rows=20_000)
    scale_actors(cluster, 1)
    wait_for_rewrites(lake)
    upgrade(cluster, "--set=actor.slots=1", "--set=decider.sweepSeconds=60")
    cluster.helm("rollback", RELEASE, "1", "--wait", "--timeout=10m")
    for table in tables:
        require_compacted(lake, table, 240_000)
    assert {one["name"] for one in lake.call("/v1/tables")["tables"]} >= {f"team{number}.events" for number in range(4)}


def test_an_uninstall_leaves_the_tables_and_the_volume_alone(cluster: Cluster, lake: Lake) -> None:
    cluster.helm("uninstall", RELEASE, "--wait")
    selector = f"--selector=app.kubernetes.io/instance={RELEASE}"
    until("its pods are gone", lambda: not cluster.get("pods", selector), seconds=LONG_S)
    for kind in ("deployments", "statefulsets", "services", "serviceaccounts", "poddisruptionbudgets"):
        assert cluster.get(kind, selector) == []
    assert len(cluster.get("persistentvolumeclaims")) == 1
    assert lake.read("web/clicks")["exact"]
