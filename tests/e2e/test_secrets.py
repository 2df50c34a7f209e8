"""No process of a standalone shows a secret to the other users of the machine, and no log has one."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from services.bootstrap import prepare
from tests.support.local_http import LOCAL
from tests.support.stack import QUICK_JAVA, free_port
from tests.support.time_limits import scaled

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.s3, pytest.mark.timeout(600), pytest.mark.long("s3")]

ROOT = Path(__file__).resolve().parents[2]
S3 = {"access_key_id": "S3-KEY-ID-x1", "secret_access_key": "s3-secret-x2", "session_token": "s3-session-x3"}
CATALOG = {
    "type": "rest",
    "uri": "http://127.0.0.1:9",
    "token": "catalog-token-x4",
    "s3.secret-access-key": "s3-own-x5",
}
ENVIRONMENT = {
    "LAKEWRIGHT_ALLOW_S3": "true",
    "LAKEWRIGHT_STORE_OPTIONS": json.dumps({"s3://lake": {**S3, "endpoint": "http://127.0.0.1:9"}}),
    "LAKEWRIGHT_CATALOGS": json.dumps({"lake": CATALOG}),
    "LAKEWRIGHT_SPARK_OPTIONS": json.dumps({"spark.hadoop.fs.azure.account.key": "azure-key-x6"}),
    "LAKEWRIGHT_TOKEN": "admin-token-x7-0123456789",
    "LAKEWRIGHT_HMAC_SECRETS": "whsec_c2lnbmluZy1zZWNyZXQteDgtMDEyMzQ1Njc4OQ==",
}
SECRETS = (
    *S3.values(),
    *(CATALOG[name] for name in ("token", "s3.secret-access-key")),
    "azure-key-x6",
    *(ENVIRONMENT[name] for name in ("LAKEWRIGHT_TOKEN", "LAKEWRIGHT_HMAC_SECRETS")),
)


def words_of(process: psutil.Process) -> set[str]:
    """Return the arguments of a process and of all that it started."""
    found: set[str] = set()
    for one in [process, *process.children(recursive=True)]:
        try:
            found.update(one.cmdline())
        except psutil.Error:
            continue
    return found


def test_no_argument_and_no_log_of_a_standalone_has_a_secret(tmp_path: Path) -> None:
    address, data = f"127.0.0.1:{free_port()}", tmp_path / "data"
    environment = {
        **os.environ,
        **QUICK_JAVA,
        **ENVIRONMENT,
        "LAKEWRIGHT_DATA_DIR": str(data),
        "LAKEWRIGHT_HTTP_ADDRESS": address,
    }
    environment.pop("LAKEWRIGHT_REDIS_URL", None)
    prepare(environment)
    printed = tmp_path / "printed"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.standalone"], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    words: set[str] = set()
    try:
        deadline = time.monotonic() + scaled(240)
        while not is_working(address) and time.monotonic() < deadline and process.poll() is None:
            words |= words_of(psutil.Process(process.pid))
            time.sleep(0.1)
        assert is_working(address), printed.read_text()
        words |= words_of(psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(scaled(60))
    assert any("org.apache.spark" in word for word in words), "the JVM was seen"
    assert any("valkey-server" in word or "redis-server" in word for word in words)
    assert [secret for secret in SECRETS if any(secret in word for word in words)] == []
    logs = [printed, *(data / "logs").iterdir(), *data.rglob("jvm.log")]
    texts = {str(file): file.read_text(errors="replace") for file in logs}
    assert [(name, secret) for name, text in texts.items() for secret in SECRETS if secret in text] == []
    left = [file for file in data.rglob("*") if file.is_file() and file.stat().st_size < 10_000_000]
    assert [str(one) for one in left if any(secret.encode() in one.read_bytes() for secret in SECRETS)] == []


def is_working(address: str) -> bool:
    """Return whether an actor takes jobs."""
    try:
        found = httpx.get(
            f"http://{address}/v1/actors",
            headers={"Authorization": f"Bearer {ENVIRONMENT['LAKEWRIGHT_TOKEN']}"},
            timeout=scaled(20),
            **LOCAL,
        )
    except httpx.TransportError:
        return False
    return found.status_code == httpx.codes.OK and bool(found.json().get("actors"))
