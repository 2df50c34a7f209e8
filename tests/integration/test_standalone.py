"""The standalone as a user starts it, without an actor: it serves, the doctor finds it, no other can enter."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]


def test_a_standalone_is_found_by_its_directory_and_keeps_everything_to_its_user(tmp_path: Path) -> None:
    address, data = f"127.0.0.1:{free_port()}", tmp_path / "data"
    environment = {**os.environ, "LAKEWRIGHT_DATA_DIR": str(data), "LAKEWRIGHT_HTTP_ADDRESS": address}
    environment.pop("LAKEWRIGHT_REDIS_URL", None)
    with (tmp_path / "said").open("wb") as stated:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.standalone", "--actors", "0"],
            cwd=ROOT, env=environment, stdout=stated, stderr=stated, umask=0o022,
        )  # fmt: skip
    try:

        def is_ready() -> bool:
            assert process.poll() is None, (tmp_path / "said").read_text()
            try:
                return httpx.get(f"http://{address}/readyz").status_code == 200
            except httpx.TransportError:
                return False

        until("the standalone is ready", is_ready, seconds=120)
        found = subprocess.run(
            [sys.executable, "-m", "services.cli", "--json", "doctor"],
            cwd=ROOT, env={**environment, "LAKEWRIGHT_URL": f"http://{address}"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        status = {one["check"]: one["status"] for one in json.loads(found.stdout)["findings"]}
        assert (status["redis"], status["redis durability"], status["decider"]) == ("ok", "ok", "ok"), status
        assert status["actors"] == "warn", "nothing rewrites a table yet"
        open_to_others = [
            str(path)
            for path in [data, *data.rglob("*")]
            if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077
        ]
        assert open_to_others == []
    finally:
        process.terminate()
        process.wait(scaled(60))
    assert process.returncode == 0, (tmp_path / "said").read_text()
