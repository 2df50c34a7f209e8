"""Nodes that are drained while jobs run: the pods move or wait for the node, and nothing is lost.

The first node has the volume of Redis, and MinIO; the second one is added here.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.cluster import FIRST, Cluster
from tests.cluster.lake import RELEASE, Lake
from tests.cluster.release import COMPONENTS, LONG_S, Release
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(0), pytest.mark.long("cluster")]


@pytest.fixture(scope="module")
def second(cluster: Cluster) -> Iterator[str]:
    """A second node; no pod is put on it afterwards."""
    name = cluster.add_node()
    cluster.kubectl("uncordon", name)
    yield name
    cluster.kubectl("uncordon", FIRST)
    cluster.kubectl("cordon", name)


def test_a_node_with_all_deciders_and_a_running_rewrite_is_drained(
    cluster: Cluster, lake: Lake, release: Release, second: str
) -> None:
    tables = [f"moved{number}/events" for number in range(3)]
    release.scale_actors(0)
    cluster.kubectl("cordon", FIRST)
    release.restart_deciders()
    for table in tables:
        lake.write(table, rows=20_000)
    until("jobs wait", lambda: lake.jobs()["queued"] >= len(tables), seconds=LONG_S)
    release.scale_actors(1)
    release.wait_for_rewrites()
    # An actor rewrites a moment before the kubelet has asked it whether it is ready.
    assert nodes_of(release.pods) == {"decider": {second}, "actor": {second}, "redis": {FIRST}}
    cluster.kubectl("uncordon", FIRST)
    drain(cluster, second)
    for table in tables:
        release.require_compacted(table, 240_000)
    moved = {"decider": {FIRST}, "actor": {FIRST}, "redis": {FIRST}}
    until("all run on the other node", lambda: nodes_of(release.ready_pods) == moved, seconds=LONG_S)


def test_the_node_with_the_volume_of_redis_is_drained_and_comes_back(
    cluster: Cluster, lake: Lake, release: Release, second: str
) -> None:
    before = lake.tables()
    release.scale_actors(0)
    lake.write("waited/events", rows=20_000)
    until("a job waits", lambda: lake.jobs()["queued"], seconds=LONG_S)
    release.scale_actors(1)
    release.wait_for_rewrites()
    cluster.kubectl("uncordon", second)
    # Not MinIO and the pod that writes: no controller would make them again.
    drain(cluster, FIRST, f"--pod-selector=app.kubernetes.io/instance={RELEASE}")
    until("Redis waits for its volume", lambda: phase_of_redis(release) == "Pending", seconds=LONG_S)
    release.wait_for_deciders(0)
    # No decider takes these events: MinIO posts them again.
    lake.write("away/events")
    cluster.kubectl("uncordon", FIRST)
    release.wait_for_deciders()
    release.require_compacted("waited/events", 240_000)
    release.require_compacted("away/events", 1_200)
    assert before.items() <= lake.tables().items()
    assert not release.restarts("decider")


def drain(cluster: Cluster, node: str, *arguments: str) -> None:
    """Drain a node as an operator does, within the budgets; it ends when the pods are gone."""
    flags = ("--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={LONG_S}s")
    cluster.kubectl("drain", node, *flags, *arguments, seconds=2 * LONG_S)


def nodes_of(pods: Callable[[str], list[dict[str, Any]]]) -> dict[str, set[str]]:
    """Return the nodes of pods, by component."""
    return {one: {pod["spec"]["nodeName"] for pod in pods(one)} for one in COMPONENTS}


def phase_of_redis(release: Release) -> str:
    """Return the phase of the one pod of Redis, empty while there is none."""
    return "".join(pod["status"]["phase"] for pod in release.pods("redis"))
