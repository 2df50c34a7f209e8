"""`lakewright try s3`: what it prints is all that a decider needs, and it notifies the decider of commits by itself."""

import json
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from services.settings import store_options
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.stack import ROOT, free_port, lakewright
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.e2e]


def exports(text: str) -> dict[str, str]:
    words = [word for line in text.splitlines() if line.startswith("export ") for word in shlex.split(line)[1:]]
    return dict(word.split("=", 1) for word in words)


def test_a_bucket_to_try_with_notifies_the_decider_of_commits(redis_url: str, tmp_path: Path) -> None:
    port, output = free_port(), tmp_path / "output"
    command = [sys.executable, "-m", "services.cli", "--url", "http://127.0.0.1:1", "try", "s3", "--port", str(port)]
    with output.open("w") as printed:
        server = subprocess.Popen(command, cwd=ROOT, stdout=printed, stderr=printed)
    try:
        until("it runs", lambda: "LAKEWRIGHT_ROOTS" in output.read_text(), seconds=60)
    finally:
        server.terminate()
        server.wait(scaled(30))
    given = exports(output.read_text())
    stores, roots = store_options(given), (given["LAKEWRIGHT_ROOTS"],)
    with LiveDecider(decider_settings(redis_url, roots=roots, store_options=stores)) as decider:
        command[4] = decider.url
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                assert "lake" in server.stdout.readline()
                options = {name: str(value) for name, value in json.loads(given["LAKEWRIGHT_STORE_OPTIONS"]).items()}
                rows = pa.table({"id": [1, 2, 3]})
                deltalake.write_deltalake("s3://lake/sales/orders", rows, storage_options=options)
                until("the decider knows the table", lambda: decider.get("/v1/tables")["tables"], seconds=60)
                (found,) = decider.get("/v1/tables")["tables"]
                assert found["location"] == "s3://lake/sales/orders"
            finally:
                server.terminate()


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = lakewright("try", "s3", "--port", str(port))
    assert (done.returncode, f"port {port} cannot be used" in done.stderr) == (1, True), done.stderr
