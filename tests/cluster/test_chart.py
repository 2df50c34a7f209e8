"""The chart on a real API server, kubelet and containerd: what is killed, restarted or evicted loses no row and no job.

`make test-cluster` builds Kubernetes and the images first, which takes most of an hour the first time.
"""

import json

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.lake import RELEASE, Lake
from tests.cluster.release import LONG_S, Release, names
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(0), pytest.mark.long("cluster")]


def test_a_table_that_another_pod_writes_is_found_by_an_event_and_compacted(lake: Lake, release: Release) -> None:
    lake.write("web/clicks")
    release.require_compacted("web/clicks", 1_200)
    assert not release.restarts("actor")
    assert len(release.ready_pods("decider")) == 2


def test_an_actor_that_is_killed_in_a_rewrite_loses_and_doubles_no_row(
    cluster: Cluster, lake: Lake, release: Release
) -> None:
    release.scale_actors(0)
    lake.write("web/orders", commits=16, rows=100_000)
    until("a job waits", lambda: lake.jobs()["queued"], seconds=LONG_S)
    release.scale_actors(1)
    release.wait_for_rewrites()
    # The container's first process is beyond the reach of its own namespace.
    for pid in cluster.machine.run("pgrep", "--full", "services.actor").split():
        cluster.machine.run("kill", "-KILL", pid)
    until("the kubelet started it again", lambda: release.restarts("actor"), seconds=LONG_S)
    release.require_compacted("web/orders", 1_600_000)


def test_the_pod_of_redis_is_deleted_and_nothing_is_forgotten(cluster: Cluster, lake: Lake, release: Release) -> None:
    before = lake.tables()
    cluster.kubectl("delete", "pod", f"{RELEASE}-redis-0", "--wait")
    cluster.wait_for("Redis is back", "wait", "--for=condition=Ready", "--timeout=5s", f"pod/{RELEASE}-redis-0")
    release.wait_for_deciders()
    until("a decider answers", lambda: lake.answers("/v1/tables"), seconds=LONG_S)
    assert lake.tables() == before
    assert before
    lake.write("web/clicks2")
    release.require_compacted("web/clicks2", 1_200)


def test_deciders_are_not_ready_without_redis_and_are_not_restarted_for_it(cluster: Cluster, release: Release) -> None:
    cluster.kubectl("scale", f"statefulset/{RELEASE}-redis", "--replicas=0")
    release.wait_for_deciders(0)
    cluster.kubectl("scale", f"statefulset/{RELEASE}-redis", "--replicas=1")
    release.wait_for_deciders()
    assert not release.restarts("decider")


def test_a_second_decider_is_not_evicted_while_the_first_is_away(cluster: Cluster, release: Release) -> None:
    release.wait_for_deciders()

    def evict(pod: str) -> str:
        body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})
        path = f"/api/v1/namespaces/lake/pods/{pod}/eviction"
        try:
            return cluster.kubectl("create", f"--raw={path}", "--filename=-", text=body)
        except AssertionError as refused:
            return str(refused)

    first, second = names(release.ready_pods("decider"))
    until("the budget allows one", lambda: "Success" in evict(first), seconds=60)
    assert "disruption budget" in evict(second)
    release.wait_for_deciders()


def test_an_upgrade_and_a_rollback_with_jobs_in_flight_lose_nothing(lake: Lake, release: Release) -> None:
    tables = [f"team{number}/events" for number in range(4)]
    before = release.revision()
    release.scale_actors(0)
    for table in tables:
        lake.write(table, commits=12, rows=20_000)
    release.scale_actors(1)
    release.wait_for_rewrites()
    release.install("--set=actor.slots=1", "--set=decider.sweepSeconds=60")
    release.roll_back(before)
    for table in tables:
        release.require_compacted(table, 240_000)
    assert {table.replace("/", ".") for table in tables} <= set(lake.tables().values())


def test_an_uninstall_leaves_the_tables_and_the_volume_alone(cluster: Cluster, lake: Lake) -> None:
    cluster.helm("uninstall", RELEASE, "--wait")
    selector = f"--selector=app.kubernetes.io/instance={RELEASE}"
    until("its pods are gone", lambda: not cluster.get("pods", selector), seconds=LONG_S)
    for kind in ("deployments", "statefulsets", "services", "serviceaccounts", "poddisruptionbudgets"):
        assert cluster.get(kind, selector) == []
    assert len(cluster.get("persistentvolumeclaims")) == 1
    assert lake.read("web/clicks")["exact"]
