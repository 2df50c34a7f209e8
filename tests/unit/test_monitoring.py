"""Alerts and dashboard name metrics that exist, each alert has its section, and promtool accepts the rules."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from actor.report import RunReport
from actor.table_job_run import TableJobReport
from decider.api.metrics import ACTOR_STATES, STAGES, Metrics, MetricsSnapshot
from decider.decide.actions import ACTIONS
from services.demo.report import FUNNEL as DEMO_FUNNEL
from shared.jobs.payload import JobPayload, PredictedCost
from shared.policy.policy import Policy
from shared.queue.model import JobState
from shared.run_counters import RunCounter
from tests.support.time_limits import scaled
from tests.tools.grafana_dashboard import FILE, PANELS, dashboard
from tests.tools.metrics_page import BEGIN, END, exported, rendered, stages

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "helm" / "monitoring" / "alerts.yaml"
UNIT_TESTS = ROOT / "tests" / "data" / "alerts.test.yaml"
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
RULES: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
NAME = re.compile(r"lakewright_[a-z_]+")
SUFFIXES = ("_bucket", "_count", "_sum")


def named(query: str) -> set[str]:
    """Return the metrics of a query."""
    found = set(NAME.findall(query))
    return {next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name) for name in found}


def test_the_page_shows_the_metrics_as_a_decider_exports_them() -> None:
    shown = PAGE[PAGE.index(BEGIN) : PAGE.index(END) + len(END)]
    assert shown == rendered(), "run python -m tests.tools.metrics_page"


def test_each_stage_of_the_funnel_is_listed_once() -> None:
    assert sorted(stage for listed in stages().values() for stage in listed) == sorted(STAGES)


def test_every_counter_is_exported_and_every_stage_before_it_is_first_counted() -> None:
    """An increase from nothing to one is seen only by a series that was there at nothing."""
    snapshot = MetricsSnapshot("0.1.0", True, True, 1, 0, {}, 0, 0, 0.0, {}, {"vacuum_files_deleted": 7})
    lines = Metrics().render(snapshot).decode().splitlines()
    found = dict(re.findall(r'lakewright_funnel_total\{stage="([a-z_]+)"\} (\S+)', "\n".join(lines)))
    assert found == {**dict.fromkeys(STAGES, "0.0"), "vacuum_files_deleted": "7.0"}
    assert {reason.stage for action in (*ACTIONS, *ACTIONS.table_actions) for reason in action.reasons} - {""} <= set(
        found
    )


def test_a_run_counts_by_the_names_that_are_exported() -> None:
    payload = JobPayload("memory://t", "t", Policy(), "eligible", PredictedCost(2, 1, 200, 1, 200))
    report = RunReport(payload, versions=[1], recovered_version=2)
    report.counts.update(RunCounter)
    table_report = TableJobReport("vacuum", payload)
    assert {*report.counters(), *table_report.counters()} <= set(STAGES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_names_metrics_that_exist_and_has_a_section(rule: dict[str, Any]) -> None:
    assert named(rule["expr"]) <= set(exported())
    assert rule["annotations"]["runbook"] == f"docs/monitoring.md#{rule['alert'].lower()}"
    assert f"\n### {rule['alert']}\n" in PAGE
    assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_each_section_of_an_alert_has_its_rule() -> None:
    assert re.findall(r"^### (\w+)$", PAGE, re.MULTILINE) == [rule["alert"] for rule in RULES]


def test_each_alert_has_a_unit_test_in_which_it_fires() -> None:
    tests = yaml.safe_load(UNIT_TESTS.read_text(encoding="utf-8"))["tests"]
    firing = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one["exp_alerts"]}
    assert firing == {rule["alert"] for rule in RULES}


def test_states_and_stages_in_queries_exist() -> None:
    known = {*map(str, JobState), *ACTOR_STATES, *STAGES}
    queries = [rule["expr"] for rule in RULES] + [query for panel in PANELS for _, query in panel.queries]
    named = {
        one
        for query in queries
        for text in re.findall(r'(?:state|stage)=~?"([^"]+)"', query)
        for one in text.split("|")
    }
    assert len(named) > 10
    assert named <= known
    assert {stage for stage, _ in DEMO_FUNNEL.values()} <= set(STAGES)


def test_the_dashboard_is_the_generated_one_and_names_metrics_that_exist() -> None:
    assert FILE.read_text(encoding="utf-8") == dashboard(), "run: python -m tests.tools.grafana_dashboard"
    queries = [target["expr"] for panel in json.loads(dashboard())["panels"] for target in panel["targets"]]
    shown = set().union(*(named(query) for query in queries))
    assert shown <= set(exported())
    assert set(exported()) - shown == {
        "lakewright_build_info",
        "lakewright_refresh_queue_tables",
        "lakewright_background_failing",
        "lakewright_background_failures_total",
    }


@pytest.mark.parametrize("command", [("check", ALERTS), ("test", UNIT_TESTS)], ids=lambda one: one[0])
def test_promtool_accepts_the_rules_and_their_unit_tests(command: tuple[str, Path]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: install Debian's prometheus")
    done = subprocess.run(
        [promtool, command[0], "rules", str(command[1])],
        capture_output=True, text=True, timeout=scaled(60), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
