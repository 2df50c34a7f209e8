"""Probes, metrics and the token: what a supervisor, a scraper and a stranger see."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from decider.background import runner
from decider.background.runner import Schedule
from shared.retry import RetryPolicy
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.local_http import LOCAL
from tests.support.redis_server import RedisServer
from tests.support.stack import ROOT, Stack, free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture
def decider(own_redis_server: RedisServer) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(own_redis_server.url)) as live:
        yield live


def test_readyz_fails_with_the_reason_while_redis_is_away_and_recovers(
    decider: LiveDecider, own_redis_server: RedisServer, tmp_path: Path
) -> None:
    assert decider.client.get("/readyz").status_code == 200
    own_redis_server.kill()
    until("the probe notices", lambda: decider.client.get("/readyz").status_code == 503)
    away = decider.client.get("/readyz")
    assert (away.status_code, away.json()["status"]) == (503, 503)
    assert "does not answer" in away.json()["detail"]
    assert decider.client.get("/livez").status_code == 200
    status = decider.get("/v1/status")
    assert (status["redis"]["reachable"], status["tables"]) == (False, None)
    assert "lakewright_redis_up 0.0" in decider.client.get("/metrics").text
    WrittenTable(tmp_path / "orders")
    refused = decider.post("/v1/tables", {"location": str(tmp_path / "orders")})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    own_redis_server.start()
    until("the decider is ready again", lambda: decider.client.get("/readyz").status_code == 200)
    decider.register(tmp_path / "orders", "orders")
    assert decider.get("/v1/tables/orders")["state"]["version"] == 0


def test_readyz_names_what_makes_redis_unsafe(decider: LiveDecider, own_redis_server: RedisServer) -> None:
    with own_redis_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("appendonly", "no")
    answer = decider.client.get("/readyz")
    assert answer.status_code == 503
    assert "noeviction" in answer.json()["detail"]
    assert "append-only file is off" in answer.json()["detail"]
    assert len(decider.get("/v1/status")["redis"]["issues"]) == 2
    assert "lakewright_redis_durable 0.0" in decider.client.get("/metrics").text


def test_a_nearly_full_redis_is_reported_while_deciders_stay_ready(
    decider: LiveDecider, own_redis_server: RedisServer
) -> None:
    """Otherwise all of them would leave a load balancer at once, and events and the page with them."""
    with own_redis_server.client() as client:
        client.set("ballast", b"0" * 2**26)  # Beside which the memory of connections does not matter.
        client.config_set("maxmemory", 70 * 2**20)
    until("it is noticed", lambda: "lakewright_redis_durable 0.0" in decider.client.get("/metrics").text)
    assert decider.client.get("/readyz").status_code == 200
    (issue,) = decider.get("/v1/status")["redis"]["issues"]
    assert "raise 'maxmemory'" in issue


@pytest.mark.parametrize("is_away", [True, False])
def test_a_probe_without_a_token_learns_neither_redis_address_nor_its_settings(
    own_redis_server: RedisServer, *, is_away: bool
) -> None:
    live = LiveDecider(decider_settings(own_redis_server.url, token="t0ken-for-tests-only")).start()  # noqa: S106
    try:
        if is_away:
            own_redis_server.kill()
        else:
            with own_redis_server.client() as client:
                client.config_set("maxmemory-policy", "allkeys-lru")
        reported = "Redis does not respond" if is_away else "Redis is not durable; see /v1/status"
        until("the probe notices", lambda: live.client.get("/readyz").json().get("detail") == reported)
    finally:
        live.close()


def test_probes_that_come_together_ask_redis_once(decider: LiveDecider, own_redis_server: RedisServer) -> None:
    assert decider.client.get("/readyz").status_code == 200
    with own_redis_server.client() as client:
        before = client.info("commandstats")["cmdstat_info"]["calls"]
        assert all(decider.client.get(path).status_code == 200 for path in ("/readyz", "/metrics") * 100)
        after = client.info("commandstats")["cmdstat_info"]["calls"]
    assert after - before < 100


def test_a_task_that_crashes_again_and_again_is_retried_and_shown_everywhere(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "CRASHED", RetryPolicy(None, 0.01))
    live = LiveDecider(decider_settings(redis_url))

    class Crashing:
        schedule = Schedule(0.01, "sweep_failed")
        is_repaired = False

        async def run_once(self) -> None:
            if not self.is_repaired:
                raise RuntimeError("a bug")

    task = Crashing()
    live.start(tasks={"sweep": task})
    try:
        until("it is not ready", lambda: live.client.get("/readyz").status_code == 503)
        assert "background task sweep fails again and again" in live.client.get("/readyz").json()["detail"]
        assert live.client.get("/livez").status_code == 200, "a restart repairs nothing"
        (shown,) = live.get("/v1/status")["failing_tasks"]
        assert (shown["name"], shown["error"], shown["is_stuck"]) == ("sweep", "RuntimeError: a bug", True)
        assert 'lakewright_background_failing{task="sweep"} 0.0' not in live.client.get("/metrics").text
        task.is_repaired = True
        until("it is ready", lambda: live.client.get("/readyz").status_code == 200)
        assert live.get("/v1/status")["failing_tasks"] == []
        assert 'lakewright_background_failing{task="sweep"} 0.0' in live.client.get("/metrics").text
    finally:
        live.close()


@pytest.mark.e2e
def test_a_decider_whose_task_has_ended_ends_with_1(own_redis_server: RedisServer, tmp_path: Path) -> None:
    """Every supervisor starts it again: standalone, compose, systemd, Kubernetes."""
    stack = Stack(tmp_path, own_redis_server)
    process = stack.start("decider", ["-m", "tests.attacks.handicapped", "lost-task"])
    try:
        until("it has ended", lambda: not process.alive, seconds=60)
    finally:
        stack.close()
    assert process.popen.returncode == 1
    assert '"event": "background_task_ended"' in process.log.read_text()


def test_with_a_token_every_call_needs_it_and_probes_do_not(redis_url: str) -> None:
    token = "t0ken-for-tests-only"  # noqa: S105
    with LiveDecider(decider_settings(redis_url, token=token)) as live:
        with httpx.Client(base_url=live.url, trust_env=False, timeout=scaled(20)) as stranger:
            for method, path in (("GET", "/v1/status"), ("POST", "/v1/events"), ("DELETE", "/v1/tables/x")):
                for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {token}"}):
                    answer = stranger.request(method, path, headers=headers)
                    assert (answer.status_code, answer.json()["field"]) == (401, "Authorization")
                    assert answer.headers["www-authenticate"].startswith("Bearer")
            assert stranger.get("/readyz").status_code == 200
            assert stranger.get("/livez").status_code == 200
        assert live.client.get("/v1/status").status_code == 200


def test_metrics_have_bounded_labels(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "secretname")
    name = decider.register(table.path, "secretname")
    for number in range(20):
        decider.client.get(f"/v1/tables/{name}")
        decider.client.get(f"/nothing/{number}")
        decider.client.request(f"VERB{number}", "/v1/tables")
    decider.answered()
    text = decider.client.get("/metrics").text
    assert "secretname" not in text
    series = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(line.startswith("lakewright_") for line in series)
    assert 'lakewright_http_requests_total{method="GET",route="/v1/tables/{name}",status="200"} 20.0' in series
    assert not any("/nothing/" in line or "VERB" in line for line in series)


@pytest.mark.e2e
def test_the_decider_process_starts_without_redis_serves_when_it_comes_and_ends_with_0(
    own_redis_server: RedisServer, tmp_path: Path
) -> None:
    own_redis_server.kill()
    stack = Stack(tmp_path, own_redis_server)
    process = stack.start("decider", ["-m", "services.decider"])

    def status() -> int:
        assert process.alive, process.log.read_text()[-2000:]
        try:
            return httpx.get(f"{stack.url}/readyz", timeout=scaled(5), **LOCAL).status_code
        except httpx.TransportError:
            return 0

    try:
        until("it answers without Redis", lambda: status() == 503, seconds=60)
        own_redis_server.start()
        until("it is ready", lambda: status() == 200, seconds=60)
        assert process.terminate(20) == 0
    finally:
        stack.close()
    lines = process.log.read_text().splitlines()
    assert all(line.startswith("{") for line in lines), lines
    assert '"event": "decider_stopped"' in lines[-1]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("LAKEWRIGHT_HTTP_ADDRESS", f"0.0.0.0:{free_port()}", "LAKEWRIGHT_TOKEN"),
        ("LAKEWRIGHT_HTTP_ADDRESS", "nonsense", "LAKEWRIGHT_HTTP_ADDRESS"),
        ("LAKEWRIGHT_SWEEP_S", "-1", "LAKEWRIGHT_SWEEP_S"),
        ("LAKEWRIGHT_POLICY", "target-file-size=tiny", "LAKEWRIGHT_POLICY"),
    ],
    ids=["beyond loopback without a token", "no address", "no interval", "no policy"],
)
def test_the_decider_refuses_to_start_with_one_line_that_names_the_variable(
    variable: str, value: str, named: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "services.decider"],
        cwd=ROOT,
        env={"PATH": "", variable: value},
        capture_output=True,
        text=True,
        timeout=scaled(60),
        check=False,
    )
    assert done.returncode == 1
    assert named in done.stderr
    assert done.stderr.count("\n") == 1
