"""A real MinIO: an S3 server that sends bucket notifications (see `go_programs` for where it comes from)."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import httpx

from tests.support.local_http import LOCAL
from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

KEYS = {"access_key_id": "lakewright", "secret_access_key": "lakewright-secret"}
REGION = "us-east-1"
TARGET = "arn:minio:sqs::LAKEWRIGHT:webhook"


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
        """Return what a store has to be asked to find it; these are deltalake's names, too."""
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
            return httpx.get(f"{self.url}/minio/health/cluster", timeout=scaled(2), **LOCAL).is_success
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
