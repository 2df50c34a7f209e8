"""One node: containerd, a kubelet and kube-proxy in a machine."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.images import ALL, PAUSE, TAG, Docker
from tests.cluster.machine import Machine
from tests.cluster.programs import KUBERNETES
from tests.support.waiting import until

PODS = "10.85.0.0/16"
"""Addresses of all pods; each node has 256 of them."""
SOCKET = "/run/containerd.sock"
START_S = 120


class Node:
    """A node named `name`, the `number`th, which keeps its images in `store`."""

    def __init__(self, machine: Machine, *, name: str, number: int, store: Path) -> None:
        self.machine = machine
        self.name = name
        self.address = f"192.0.2.{number + 1}"
        """In a network of documentation, which leads nowhere."""
        self.pods = f"10.85.{number}.0/24"
        self.store = store

    def connect(self, card: str) -> None:
        """Give the node its address, on this network card."""
        self.machine.run("ip", "addr", "add", f"{self.address}/24", "dev", card)
        self.machine.run("ip", "link", "set", card, "up")
        self.machine.run("sysctl", "-w", "net.ipv4.ip_forward=1")

    def start(self, *, config: str, dns: str) -> None:
        """Start its programs, which call the API server of `config`."""
        self._write_files(config, dns)
        self.machine.start_program("containerd", "containerd", "--config=containerd.toml")
        until("containerd answers", lambda: self._answers("version"), seconds=START_S)
        root = f"--root-dir={self.machine.folder}/kubelet"
        self._part(
            *("kubelet", "--config=kubelet.yaml", f"--kubeconfig={config}", f"--hostname-override={self.name}"),
            *(root, f"--node-ip={self.address}", "--cert-dir=kubelet/pki"),
        )
        self._part("kube-proxy", "--config=proxy.yaml", f"--hostname-override={self.name}")

    def load(self, docker: Docker) -> None:
        """Import the images that changed since the last run."""
        stamp = self.store / "images.json"
        known: dict[str, str] = json.loads(stamp.read_text()) if stamp.is_file() else {}
        wanted = {image: docker.identity(image) for image in ALL}
        changed = tuple(image for image in ALL if known.get(image) != wanted[image])
        if changed:
            print(f"[cluster] loading {', '.join(changed)}", flush=True)
            docker.save_into(self.machine.command("nice", "-n", "19", *self._ctr("images", "import", "-")), changed)
        stamp.write_text(json.dumps(wanted))

    def copy_images_of(self, other: "Node") -> None:
        """Take the images of another node, before this one is started; only the names of files are copied.

        Containers have read-only file systems, so nothing changes while containerd is stopped.
        """
        pids = other.machine.run("pgrep", "--exact", "containerd").split()
        other.machine.run("kill", "-STOP", *pids)
        try:
            other.machine.run("cp", "--archive", "--link", str(other.store), str(self.store))
            # Files that containerd changes in place.
            for database in other.store.rglob("*.db"):
                place = self.store / database.relative_to(other.store)
                other.machine.run("cp", "--archive", "--remove-destination", str(database), str(place))
        finally:
            other.machine.run("kill", "-CONT", *pids)

    def _part(self, name: str, *arguments: str) -> None:
        self.machine.start_program(name, str(KUBERNETES), name, *arguments)

    def _ctr(self, *arguments: str) -> tuple[str, ...]:
        return ("ctr", f"--address={SOCKET}", "--namespace=k8s.io", *arguments)

    def _answers(self, *arguments: str) -> str | None:
        try:
            return self.machine.run(*self._ctr(*arguments))
        except AssertionError:
            return None

    def _write_files(self, config: str, dns: str) -> None:
        folder = self.machine.folder
        (folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet(dns)))
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": {"kubeconfig": config},
            "clusterCIDR": PODS,
            "conntrack": {"maxPerCore": 0, "min": 0},
        }
        (folder / "proxy.yaml").write_text(yaml.safe_dump(proxy))
        (folder / "cni").mkdir()
        ranges = {"type": "host-local", "ranges": [[{"subnet": self.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
        addresses = {**ranges, "dataDir": str(folder / "addresses")}
        plugin = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]}
        (folder / "cni" / "10.conflist").write_text(json.dumps(network))
        (folder / "containerd.toml").write_text(
            f'version = 2\nroot = "{self.store}"\nstate = "/run/containerd"\n[grpc]\naddress = "{SOCKET}"\n'
            '[plugins."io.containerd.grpc.v1.cri"]\n'
            f'sandbox_image = "{PAUSE}:{TAG}"\nrestrict_oom_score_adj = true\n'
            '[plugins."io.containerd.grpc.v1.cri".cni]\n'
            f'bin_dir = "/usr/lib/cni"\nconf_dir = "{folder}/cni"\n'
            '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
        )

    def _kubelet(self, dns: str) -> dict[str, Any]:
        folder = self.machine.folder
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "oomScoreAdj": 0,
            "clusterDNS": [dns],
            "clusterDomain": "cluster.local",
            "maxOpenFiles": 20_000,
            "evictionHard": {"memory.available": "100Mi"},
            # On a full disk it would remove images, and there is no registry to get them from again.
            "imageGCHighThresholdPercent": 100,
            "volumePluginDir": str(folder / "kubelet" / "plugins"),
            "podLogsDir": str(folder / "pods"),
        }
