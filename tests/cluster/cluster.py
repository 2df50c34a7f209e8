"""A Kubernetes of one node, or of two, in machines of their own, with containerd, kube-proxy and CoreDNS."""

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.images import Docker
from tests.cluster.machine import COMMAND_S, Machine
from tests.cluster.node import START_S, Node
from tests.cluster.programs import FOLDER, KUBERNETES
from tests.support.go_programs import HELM
from tests.support.waiting import comes_true, until

SERVICES = "10.96.0.0/16"
ETCD = "http://127.0.0.1:2379"
STORE = FOLDER / "containerd"
"""Images stay here for the next run: unpacking them takes minutes."""
AGGREGATOR = "aggregator"
STABILIZATION_S = 15
"""How long fewer replicas have to be enough before some are ended; 300 by default, which tests would wait for."""
FIRST, SECOND = "node", "node2"
CARD, FAR_END = "card0", "card1"
"""A veth pair is the network: kernels without the dummy driver have it, and a second node gets its far end."""


class Cluster:
    """The cluster; `kubectl` and `helm` work in the namespace `lake`."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder, has_network=False)
        self.folder = folder
        self.config = str(folder / "kubeconfig")
        self.nodes = [Node(self.machine, name=FIRST, number=1, store=STORE)]

    def start(self, docker: Docker) -> None:
        """Start everything, with the images of `docker`."""
        self.machine.start()
        self.machine.run("ip", "link", "add", CARD, "type", "veth", "peer", "name", FAR_END)
        self.machine.run("ip", "link", "set", FAR_END, "up")
        first = self.nodes[0]
        first.connect(CARD)
        self.machine.run("ip", "route", "add", "default", "via", "192.0.2.1", "dev", CARD)
        self._write_files()
        self._start_control_plane()
        first.start(config=self.config, dns=first.address)
        self._part("coredns", "-conf", "Corefile")
        self._wait_for_node(FIRST)
        first.load(docker)

    def add_node(self) -> str:
        """Start a second node, unless there is one, and return its name; it stays until the cluster ends."""
        if len(self.nodes) > 1:
            return SECOND
        first = self.nodes[0]
        machine = Machine(self.folder / SECOND, has_network=False)
        machine.start()
        second = Node(machine, name=SECOND, number=2, store=machine.folder / "containerd")
        self.nodes.append(second)
        self.machine.give_card(FAR_END, machine)
        second.connect(FAR_END)
        machine.run("ip", "route", "add", "default", "via", first.address)
        self.machine.run("ip", "route", "add", second.pods, "via", second.address)
        second.copy_images_of(first)
        second.start(config=self.config, dns=first.address)
        self._wait_for_node(SECOND)
        return SECOND

    def close(self) -> None:
        """End it with all that runs in it."""
        for node in reversed(self.nodes):
            node.machine.close()

    def kubectl(
        self, *arguments: str, text: str | None = None, seconds: float = COMMAND_S, namespace: str | None = "lake"
    ) -> str:
        """Run kubectl and return its output; without a namespace, each object of a manifest names its own."""
        place = () if namespace is None else (f"--namespace={namespace}",)
        command = (str(KUBERNETES), "kubectl", f"--kubeconfig={self.config}", *place, *arguments)
        return self.machine.run(*command, text=text, seconds=seconds)

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply manifests."""
        self.kubectl("apply", "--filename=-", text=yaml.safe_dump_all(manifests))

    def get(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        """Return objects of a kind."""
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "--output=json", *arguments))["items"]
        return found

    def helm(self, *arguments: str, seconds: float = 900) -> str:
        """Run Helm and return its output."""
        places = [f"HELM_{name}_HOME={self.folder / 'helm'}" for name in ("CACHE", "CONFIG", "DATA")]
        command = ["env", *places, str(HELM.binary()), f"--kubeconfig={self.config}", "--namespace=lake"]
        return self.machine.run(*command, *arguments, seconds=seconds)

    def wait_for(self, what: str, *arguments: str, seconds: float = 240) -> None:
        """Wait until kubectl prints something; a failure shows the pods and the latest events."""
        found = comes_true(lambda: self._answers(*arguments), seconds=seconds)
        assert found, f"{what}: {self.kubectl('get', 'pods')}{self.kubectl('get', 'events')[-3000:]}"

    def _write_files(self) -> None:
        user = {"name": "admin", "user": {"token": "admin"}}
        server = {"server": f"https://{self.nodes[0].address}:6443", "insecure-skip-tls-verify": True}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [user],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }
        Path(self.config).write_text(yaml.safe_dump(config))
        (self.folder / "tokens.csv").write_text('admin,admin,admin,"system:masters"\n')
        self._openssl("genrsa", "-out", "sa.key", "2048")
        # The API server shows this certificate where another one serves a part of the API, such as KEDA's metrics.
        made = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "7", "-subj", f"/CN={AGGREGATOR}")
        self._openssl("req", *made, "-keyout", "aggregator.key", "-out", "aggregator.crt")
        (self.folder / "Corefile").write_text(
            f".:53 {{\n errors\n kubernetes cluster.local {{\n  kubeconfig {self.config} test\n }}\n}}\n"
        )

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def _part(self, name: str, *arguments: str) -> None:
        self.machine.start_program(name, str(KUBERNETES), name, *arguments)

    def _start_control_plane(self) -> None:
        peers = "http://127.0.0.1:2380"
        address = self.nodes[0].address
        self._part(
            *("etcd", "--data-dir=etcd", "--unsafe-no-fsync", f"--listen-client-urls={ETCD}"),
            *(f"--advertise-client-urls={ETCD}", f"--listen-peer-urls={peers}"),
            *(f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}"),
        )
        self._part(
            *("kube-apiserver", f"--etcd-servers={ETCD}", f"--bind-address={address}", "--cert-dir=certificates"),
            *(f"--advertise-address={address}", f"--service-cluster-ip-range={SERVICES}", "--api-audiences=api"),
            *("--service-account-key-file=sa.key", "--service-account-signing-key-file=sa.key"),
            *("--service-account-issuer=https://kubernetes.default.svc", "--token-auth-file=tokens.csv"),
            *("--authorization-mode=Node,RBAC", "--allow-privileged", "--kubelet-preferred-address-types=InternalIP"),
            *("--proxy-client-cert-file=aggregator.crt", "--proxy-client-key-file=aggregator.key"),
            *("--requestheader-client-ca-file=aggregator.crt", f"--requestheader-allowed-names={AGGREGATOR}"),
            *("--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group"),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        )
        until("the API server is ready", lambda: self._answers("get", "--raw=/readyz"), seconds=START_S)
        common = (f"--kubeconfig={self.config}", "--leader-elect=false", "--bind-address=127.0.0.1")
        self._part(
            *("kube-controller-manager", *common, "--cert-dir=certificates-controllers"),
            *("--service-account-private-key-file=sa.key", "--root-ca-file=certificates/apiserver.crt"),
            f"--horizontal-pod-autoscaler-downscale-stabilization={STABILIZATION_S}s",
        )
        self._part("kube-scheduler", *common, "--cert-dir=certificates-scheduler")

    def _wait_for_node(self, name: str) -> None:
        ready = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        command = ("get", "node", name, f"--output={ready}")
        until(f"{name} is ready", lambda: self._answers(*command) == "True", seconds=START_S)

    def _answers(self, *arguments: str) -> str | None:
        try:
            return self.kubectl(*arguments)
        except AssertionError:
            return None
