"""A real Prometheus scrapes a decider: each query of the dashboard returns data, and each rule can be evaluated."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until
from tests.tools.grafana_dashboard import FILE

pytestmark = pytest.mark.redis

RULES = Path(__file__).resolve().parents[2] / "helm" / "monitoring" / "alerts.yaml"
QUERIES = sorted(
    target["expr"].replace("$__rate_interval", "30s")
    for panel in json.loads(FILE.read_text(encoding="utf-8"))["panels"]
    for target in panel["targets"]
)


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One server; `client` calls its API."""

    client: httpx.Client

    def get(self, path: str, **params: str) -> Any:
        answer = self.client.get(f"/api/v1/{path}", params=params)
        answer.raise_for_status()
        return answer.json()["data"]

    def values(self, query: str) -> list[float]:
        return [float(one["value"][1]) for one in self.get("query", query=query)["result"]]


@pytest.fixture(scope="module")
def decider(redis_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveDecider]:
    """A decider that follows a table."""
    with redis_server.client() as client:
        client.flushall()
    live = LiveDecider(decider_settings(redis_server.url)).start()
    table = WrittenTable(tmp_path_factory.mktemp("lake") / "orders", days=("2026-01-01",))
    live.register(table.path, "sales.orders")
    table.append(8)
    live.post("/v1/events", {"table": "sales.orders", "version": table.version})
    live.drain()
    yield live
    live.close()


@pytest.fixture(scope="module")
def prometheus(decider: LiveDecider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that has scraped the decider a few times."""
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("no prometheus: install Debian's prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    target = decider.url.removeprefix("http://")
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "lakewright", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [binary, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=scaled(10), trust_env=False) as client:
            made = Prometheus(client)
            until("Prometheus has four scrapes", lambda: _scrapes(made) >= 4, seconds=60)
            yield made
    finally:
        process.terminate()
        process.wait(scaled(30))
        print((folder / "log").read_text()[-2000:])


def _scrapes(prometheus: Prometheus) -> float:
    try:
        return sum(prometheus.values('count_over_time(up{job="lakewright"}[1m])'))
    except httpx.HTTPError:
        return 0.0


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_of_the_dashboard_returns_data(prometheus: Prometheus, query: str) -> None:
    assert prometheus.values(query) != []


def test_the_scraped_values_are_those_of_the_api(prometheus: Prometheus, decider: LiveDecider) -> None:
    depth = decider.get("/v1/queue")["depth"]["queued"]
    assert depth > 0
    assert prometheus.values('max(lakewright_jobs{state="queued"})') == [depth]
    assert prometheus.values("max(lakewright_tables)") == [1]
    assert prometheus.values('up{job="lakewright"}') == [1]


def test_each_rule_is_evaluated_without_an_error(prometheus: Prometheus) -> None:
    expected = [rule["alert"] for rule in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]]

    def healthy() -> bool:
        (group,) = prometheus.get("rules")["groups"]
        return [rule["name"] for rule in group["rules"] if rule["health"] == "ok"] == expected

    until("all rules were evaluated", healthy, seconds=30)
    pending = {one["labels"]["alertname"] for one in prometheus.get("alerts")["alerts"]}
    assert "LakewrightNoActor" in pending, "jobs are queued, and there is no actor"
    assert not pending & {"LakewrightDeciderDown", "LakewrightRedisDown"}
