"""The release of the chart that the tests share: its values, its pods, and what waits in its queue."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.images import ACTOR, DECIDER, REDIS, TAG
from tests.cluster.lake import NAMESPACE, RELEASE, STORE, Lake
from tests.cluster.programs import ROOT
from tests.support.waiting import until

VALUES: dict[str, Any] = {
    "image": {"decider": DECIDER, "actor": ACTOR, "tag": TAG, "pullPolicy": "Never"},
    "redis": {"embedded": {"image": f"{REDIS}:{TAG}", "storage": "1Gi", "resources": {"requests": {"cpu": "10m"}}}},
    "roots": ["s3://lake/tables", "s3://quiet/tables"],
    "state": "s3://lake/registry",
    "storeOptions": STORE,
    "credentialsSecret": "store",
    "decider": {"resources": {"requests": {"cpu": "50m"}}},
    "actor": {
        "allowS3": True,
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "3Gi"}},
        "environment": {"LAKEWRIGHT_LEASE_S": 10},
    },
}
LONG_S = 300
COMPONENTS = ("decider", "actor", "redis")


class Release:
    """The release in the cluster, and the lake that it serves."""

    def __init__(self, cluster: Cluster, lake: Lake) -> None:
        self.cluster = cluster
        self.lake = lake
        self._values = cluster.folder / "values.yaml"
        self._values.write_text(yaml.safe_dump(VALUES))

    def install(self, *settings: str) -> None:
        """Install or upgrade the release with `VALUES` and these arguments of Helm; its pods are ready afterwards."""
        chart = (RELEASE, str(ROOT / "helm"), f"--values={self._values}", *settings)
        self.cluster.helm("upgrade", "--install", *chart, "--wait", "--timeout=10m")

    def revision(self) -> str:
        """Return the number of the release's current revision."""
        listed = json.loads(self.cluster.helm("list", "--output=json"))
        return next(str(one["revision"]) for one in listed if one["name"] == RELEASE)

    def roll_back(self, revision: str) -> None:
        """Go back to a revision."""
        self.cluster.helm("rollback", RELEASE, revision, "--wait", "--timeout=10m")

    def pods(self, component: str) -> list[dict[str, Any]]:
        """Return the pods of a component."""
        return self.cluster.get("pods", f"--selector=app.kubernetes.io/component={component}")

    def ready_pods(self, component: str) -> list[dict[str, Any]]:
        """Return the pods of a component that are ready and not being deleted."""
        return [pod for pod in self.pods(component) if is_ready(pod)]

    def restarts(self, component: str) -> int:
        """Return how often containers of a component were started again."""
        return sum(one["restartCount"] for pod in self.pods(component) for one in pod["status"]["containerStatuses"])

    def wait_for_deciders(self, number: int = 2) -> None:
        """Wait until so many deciders serve."""
        until(f"{number} deciders are ready", lambda: len(self.ready_pods("decider")) == number, seconds=LONG_S)

    def restart_deciders(self) -> None:
        """Replace all deciders, and wait until the new ones serve."""
        for action in ("restart", "status"):
            self.cluster.kubectl("rollout", action, f"deployment/{RELEASE}-decider", seconds=LONG_S)

    def scale_actors(self, number: int) -> None:
        """Have so many actors; without any, jobs wait for the first one."""
        self.cluster.kubectl("scale", f"deployment/{RELEASE}-actor", f"--replicas={number}")
        if not number:
            until("no actor is left", lambda: not self.pods("actor"), seconds=LONG_S)

    def actor_replicas(self) -> tuple[int, int]:
        """Return how many actors there should be, and how many are ready."""
        found = json.loads(self.cluster.kubectl("get", f"deployment/{RELEASE}-actor", "--output=json"))
        return found["spec"]["replicas"], found["status"].get("readyReplicas", 0)

    def wait_for_rewrites(self) -> None:
        """Wait until an actor runs a job."""
        until("a rewrite runs", lambda: self.lake.jobs()["leased"], seconds=LONG_S)

    def require_compacted(self, table: str, rows: int, *, bucket: str = "lake", files: int = 4) -> None:
        """Wait until no job is left, and require each row exactly once, in few files."""
        read = self.lake.read
        until(f"{table} is compacted", lambda: read(table, bucket=bucket)["files"] <= files, seconds=LONG_S)
        until("no job is left", self.is_idle, seconds=LONG_S)
        found = read(table, bucket=bucket)
        assert found["exact"], found
        assert found["rows"] == rows

    def is_idle(self) -> bool:
        """Return whether no job waits or runs."""
        status = self.lake.answers("/v1/status") or {}
        depth = status.get("queue", {}).get("depth")
        return depth is not None and not any(depth.values())

    def service_account(self) -> str:
        """Return the name under which the API server knows deciders and actors: they share one account."""
        (name,) = {pod["spec"]["serviceAccountName"] for one in ("decider", "actor") for pod in self.pods(one)}
        return f"system:serviceaccount:{NAMESPACE}:{name}"


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a pod is ready and not being deleted."""
    conditions = pod["status"].get("conditions", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def names(pods: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of pods."""
    return [pod["metadata"]["name"] for pod in pods]
