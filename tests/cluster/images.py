"""The images of a node: Lakewright's of now and of an earlier commit, Debian's Redis, MinIO, KEDA and a pause.

No registry of images is needed: the base is made by debootstrap, and a Docker of its own, in a machine of its own,
builds the rest. `LAKEWRIGHT_TEST_PYTHON_IMAGE` names another base that this Docker can pull.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from tests.cluster.machine import Machine
from tests.cluster.programs import DEBIAN, FOLDER, KEDA, ROOT
from tests.support.go_programs import MINIO
from tests.support.time_limits import scaled
from tests.support.waiting import until

BASE = "lakewright-test-python"
DECIDER, ACTOR = "lakewright-decider", "lakewright-actor"
REDIS, MINIO_IMAGE, PAUSE = "lakewright-test-redis", "lakewright-test-minio", "lakewright-test-pause"
KEDA_OPERATOR, KEDA_ADAPTER = "lakewright-test-keda", "lakewright-test-keda-adapter"
TAG, EARLIER_TAG = "test", "earlier"
ALL = (
    *(f"{name}:{TAG}" for name in (DECIDER, ACTOR, REDIS, MINIO_IMAGE, PAUSE, KEDA_OPERATOR, KEDA_ADAPTER)),
    *(f"{name}:{EARLIER_TAG}" for name in (DECIDER, ACTOR)),
)
EARLIER_COMMIT = "8d762695c577fac6ffea81e9885feef9413aad73"
"""The version before an upgrade, until there is a release: it has the libraries of today, so only its code differs."""
EARLIER_DOCKERFILE = """
FROM {image}:{tag}
USER 0
RUN --mount=type=bind,target=/earlier cd /opt/lakewright/lib/python3*/site-packages \\
    && find decider shared services actor -type f -not -path 'decider/page/*' -delete \\
    && cp -r /earlier/decider /earlier/shared /earlier/services /earlier/actor . \\
    && python -m compileall -q decider shared services actor
USER 10001
"""
LOCAL_AUTHORITIES = Path("/usr/local/share/ca-certificates")
"""Authorities of this machine alone, such as that of a proxy: builds inside need them, too."""
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
DEBIAN_RELEASE = "bookworm"
DEBIAN_MIRROR = "http://deb.debian.org/debian"
SMALL = {
    REDIS: "RUN apt-get update && apt-get install --yes --no-install-recommends redis-server\n",
    MINIO_IMAGE: 'COPY minio /usr/local/bin/minio\nENTRYPOINT ["minio"]\n',
    PAUSE: 'ENTRYPOINT ["sleep", "infinity"]\n',
    KEDA_OPERATOR: "COPY keda /keda\nUSER 65532:65532\n",
    KEDA_ADAPTER: "COPY keda-adapter /keda-adapter\nUSER 65532:65532\n",
}
"""What they add to the base."""
PROGRAM_OF: Mapping[str, Callable[[], Path]] = {
    MINIO_IMAGE: MINIO.binary,
    KEDA_OPERATOR: lambda: KEDA / "keda" / "keda",
    KEDA_ADAPTER: lambda: KEDA / "keda-adapter" / "keda-adapter",
}
"""What is copied into them."""
BUILD_S = 1_800
"""Five minutes on two free cores."""


class Docker:
    """A Docker in a machine of its own; its images stay in `.cache/cluster` for the next run."""

    def __init__(self) -> None:
        self.machine = Machine(FOLDER / "docker", has_network=True)
        self._socket = self.machine.folder / "docker.sock"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.machine.start()
        data = self.machine.folder / "data"
        # Builds use the machine's network; nothing else runs here.
        self.machine.start_program(
            "dockerd",
            *("dockerd", f"--data-root={data}", "--exec-root=/run/docker", "--pidfile=/run/docker.pid"),
            *(f"--host=unix://{self._socket}", "--iptables=false", "--ip6tables=false", "--bridge=none"),
            "--storage-driver=overlay2",
        )
        until("Docker answers", lambda: self._call("version", check=False).returncode == 0, seconds=60)

    def close(self) -> None:
        """Stop it."""
        self.machine.close()

    def has(self, image: str) -> bool:
        """Return whether it has an image."""
        return self._call("image", "inspect", image, check=False).returncode == 0

    def identity(self, image: str) -> str:
        """Return the image's id, which changes with its content."""
        return self._call("image", "inspect", "--format", "{{.Id}}", image).stdout.strip()

    def build(self, image: str, folder: Path, *arguments: str) -> None:
        """Build an image; what did not change is not built again."""
        print(f"[cluster] image {image}", flush=True)
        self._call("build", "--quiet", "--network=host", f"--tag={image}", *arguments, str(folder))

    def import_base(self, folder: Path) -> None:
        """Make the base image from a file tree."""
        stated = " ".join(f"{name}={CERTIFICATES}" for name in ("SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"))
        without = ("--exclude=./proc", "--exclude=./sys", "--exclude=./dev")
        with subprocess.Popen(["tar", "-C", folder, *without, "-c", "."], stdout=subprocess.PIPE) as tree:
            self._call("import", f"--change=ENV {stated}", "-", f"{BASE}:{TAG}", stdin=tree.stdout)

    def save_into(self, command: list[str], images: tuple[str, ...]) -> None:
        """Give images to a command that reads them."""
        saving = [*self._client(), "save", *images]
        with subprocess.Popen(saving, stdout=subprocess.PIPE) as archive:
            subprocess.run(command, stdin=archive.stdout, timeout=scaled(BUILD_S), check=True, capture_output=True)
        assert archive.returncode == 0

    def _client(self) -> list[str]:
        return ["nice", "-n", "19", str(DEBIAN / "usr/bin/docker"), f"--host=unix://{self._socket}"]

    def _call(
        self, *arguments: str, check: bool = True, stdin: IO[bytes] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self._client(), *arguments],
            env={**os.environ, "DOCKER_BUILDKIT": "1"},
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=scaled(BUILD_S),
            check=False,
        )
        assert done.returncode == 0 or not check, done.stderr[-3000:]
        return done


