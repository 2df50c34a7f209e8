"""The pods have no rights at the API server: no token, no role, and an account that may read nothing."""

import json

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.lake import RELEASE, Lake
from tests.cluster.release import COMPONENTS, Release, names

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(0), pytest.mark.long("cluster")]

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
