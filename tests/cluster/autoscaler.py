"""KEDA and Kubernetes' autoscaler in a few lines: what they do together with the chart's ScaledObject.

KEDA's own definitions accept or refuse the ScaledObject at the API server, and this client reads it there, asks its URL
from a pod with its token, and sets the replicas. KEDA starts the first replica when the value is above zero, and ends
the last ones after the cooldown. In between, Kubernetes' autoscaler divides the value by the target, as its documents
say: a deviation of a tenth is tolerated, at most four more replicas or twice as many are added at once, and of the
results of the last `STABILIZATION_S` the highest counts before fewer replicas remain.
"""

import base64
import json
import math
import time
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.lake import Lake

STABILIZATION_S = 15
"""A setting of the controller manager, 300 by default: this is not what the chart says, and tests wait for it."""
TOLERANCE = 0.1
ASK = """
import urllib.request
request = urllib.request.Request("URL", headers={"Authorization": "Bearer TOKEN"})
print(urllib.request.urlopen(request, timeout=3).read().decode())
"""


class Autoscaler:
    """Scales what the ScaledObject `name` names; `poll` is to be called again and again."""

    def __init__(self, cluster: Cluster, lake: Lake, name: str) -> None:
        self._cluster = cluster
        self._lake = lake
        found = json.loads(cluster.kubectl("get", "scaledobject", name, "--output=json"))
        self._spec: dict[str, Any] = found["spec"]
        (self._trigger,) = self._spec["triggers"]
        self._deployment = f"deployment/{self._spec['scaleTargetRef']['name']}"
        self._token = self._read_token()
        self._due_s = 0.0
        self._active_s = -math.inf
        self._wanted: list[tuple[float, int]] = []

    def poll(self) -> None:
        """Ask for the value and scale, once in each polling interval."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._due_s = now_s + self._spec["pollingInterval"]
        value = self._value()
        replicas, _ = self.replicas()
        if value > 0:
            self._active_s = now_s
        wanted = self._after_keda(value, replicas, now_s)
        if wanted and replicas:  # It leaves a deployment without replicas alone.
            wanted = self._after_the_autoscaler(value, wanted, now_s)
        if wanted != replicas:
            self._cluster.kubectl("scale", self._deployment, f"--replicas={wanted}")

    def replicas(self) -> tuple[int, int]:
        """Return how many replicas the deployment should have, and how many are ready."""
        found = json.loads(self._cluster.kubectl("get", self._deployment, "--output=json"))
        return found["spec"]["replicas"], found["status"].get("readyReplicas", 0)

    def _after_keda(self, value: float, replicas: int, now_s: float) -> int:
        if value > 0:
            return max(replicas, self._spec["minReplicaCount"], 1)
        is_over = now_s - self._active_s > self._spec["cooldownPeriod"]
        return int(self._spec["minReplicaCount"]) if is_over else replicas

    def _after_the_autoscaler(self, value: float, replicas: int, now_s: float) -> int:
        target = float(self._trigger["metadata"]["targetValue"])
        ratio = value / (target * replicas)
        wanted = replicas if abs(1 - ratio) <= TOLERANCE else math.ceil(value / target)
        self._wanted = [(at, one) for at, one in self._wanted if now_s - at <= STABILIZATION_S] + [(now_s, wanted)]
        if wanted < replicas:
            wanted = min(replicas, max(one for _, one in self._wanted))
        wanted = min(wanted, max(2 * replicas, replicas + 4))
        return max(1, self._spec["minReplicaCount"], min(wanted, self._spec["maxReplicaCount"]))

    def _value(self) -> float:
        answer = json.loads(self._lake.run(ASK, URL=self._trigger["metadata"]["url"], TOKEN=self._token))
        return float(answer[self._trigger["metadata"]["valueLocation"]])

    def _read_token(self) -> str:
        name = self._trigger["authenticationRef"]["name"]
        found = json.loads(self._cluster.kubectl("get", "triggerauthentication", name, "--output=json"))
        (reference,) = found["spec"]["secretTargetRef"]
        path = f"--output=jsonpath={{.data.{reference['key']}}}"
        return base64.b64decode(self._cluster.kubectl("get", "secret", reference["name"], path)).decode()