@contextmanager
def built_images() -> Iterator[Docker]:
    """Build all images, and serve the Docker that has them."""
    with closing(Docker()) as docker:
        docker.start()
        base = os.environ.get("LAKEWRIGHT_TEST_PYTHON_IMAGE", f"{BASE}:{TAG}")
        if base == f"{BASE}:{TAG}" and not docker.has(base):
            docker.import_base(_base_tree())
        argument = f"--build-arg=PYTHON_IMAGE={base}"
        for image, service in ((DECIDER, "decider"), (ACTOR, "actor")):
            docker.build(f"{image}:{TAG}", ROOT, f"--file={ROOT}/services/{service}/Dockerfile", argument)
            docker.build(f"{image}:{EARLIER_TAG}", _earlier_source(image))
        for image, lines in SMALL.items():
            folder = FOLDER / "images" / image
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "Dockerfile").write_text(f"FROM {base}\n{lines}")
            if image in PROGRAM_OF:
                shutil.copy2(PROGRAM_OF[image](), folder)
            docker.build(f"{image}:{TAG}", folder)
        yield docker


def _earlier_source(image: str) -> Path:
    """Make a folder with the code of the earlier commit, and with the lines that put it into an image of today."""
    folder = FOLDER / "images" / f"{image}-{EARLIER_TAG}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packages = ("decider", "shared", "services", "actor")
    archive = ["git", "-C", str(ROOT), "archive", EARLIER_COMMIT, *packages]
    with subprocess.Popen(archive, stdout=subprocess.PIPE) as source:
        subprocess.run(["tar", "-C", folder, "-x"], stdin=source.stdout, check=True)
    assert source.returncode == 0, f"the checkout has no commit {EARLIER_COMMIT}"
    (folder / "Dockerfile").write_text(EARLIER_DOCKERFILE.format(image=image, tag=TAG))
    return folder


def _base_tree() -> Path:
    """Make a file tree of Debian with Python, and this machine's own authorities."""
    tree = FOLDER / "base"
    if (tree / "made").exists():
        return tree
    print(f"[cluster] Debian {DEBIAN_RELEASE} with Python into {tree}", flush=True)
    shutil.rmtree(tree, ignore_errors=True)
    command = ["nice", "-n", "19", "sh", str(DEBIAN / "usr/sbin/debootstrap"), "--variant=minbase"]
    command += ["--include=ca-certificates,python3,python3-venv,python3-pip", DEBIAN_RELEASE, str(tree), DEBIAN_MIRROR]
    environment = {**os.environ, "DEBOOTSTRAP_DIR": str(DEBIAN / "usr/share/debootstrap")}
    subprocess.run(command, env=environment, timeout=scaled(BUILD_S), check=True, capture_output=True)
    (tree / "usr/bin/python").symlink_to("python3")
    next(tree.glob("usr/lib/python3*/EXTERNALLY-MANAGED")).unlink()
    for authority in LOCAL_AUTHORITIES.glob("*.crt"):
        shutil.copy2(authority, tree / "usr/local/share/ca-certificates")
    subprocess.run(["chroot", str(tree), "update-ca-certificates"], check=True, capture_output=True)
    sources = (
        f"deb {DEBIAN_MIRROR} {DEBIAN_RELEASE} main",
        f"deb {DEBIAN_MIRROR}-security {DEBIAN_RELEASE}-security main",
    )
    (tree / "etc/apt/sources.list").write_text("\n".join(sources) + "\n")
    (tree / "made").touch()
    return tree
