"""KEDA itself, with its own manifests but without its webhooks; its images are built here and never pulled."""

import shutil
from typing import Any

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.images import KEDA_ADAPTER, KEDA_OPERATOR, TAG
from tests.cluster.programs import keda_source

NAMESPACE = "keda"
IMAGES = {"keda": KEDA_OPERATOR, "keda-metrics-apiserver": KEDA_ADAPTER}
"""Names in KEDA's registry, and those of the images that are built here."""
NO_PULL = [{"op": "replace", "path": "/spec/template/spec/containers/0/imagePullPolicy", "value": "Never"}]
START_S = 300
"""Its programs make their certificates first, and a kubelet mounts them a minute later."""


def install(cluster: Cluster) -> None:
    """Install KEDA, and wait until it serves the metrics that Kubernetes' autoscaler reads."""
    folder = cluster.folder / "keda"
    shutil.copytree(keda_source() / "config", folder / "config", dirs_exist_ok=True)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(_kustomization()))
    manifests = cluster.kubectl("kustomize", str(folder), namespace=None)
    file = folder / "keda.yaml"
    file.write_text(manifests)
    # Definitions that long do not fit into the annotation of an apply on the client's side.
    cluster.kubectl("apply", "--server-side", f"--filename={file}", namespace=None)
    for deployment in ("deployment/keda-operator", "deployment/keda-metrics-apiserver"):
        cluster.kubectl("rollout", "status", deployment, f"--timeout={START_S}s", namespace=NAMESPACE, seconds=START_S)
    service = "apiservice/v1beta1.external.metrics.k8s.io"
    cluster.wait_for(
        "KEDA serves metrics", "wait", "--for=condition=Available", "--timeout=5s", service, seconds=START_S
    )


def _kustomization() -> dict[str, Any]:
    images = [{"name": f"ghcr.io/kedacore/{name}", "newName": own, "newTag": TAG} for name, own in IMAGES.items()]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["config/minimal"],
        "images": images,
        "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(NO_PULL)}],
    }
