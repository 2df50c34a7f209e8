"""A Kubernetes of one node in a machine of its own, with containerd, kube-proxy and CoreDNS."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.images import ALL, PAUSE, TAG, Docker
from tests.cluster.machine import Machine
from tests.cluster.programs import FOLDER, KUBERNETES
from tests.support.go_programs import HELM
from tests.support.waiting import comes_true, until

ADDRESS = "192.0.2.2"
"""Of the node; a network of documentation, which leads nowhere."""
SERVICES, PODS = "10.96.0.0/16", "10.85.0.0/16"
ETCD = "http://127.0.0.1:2379"
SOCKET = "/run/containerd.sock"
STORE = FOLDER / "containerd"
"""Images stay here for the next run: unpacking them takes minutes."""
START_S = 120


class Cluster:
    """The cluster; `kubectl` and `helm` work in the namespace `lake`."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder, has_network=False)
        self.folder = folder
        self._config = str(folder / "kubeconfig")

    def start(self, docker: Docker) -> None:
        """Start everything, with the images of `docker`."""
        self.machine.start()
        # A veth pair stands in for the network card: kernels without the dummy driver have it.
        for line in (
            "link add node0 type veth peer name node1",
            f"addr add {ADDRESS}/24 dev node0",
            "link set node0 up",
            "link set node1 up",
            "route add default via 192.0.2.1 dev node0",
        ):
            self.machine.run("ip", *line.split())
        self.machine.run("sysctl", "-w", "net.ipv4.ip_forward=1")
        self._write_files()
        self._start_control_plane()
        self._start_node()
        self._load(docker)

    def close(self) -> None:
        """End it with all that runs in it."""
        self.machine.close()

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl and return its output."""
        config = f"--kubeconfig={self._config}"
        return self.machine.run(str(KUBERNETES), "kubectl", config, "--namespace=lake", *arguments, text=text)

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply manifests."""
        self.kubectl("apply", "--filename=-", text=yaml.safe_dump_all(manifests))

    def get(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        """Return objects of a kind."""
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "--output=json", *arguments))["items"]
        return found

    def helm(self, *arguments: str, seconds: float = 600) -> str:
        """Run Helm and return its output."""
        places = [f"HELM_{name}_HOME={self.folder / 'helm'}" for name in ("CACHE", "CONFIG", "DATA")]
        command = ["env", *places, str(HELM.binary()), f"--kubeconfig={self._config}", "--namespace=lake"]
        return self.machine.run(*command, *arguments, seconds=seconds)

    def _write_files(self) -> None:
        user = {"name": "admin", "user": {"token": "admin"}}
        server = {"server": f"https://{ADDRESS}:6443", "insecure-skip-tls-verify": True}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [user],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }
        Path(self._config).write_text(yaml.safe_dump(config))
        (self.folder / "tokens.csv").write_text('admin,admin,admin,"system:masters"\n')
        subprocess.run(["openssl", "genrsa", "-out", self.folder / "sa.key", "2048"], check=True, capture_output=True)
        (self.folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet()))
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": {"kubeconfig": self._config},
            "clusterCIDR": PODS,
            "conntrack": {"maxPerCore": 0, "min": 0},
        }
        (self.folder / "proxy.yaml").write_text(yaml.safe_dump(proxy))
        (self.folder / "Corefile").write_text(
            f".:53 {{\n errors\n kubernetes cluster.local {{\n  kubeconfig {self._config} test\n }}\n}}\n"
        )
        (self.folder / "cni").mkdir()
        ranges = {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "hairpinMode": True}
        plugin = {**bridge, "ipam": {**ranges, "dataDir": str(self.folder / "addresses")}}
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]}
        (self.folder / "cni" / "10.conflist").write_text(json.dumps(network))
        (self.folder / "containerd.toml").write_text(
            f'version = 2\nroot = "{STORE}"\nstate = "/run/containerd"\n[grpc]\naddress = "{SOCKET}"\n'
            '[plugins."io.containerd.grpc.v1.cri"]\n'
            f'sandbox_image = "{PAUSE}:{TAG}"\nrestrict_oom_score_adj = true\n'
            '[plugins."io.containerd.grpc.v1.cri".cni]\n'
            f'bin_dir = "/usr/lib/cni"\nconf_dir = "{self.folder}/cni"\n'
            '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
        )

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": ADDRESS,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "oomScoreAdj": 0,
            "clusterDNS": [ADDRESS],
            "clusterDomain": "cluster.local",
            "maxOpenFiles": 20_000,
            "evictionHard": {"memory.available": "100Mi"},
            "volumePluginDir": str(self.folder / "kubelet" / "plugins"),
            "podLogsDir": str(self.folder / "pods"),
        }

    def _part(self, name: str, *arguments: str) -> None:
        self.machine.start_program(name, str(KUBERNETES), name, *arguments)

    def _start_control_plane(self) -> None:
        peers = "http://127.0.0.1:2380"
        self._part(
            *("etcd", "--data-dir=etcd", "--unsafe-no-fsync", f"--listen-client-urls={ETCD}"),
            *(f"--advertise-client-urls={ETCD}", f"--listen-peer-urls={peers}"),
            *(f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}"),
        )
        self._part(
            *("kube-apiserver", f"--etcd-servers={ETCD}", f"--bind-address={ADDRESS}", "--cert-dir=certificates"),
            *(f"--advertise-address={ADDRESS}", f"--service-cluster-ip-range={SERVICES}", "--api-audiences=api"),
            *("--service-account-key-file=sa.key", "--service-account-signing-key-file=sa.key"),
            *("--service-account-issuer=https://kubernetes.default.svc", "--token-auth-file=tokens.csv"),
            *("--authorization-mode=Node,RBAC", "--allow-privileged", "--kubelet-preferred-address-types=InternalIP"),
        )
        until("the API server is ready", lambda: self._answers("get", "--raw=/readyz"), seconds=START_S)
        common = (f"--kubeconfig={self._config}", "--leader-elect=false", "--bind-address=127.0.0.1")
        self._part(
            *("kube-controller-manager", *common, "--cert-dir=certificates-controllers"),
            *("--service-account-private-key-file=sa.key", "--root-ca-file=certificates/apiserver.crt"),
        )
        self._part("kube-scheduler", *common, "--cert-dir=certificates-scheduler")

    def _start_node(self) -> None:
        self.machine.start_program("containerd", "containerd", "--config=containerd.toml")
        until("containerd answers", lambda: self._ctr("version"), seconds=START_S)
        self._part(
            *("kubelet", "--config=kubelet.yaml", f"--kubeconfig={self._config}", "--hostname-override=node"),
            *(f"--root-dir={self.folder}/kubelet", f"--node-ip={ADDRESS}", "--cert-dir=kubelet/pki"),
        )
        self._part("kube-proxy", "--config=proxy.yaml", "--hostname-override=node")
        self._part("coredns", "-conf", "Corefile")
        ready = "jsonpath={.items[0].status.conditions[?(@.type=='Ready')].status}"
        until(
            "the node is ready", lambda: self._answers("get", "nodes", f"--output={ready}") == "True", seconds=START_S
        )

    def _answers(self, *arguments: str) -> str | None:
        try:
            return self.kubectl(*arguments)
        except AssertionError:
            return None

    def _ctr(self, *arguments: str) -> str | None:
        try:
            return self.machine.run("ctr", f"--address={SOCKET}", "--namespace=k8s.io", *arguments)
        except AssertionError:
            return None

    def _load(self, docker: Docker) -> None:
        """Import the images that changed since the last run."""
        stamp = STORE / "images.json"
        known: dict[str, str] = json.loads(stamp.read_text()) if stamp.is_file() else {}
        wanted = {image: docker.identity(image) for image in ALL}
        changed = tuple(image for image in ALL if known.get(image) != wanted[image])
        if changed:
            print(f"[cluster] loading {', '.join(changed)}", flush=True)
            ctr = ("nice", "-n", "19", "ctr", f"--address={SOCKET}", "--namespace=k8s.io", "images", "import", "-")
            docker.save_into(self.machine.command(*ctr), changed)
        stamp.write_text(json.dumps(wanted))

    def wait_for(self, what: str, *arguments: str, seconds: float = 240) -> str:
        """Wait until kubectl prints something, and return it; on a failure, say what the pods say."""
        found = comes_true(lambda: self._answers(*arguments), seconds=seconds)
        assert found, f"{what}: {self.kubectl('get', 'pods')}{self.kubectl('get', 'events')[-3000:]}"
        return found


def running_pods(pods: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the pods that are ready and not being deleted."""
    return [
        pod["metadata"]["name"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        and any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))
    ]
