"""The chart's network policies where something enforces them: admitted pods can connect, others cannot.

kube-router enforces them on each node; it neither routes nor replaces kube-proxy here.
"""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import DECIDER, TAG
from tests.cluster.lake import RELEASE, Lake, manifest, restricted_pod
from tests.cluster.release import COMPONENTS, LONG_S, Release, names
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


TOKENS = "/var/run/secrets/kubernetes.io"
ASK = """
import json, ssl, urllib.error, urllib.request
answers, trusting = {}, ssl._create_unverified_context()
for path in ("/api/v1/namespaces/lake/secrets", "/api/v1/namespaces/lake/pods", "/apis/apps/v1/deployments"):
    try:
        urllib.request.urlopen("https://kubernetes.default.svc" + path, context=trusting, timeout=20)
        answers[path] = 200
    except urllib.error.HTTPError as refused:
        answers[path] = refused.code
print(json.dumps(answers))
"""
FORBIDDEN = (
    *(("get", "secrets"), ("list", "secrets"), ("get", "pods"), ("create", "pods"), ("create", "pods/exec")),
    *(("get", "configmaps"), ("update", "deployments"), ("create", "serviceaccounts/token"), ("*", "*")),
)
OF_EVERYONE = {"selfsubjectreviews.authentication.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io"}
OF_EVERYONE |= {"selfsubjectrulesreviews.authorization.k8s.io"}
"""What Kubernetes lets each account do: ask what it may do."""


def test_no_pod_has_a_token_and_none_can_read_anything(cluster: Cluster, lake: Lake, release: Release) -> None:
    for component in COMPONENTS:
        pods = release.pods(component)
        assert pods, component
        for pod in pods:
            assert not [one for one in pod["spec"]["volumes"] if "projected" in one], component
        shell = f"test -e {TOKENS} && echo a token || echo none"
        assert cluster.kubectl("exec", names(pods)[0], "--", "sh", "-c", shell).strip() == "none"
    decider = names(release.ready_pods("decider"))[0]
    answers = json.loads(lake.run(ASK, pod=decider))
    # Without a token a caller is anonymous.
    assert set(answers.values()) <= {401, 403}, answers


def test_the_account_of_the_pods_may_do_nothing(cluster: Cluster, release: Release) -> None:
    account = f"--as={release.service_account()}"
    for verb, resource in FORBIDDEN:
        assert may(cluster, verb, resource, account) == "no", (verb, resource)
    listed = cluster.kubectl("auth", "can-i", "--list", "--no-headers", account)
    resources = {line.split()[0] for line in listed.splitlines() if not line.startswith(" ")}
    # The other lines are paths that anyone may read, such as the version.
    assert resources <= OF_EVERYONE, listed


def test_the_chart_brings_no_role(cluster: Cluster) -> None:
    selector = f"--selector=app.kubernetes.io/instance={RELEASE}"
    for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"):
        assert cluster.get(kind, selector) == []
    assert cluster.get("rolebindings") == []


def may(cluster: Cluster, verb: str, resource: str, account: str) -> str:
    """Return kubectl's answer, yes or no; it ends with 1 after a no."""
    try:
        return cluster.kubectl("auth", "can-i", verb, resource, account).strip()
    except AssertionError as refused:
        return "no" if "no\n" in str(refused) else str(refused)
