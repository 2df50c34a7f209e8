"""Alerts and dashboard name metrics that exist, each alert has its section, and promtool accepts the rules."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from decider.api.metrics import FUNNEL, Metrics, MetricsSnapshot
from decider.background.tables_file_sync import TablesFileStatus
from decider.store.saved_registry import SaveStatus
from shared.queue.model import JobState
from tests.support.grafana_dashboard import FILE, PANELS, dashboard
from tests.support.time_limits import scaled

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "helm" / "monitoring"
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
RULES: list[dict[str, Any]] = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0][
    "rules"
]
NAME = re.compile(r"lakewright_[a-z_]+")
SUFFIXES = ("_bucket", "_count", "_sum")


def exported() -> dict[str, str]:
    """Return the type of each metric that a decider exports, by its name in queries."""
    metrics = Metrics()
    snapshot = MetricsSnapshot("0.1.0", True, True, 1, 0, {"queued": 1}, 0.0, {}, 0, 0, 0.0, {"get": 1}, {})
    snapshot = replace(
        snapshot, registry=SaveStatus("file:///state", 1, 1, 1, "", ()), tables_file=TablesFileStatus("x")
    )
    lines = metrics.render(snapshot).decode().splitlines()
    types = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE "))
    return {name: kind for name, kind in types.items() if not name.endswith("_created")}


def named(query: str) -> set[str]:
    """Return the metrics of a query."""
    found = set(NAME.findall(query))
    return {next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name) for name in found}


def test_the_page_documents_each_metric_and_no_other() -> None:
    assert set(re.findall(r"^\| `(lakewright_[a-z_]+)` \|", PAGE, re.MULTILINE)) == set(exported())


def test_the_page_lists_each_exported_stage_of_the_funnel_and_no_other() -> None:
    listed = PAGE.partition("Stages of the funnel:")[2].partition("`lakewright status` shows further counters.")[0]
    assert sorted(re.findall(r"`([a-z_]+)`", listed)) == sorted(FUNNEL)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_names_metrics_that_exist_and_has_a_section(rule: dict[str, Any]) -> None:
    assert named(rule["expr"]) <= set(exported())
    assert rule["annotations"]["runbook"] == f"docs/monitoring.md#{rule['alert'].lower()}"
    assert f"\n### {rule['alert']}\n" in PAGE
    assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_each_section_of_an_alert_has_its_rule() -> None:
    assert re.findall(r"^### (\w+)$", PAGE, re.MULTILINE) == [rule["alert"] for rule in RULES]


def test_each_alert_has_a_unit_test_in_which_it_fires() -> None:
    tests = yaml.safe_load((MONITORING / "alerts.test.yaml").read_text(encoding="utf-8"))["tests"]
    firing = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one["exp_alerts"]}
    assert firing == {rule["alert"] for rule in RULES}


def test_states_and_stages_in_queries_exist() -> None:
    from decider.api.metrics import ACTOR_STATES, FUNNEL

    known = {*map(str, JobState), *ACTOR_STATES, *FUNNEL}
    queries = [rule["expr"] for rule in RULES] + [query for panel in PANELS for _, query in panel.queries]
    named = {
        one
        for query in queries
        for text in re.findall(r'(?:state|stage)=~?"([^"]+)"', query)
        for one in text.split("|")
    }
    assert len(named) > 10
    assert named <= known


def test_the_dashboard_is_the_generated_one_and_names_metrics_that_exist() -> None:
    assert FILE.read_text(encoding="utf-8") == dashboard(), "run: python -m tests.support.grafana_dashboard"
    queries = [target["expr"] for panel in json.loads(dashboard())["panels"] for target in panel["targets"]]
    shown = set().union(*(named(query) for query in queries))
    assert shown <= set(exported())
    assert set(exported()) - shown == {"lakewright_build_info", "lakewright_refresh_queue_tables"}


@pytest.mark.parametrize("command", [("check", "alerts.yaml"), ("test", "alerts.test.yaml")], ids=lambda one: one[0])
def test_promtool_accepts_the_rules_and_their_unit_tests(command: tuple[str, str]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: install Debian's prometheus")
    done = subprocess.run(
        [promtool, command[0], "rules", str(MONITORING / command[1])],
        capture_output=True, text=True, timeout=scaled(60), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
