"""The chart's network policies where something enforces them: admitted pods can connect, others cannot.

kube-router enforces them on each node; it neither routes nor replaces kube-proxy here.
"""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import DECIDER, TAG
from tests.cluster.lake import RELEASE, Lake, manifest, restricted_pod
from tests.cluster.release import LONG_S, Release, names
from tests.support.go_programs import KUBE_ROUTER
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(0), pytest.mark.long("cluster")]

FROM = [{"podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["minio", "writer"]}]}}]
STRANGER, PORT = "stranger", 9999
CONNECT = """
import json, socket
reached = {}
for name, address in TARGETS.items():
    try:
        socket.create_connection(address, timeout=3).close()
        reached[name] = True
    except OSError:
        reached[name] = False
print(json.dumps(reached))
"""


@pytest.fixture
def enforced(cluster: Cluster, release: Release) -> Iterator[None]:
    """kube-router on each node, and a pod that no policy admits."""
    enforcer = KUBE_ROUTER.binary()
    for node in cluster.nodes:
        node.machine.start_program(
            "kube-router",
            # It would take the name of the host before that of the option, and all machines have one name.
            *("env", f"NODE_NAME={node.name}", str(enforcer), f"--kubeconfig={cluster.config}"),
            *("--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--metrics-port=0"),
        )
    stranger = restricted_pod(10001, image=f"{DECIDER}:{TAG}", command=["sleep", "infinity"])
    cluster.apply(manifest("Pod", STRANGER, spec=stranger))
    cluster.wait_for("the stranger runs", "wait", "--for=condition=Ready", "--timeout=5s", f"pod/{STRANGER}")
    yield
    release.install()
    cluster.kubectl("delete", "pod", STRANGER)


@pytest.mark.usefixtures("enforced")
def test_only_who_is_admitted_reaches_deciders_and_only_they_and_actors_reach_redis(
    cluster: Cluster, lake: Lake, release: Release
) -> None:
    listen_in_the_actor(cluster, release)
    everything = {"decider": True, "redis": True, "actor": True}
    until("all can be reached", lambda: reached_from(lake, release, STRANGER) == everything, seconds=60)
    release.install("--set=networkPolicy.enabled=true", f"--set-json=networkPolicy.from={json.dumps(FROM)}")
    nothing = {"decider": False, "redis": False, "actor": False}
    until("a stranger is kept out", lambda: reached_from(lake, release, STRANGER) == nothing, seconds=LONG_S)
    assert reached_from(lake, release, "writer") == nothing | {"decider": True}
    # It connects to the other one, because no policy keeps a pod from itself.
    (decider, _) = names(release.ready_pods("decider"))
    assert reached_from(lake, release, decider) == nothing | {"redis": True}
    lake.write("kept/events")
    release.require_compacted("kept/events", 1_200)
    assert reached_from(lake, release, STRANGER) == nothing
    # The kubelet's probes come from the node.
    assert not release.restarts("decider")
    release.wait_for_deciders()


def listen_in_the_actor(cluster: Cluster, release: Release) -> None:
    """Start a server in the actor's pod for connections to reach: the actor itself accepts none."""
    (actor, *_) = names(release.ready_pods("actor"))
    server = f"nohup python -m http.server {PORT} --directory /tmp >/dev/null 2>&1 &"
    cluster.kubectl("exec", actor, "--", "sh", "-c", server)


def reached_from(lake: Lake, release: Release, pod: str) -> dict[str, bool]:
    """Return to which components a pod can connect: Redis by its service, the others by the address of a pod."""
    (actor, *_) = release.ready_pods("actor")
    (*_, decider) = release.ready_pods("decider")
    targets = {
        "decider": (decider["status"]["podIP"], 7420),
        "redis": (f"{RELEASE}-redis", 6379),
        "actor": (actor["status"]["podIP"], PORT),
    }
    return dict(json.loads(lake.run(CONNECT, pod=pod, TARGETS=targets)))
