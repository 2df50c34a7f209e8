"""A real MinIO: found, or built once from its Go module into the folder of downloads; it sends bucket notifications.

`python -m tests.support.minio` builds it (`make minio`). Go's checksum database says that the source is the known one.
Tests do not wait for a build: where there is no MinIO they are skipped with that reason.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from tests.support.stack import ROOT, free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

MODULE = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
"""The release that is built; Go's checksum database vouches for it."""

BUILT = ROOT / ".cache" / "bin" / "minio"

BUILD_S = 1_500
"""Two minutes on a free machine with a warm module cache, a quarter of an hour on a busy one."""

KEYS = {"access_key_id": "lakewright", "secret_access_key": "lakewright-secret"}
REGION = "us-east-1"
TARGET = "arn:minio:sqs::LAKEWRIGHT:webhook"


def minio_binary() -> Path:
    """Return the server's binary, or skip the test with the reason."""
    found = find_minio()
    if found is None:
        pytest.skip("no MinIO: `make minio` builds it once where there is Go, or name a binary by MINIO")
    return found


def find_minio() -> Path | None:
    """Return the binary that MINIO names, the built one, or one on the PATH."""
    candidates = (os.environ.get("MINIO"), str(BUILT), shutil.which("minio"))
    return next((Path(one) for one in candidates if one and Path(one).is_file()), None)


def build_minio() -> int:
    """Build it unless it is there, and say so; without Go there is nothing to do, and a build that fails is 1."""
    found, go = find_minio(), shutil.which("go")
    if found is not None or go is None:
        print(f"[minio] {found or 'not built, because there is no Go; tests that need it are skipped'}")
        return 0
    print(f"[minio] building {MODULE} into {BUILT}: two minutes on a free machine", flush=True)
    BUILT.parent.mkdir(parents=True, exist_ok=True)
    building = {**os.environ, "GOBIN": str(BUILT.parent), "GOFLAGS": "-trimpath"}
    # Nobody debugs it here: symbols would only take room.
    command = [go, "install", "-ldflags=-s -w", MODULE]
    return subprocess.run(command, env=building, timeout=scaled(BUILD_S), check=False).returncode


@dataclass(slots=True)
class Minio:
    """One server on the loopback address; `webhook` and `token` are where and how notifications are posted."""

    binary: Path
    folder: Path
    webhook: str = ""
    token: str = ""
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None
    client: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def options(self, **changes: str) -> dict[str, str]:
        """Return what a store has to be told to find it; these are deltalake's names, too."""
        return {"endpoint": self.url, "region": REGION, "allow_http": "true", **KEYS, **changes}

    def start(self) -> "Minio":
        """Start, and return once it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "MINIO_ROOT_USER": KEYS["access_key_id"],
            "MINIO_ROOT_PASSWORD": KEYS["secret_access_key"],
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "HOME": str(self.folder),
        }
        if self.webhook:
            settings |= {
                "MINIO_NOTIFY_WEBHOOK_ENABLE_LAKEWRIGHT": "on",
                "MINIO_NOTIFY_WEBHOOK_ENDPOINT_LAKEWRIGHT": self.webhook,
                "MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_LAKEWRIGHT": self.token,
                "MINIO_NOTIFY_WEBHOOK_QUEUE_DIR_LAKEWRIGHT": str(self.folder / "events"),
            }
        command = [
            str(self.binary),
            "server",
            str(self.folder / "data"),
            "--address",
            f"127.0.0.1:{self.port}",
            "--quiet",
        ]
        with (self.folder / "minio.log").open("wb") as output:
            self._process = subprocess.Popen(
                command, env={"PATH": os.environ["PATH"], **settings}, stdout=output, stderr=subprocess.STDOUT
            )
        until("MinIO serves", self._serves, seconds=60)
        self.client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEYS["access_key_id"],
            aws_secret_access_key=KEYS["secret_access_key"],
        )
        return self

    @property
    def log(self) -> str:
        return (self.folder / "minio.log").read_text(errors="replace")

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log
        try:
            return httpx.get(f"{self.url}/minio/health/cluster", timeout=scaled(2), trust_env=False).is_success
        except httpx.TransportError:
            return False

    def make_bucket(self, name: str, *, notifies: bool = False) -> None:
        """Make a bucket; one that notifies posts every new object of a log to the webhook."""
        self.client.create_bucket(Bucket=name)
        if notifies:
            rules = {"Key": {"FilterRules": [{"Name": "suffix", "Value": ".json"}]}}
            target = {"QueueArn": TARGET, "Events": ["s3:ObjectCreated:*"], "Filter": rules}
            self.client.put_bucket_notification_configuration(
                Bucket=name, NotificationConfiguration={"QueueConfigurations": [target]}
            )

    def close(self) -> None:
        """End the server."""
        if self.client is not None:
            self.client.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait(scaled(30))


if __name__ == "__main__":
    sys.exit(build_minio())
