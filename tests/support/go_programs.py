"""Programs that tests need and no package registry has: found, or built once from their Go modules into `.cache/bin`.

`python -m tests.support.go_programs NAME...` builds them, as `make minio`, `make helm`, `make osv-scanner` and
`make iceberg` do. Go's checksum database says that each source is the known one. Tests do not wait for a build: where a
program is missing they are skipped and say so.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.time_limits import scaled

ROOT = Path(__file__).resolve().parents[2]

BUILD_S = 1_500
"""Two minutes on a free machine with a warm module cache; a cold one downloads a few hundred MB before."""


@dataclass(frozen=True, slots=True)
class GoProgram:
    """One program: `name` is its file's name, `variable` names a binary in the environment."""

    name: str
    variable: str
    package: str  # With the version that is built.

    @property
    def built(self) -> Path:
        return ROOT / ".cache" / "bin" / self.name

    def find(self) -> Path | None:
        """Return the binary that the environment names, the built one, or one on the PATH."""
        candidates = (os.environ.get(self.variable), str(self.built), shutil.which(self.name))
        return next((Path(one) for one in candidates if one and Path(one).is_file()), None)

    def binary(self) -> Path:
        """Return the binary, or skip the test with the reason."""
        found = self.find()
        if found is None:
            pytest.skip(
                f"no {self.name}: `make {self.name}` builds it where there is Go, or name it by {self.variable}"
            )
        return found

    def build(self) -> int:
        """Build it unless it is there, and say so; without Go there is nothing to do, and a build that fails is 1."""
        found, go = self.find(), shutil.which("go")
        if found is not None or go is None:
            print(f"[{self.name}] {found or 'not built, because there is no Go; tests that need it are skipped'}")
            return 0
        print(f"[{self.name}] building {self.package} into {self.built}: minutes, the first time", flush=True)
        self.built.parent.mkdir(parents=True, exist_ok=True)
        building = {**os.environ, "GOBIN": str(self.built.parent), "GOFLAGS": "-trimpath"}
        # No one debugs it here: symbols would only take room.
        command = [go, "install", "-ldflags=-s -w", self.package]
        return subprocess.run(command, env=building, timeout=scaled(BUILD_S), check=False).returncode


MINIO = GoProgram("minio", "MINIO", "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c")
HELM = GoProgram("helm", "HELM", "helm.sh/helm/v3/cmd/helm@v3.22.0")
KUBE_ROUTER = GoProgram(
    "kube-router", "KUBE_ROUTER", "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v2.1.0"
)
"""Enforces network policies with iptables, on kernels without the queues that newer programs need."""
OSV_SCANNER = GoProgram("osv-scanner", "OSV_SCANNER", "github.com/google/osv-scanner/v2/cmd/osv-scanner@v2.5.1")
"""The last one that Go 1.26 builds."""
ICEBERG_GO = GoProgram("iceberg", "ICEBERG_GO", "github.com/apache/iceberg-go/cmd/iceberg@v0.7.0")
"""A rival in benchmarks."""

PROGRAMS = (MINIO, HELM, KUBE_ROUTER, OSV_SCANNER, ICEBERG_GO)

if __name__ == "__main__":
    sys.exit(max(program.build() for program in PROGRAMS if program.name in sys.argv[1:]))
