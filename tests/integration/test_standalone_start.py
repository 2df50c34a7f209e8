"""The start of a standalone says what is true: whose port it is, what is waited for, and who can work."""

import json
import os
import pty
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.fake_programs import fake_java
from tests.support.local_http import LOCAL
from tests.support.stack import ROOT, free_port, lakewright
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.e2e


def environment(data: Path, address: str, **more: str) -> dict[str, str]:
    names = {"LAKEWRIGHT_DATA_DIR": str(data), "LAKEWRIGHT_HTTP_ADDRESS": address}
    return {name: value for name, value in os.environ.items() if name != "LAKEWRIGHT_REDIS_URL"} | names | more


@contextmanager
def standalone(
    given: dict[str, str], output: Path, *arguments: str, umask: int = -1
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "services.standalone", *arguments]
    with output.open("wb") as stated:
        process = subprocess.Popen(command, cwd=ROOT, env=given, stdout=stated, stderr=stated, umask=umask)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(scaled(60))


def test_a_port_that_another_program_holds_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-m", "services.standalone", "--actors", "0"],
            cwd=ROOT, env=environment(tmp_path / "data", address), capture_output=True, text=True, check=False,
            timeout=scaled(60),
        )  # fmt: skip
    assert done.returncode == 1
    assert f"lakewright standalone: {address} is in use" in done.stderr
    assert "--http-address" in done.stderr
    assert "child_started" not in done.stderr


@pytest.mark.long("contracts")
def test_it_is_not_ready_before_its_actor_takes_jobs(tmp_path: Path) -> None:
    """With a Java that never starts Spark, so that the actor is never ready."""
    java = fake_java(tmp_path / "java", "17.0.1", then='case "$*" in *XshowSettings*) ;; *) exec sleep 600;; esac')
    given = environment(tmp_path / "data", f"127.0.0.1:{free_port()}", LAKEWRIGHT_JAVA=str(java))
    ready = tmp_path / "data" / "actor.ready"
    ready.parent.mkdir()
    ready.touch()  # As a killed actor leaves it behind.
    output = tmp_path / "said"

    def waits_for_actor() -> bool:
        waits = [line for line in output.read_text().splitlines() if "child_not_ready" in line]
        return any('"child": "actor"' in line for line in waits)

    with standalone(given, output) as process:
        until("the actor is waited for", waits_for_actor, seconds=120)
        assert process.poll() is None
    assert "standalone_ready" not in output.read_text()
    assert process.returncode == 0


def test_in_the_background_of_a_terminal_its_log_is_a_file(tmp_path: Path) -> None:
    """The prompt belongs to the shell: one line says where the API and the logs are."""
    leader, follower = pty.openpty()
    given = environment(tmp_path / "data", f"127.0.0.1:{free_port()}")
    # A session of its own has no foreground group on this terminal, as a job behind `&` has not.
    process = subprocess.Popen(
        [sys.executable, "-m", "services.standalone", "--actors", "0"],
        cwd=ROOT, env=given, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, start_new_session=True,
    )  # fmt: skip
    log = tmp_path / "data" / "logs" / "standalone.log"
    try:
        until("it is ready", lambda: log.exists() and "standalone_ready" in log.read_text(), seconds=120)
    finally:
        process.terminate()
        process.wait(scaled(60))
    os.close(follower)
    shown = os.read(leader, 65_536).decode()
    os.close(leader)
    assert "child_started" not in shown
    assert str(log) in shown
    assert len(shown.splitlines()) == 2, shown
    assert "child_started" in log.read_text()


def test_a_standalone_is_found_by_its_directory_and_keeps_everything_to_its_user(tmp_path: Path) -> None:
    address, data, said = f"127.0.0.1:{free_port()}", tmp_path / "data", tmp_path / "said"
    given = environment(data, address)
    with standalone(given, said, "--actors", "0", umask=0o022) as process:

        def is_ready() -> bool:
            assert process.poll() is None, said.read_text()
            try:
                return httpx.get(f"http://{address}/readyz", timeout=scaled(20), **LOCAL).status_code == 200
            except httpx.TransportError:
                return False

        until("the standalone is ready", is_ready, seconds=120)
        found = lakewright("--json", "doctor", env={**given, "LAKEWRIGHT_URL": f"http://{address}"})
        status = {one["check"]: one["status"] for one in json.loads(found.stdout)["findings"]}
        assert (status["redis"], status["redis durability"], status["decider"]) == ("ok", "ok", "ok"), status
        assert status["actors"] == "warn", "nothing rewrites a table yet"
        open_to_others = [
            str(path)
            for path in [data, *data.rglob("*")]
            if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077
        ]
        assert open_to_others == []
    assert process.returncode == 0, said.read_text()
