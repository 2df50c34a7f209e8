"""Programs of a node: Debian's packages, unpacked and not installed; Kubernetes and KEDA, built once.

`python -m tests.cluster.programs` fetches and builds them into `.cache/cluster`. APT checks the signatures of the
packages, Go's checksum database the sources.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.time_limits import scaled

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "cluster"
DEBIAN = FOLDER / "debian"
"""Root of the unpacked packages; `usr` lies over the machine's own."""
KUBERNETES = FOLDER / "kubernetes"
"""One program with all parts; its first argument names the part."""
SOURCE = Path(__file__).parent / "kubernetes"

PACKAGES = (
    *("containerd", "runc", "containernetworking-plugins", "docker.io", "debootstrap"),
    *("iptables", "nftables", "conntrack", "ipset"),
    # What these load, for machines that have not got it.
    *("libnftnl11", "libnftables1", "libnetfilter-conntrack3", "libnfnetlink0", "libxtables12", "libip4tc2"),
    *("libip6tc2", "libmnl0", "libjansson4", "libipset13"),
)
TABLES = tuple(f"{family}{action}" for family in ("iptables", "ip6tables") for action in ("", "-save", "-restore"))
"""Names that Debian's alternatives would link."""

KEDA = FOLDER / "keda"
"""For each program of KEDA a folder with it."""
KEDA_MODULE = "github.com/kedacore/keda/v2@v2.21.0"
KEDA_PROGRAMS = {"keda": "./cmd/operator", "keda-adapter": "./cmd/adapter"}

BUILD_S = 3_600
"""Six minutes on two free cores, most of an hour beside other work; the sources are some 400 MB."""
FETCH_S = 600


def missing() -> str | None:
    """Return what this machine lacks to run a node, or None."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a node needs Linux and root"
    if not Path("/sys/fs/cgroup/memory").is_dir():
        return "a node was tried with version 1 of control groups only"
    absent = [name for name in ("apt-get", "dpkg", "go", "unshare", "nsenter", "ip") if shutil.which(name) is None]
    return f"no {', '.join(absent)}" if absent else None


def unpack_packages() -> None:
    """Fetch and unpack Debian's packages, unless that was done."""
    stamp = DEBIAN / "packages"
    wanted = "\n".join(PACKAGES)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"[cluster] {len(PACKAGES)} packages of Debian into {DEBIAN}", flush=True)
    fetched = FOLDER / "packages"
    shutil.rmtree(fetched, ignore_errors=True)
    fetched.mkdir(parents=True)
    fetched.chmod(0o777)  # APT downloads as a user of its own.
    subprocess.run(["apt-get", "download", "-qq", *PACKAGES], cwd=fetched, timeout=scaled(FETCH_S), check=True)
    for package in fetched.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, DEBIAN], check=True)
    for name in TABLES:
        link = DEBIAN / "usr/sbin" / name
        link.unlink(missing_ok=True)
        link.symlink_to("xtables-nft-multi")
    stamp.write_text(wanted)
    shutil.rmtree(fetched)


def build_kubernetes() -> None:
    """Build Kubernetes, etcd and CoreDNS, unless this was done from the same sources."""
    stamp = KUBERNETES.with_suffix(".source")
    sources = "".join(file.read_text() for file in sorted(SOURCE.iterdir()))
    if KUBERNETES.is_file() and stamp.is_file() and stamp.read_text() == sources:
        return
    version = next(line.split("v")[-1] for line in sources.splitlines() if "k8s.io/kubernetes v" in line)
    major, minor, _ = version.split(".")
    print(f"[cluster] building Kubernetes {version} into {KUBERNETES}: minutes, the first time", flush=True)
    work = FOLDER / "build"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(SOURCE, work)  # The build completes go.mod.
    name = "k8s.io/component-base/version.git"
    flags = f"-s -w -X {name}Version=v{version} -X {name}Major={major} -X {name}Minor={minor}"
    command = ["go", "build", "-mod=mod", "-ldflags", flags, "-o", str(KUBERNETES), "."]
    building = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(command, cwd=work, env=building, timeout=scaled(BUILD_S), check=True)
    stamp.write_text(sources)
    shutil.rmtree(work)


def build_keda() -> None:
    """Build KEDA's operator and its metrics server, unless this was done from the same version."""
    stamp = KEDA / "version"
    if stamp.is_file() and stamp.read_text() == KEDA_MODULE:
        return
    print(f"[cluster] building {KEDA_MODULE} into {KEDA}: minutes, the first time", flush=True)
    source = keda_source()
    for name, package in KEDA_PROGRAMS.items():
        # `go install` takes no module that replaces another one.
        command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(KEDA / name / name), package]
        building = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run(command, cwd=source, env=building, timeout=scaled(BUILD_S), check=True)
    stamp.write_text(KEDA_MODULE)


def keda_source() -> Path:
    """Return the folder with KEDA's sources and manifests, which Go fetches."""
    command = ["go", "mod", "download", "-json", KEDA_MODULE]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=scaled(FETCH_S), check=True)
    return Path(json.loads(done.stdout)["Dir"])


if __name__ == "__main__":
    if reason := missing():
        sys.exit(f"[cluster] {reason}")
    unpack_packages()
    build_kubernetes()
    build_keda()
