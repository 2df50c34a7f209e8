"""Whatever the API offers can be done from the command line, which shows each answer as the API describes it."""

import json
import re
from dataclasses import fields
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from decider.requests.registry import REQUESTS
from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from tests.support.example_answers import example_of
from tests.support.live_decider import openapi_document

DOCUMENT: dict[str, Any] = openapi_document()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}

COMMANDS: list[tuple[str, int, str]] = [
    ("POST /v1/events", 202, "events post --table sales.orders"),
    ("POST /v1/tables", 201, "tables add s3://lake/sales/orders --name sales.orders"),
    ("GET /v1/tables", 200, "tables list --prefix sales."),
    ("GET /v1/tables/{name}", 200, "tables show sales.orders"),
    ("PATCH /v1/tables/{name}", 200, "tables change sales.orders --tenant sales"),
    ("GET /v1/discovery", 200, "tables discover"),
    ("POST /v1/discovery", 202, "tables discover --start"),
    ("DELETE /v1/tables/{name}", 204, "tables remove sales.orders"),
    ("GET /v1/tables/{name}/partitions", 200, "tables partitions sales.orders"),
    ("GET /v1/tables/{name}/decisions", 200, "tables decisions sales.orders"),
    ("GET /v1/tables/{name}/decisions", 200, "tables why sales.orders --at 2026-01-01T14:03:00Z"),
    ("GET /v1/tables/{name}/optimizations", 200, "optimizations sales.orders --before 40"),
    ("GET /v1/tables/{name}/index", 200, "tables index sales.orders --revision-id 1"),
    ("GET /v1/tables/{name}/reads", 200, "tables reads sales.orders"),
    ("POST /v1/tables/{name}/pause", 200, "tables pause sales.orders"),
    ("POST /v1/tables/{name}/resume", 200, "tables resume sales.orders"),
    ("POST /v1/tables/{name}/optimize", 200, "optimize sales.orders --dry-run"),
    ("POST /v1/tables/{name}/optimize", 202, "optimize sales.orders --priority high"),
    ("POST /v1/tables/{name}/what-if", 200, "what-if sales.orders"),
    ("GET /v1/advice", 200, "advice list --status open"),
    ("GET /v1/tables/{name}/advice", 200, "advice show sales.orders"),
    ("POST /v1/tables/{name}/advice/{advice}/apply", 200, "advice apply sales.orders 5f0c9a1be2d4"),
    ("POST /v1/tables/{name}/advice/{advice}/dismiss", 200, "advice dismiss sales.orders 5f0c9a1be2d4"),
    ("POST /v1/tables/{name}/actions/vacuum", 200, "vacuum sales.orders --dry-run"),
    ("POST /v1/tables/{name}/actions/vacuum", 202, "vacuum sales.orders --orphans"),
    ("POST /v1/tables/{name}/actions/checkpoint", 202, "checkpoint sales.orders"),
    ("POST /v1/tables/{name}/actions/reclaim", 202, "reclaim sales.orders --confirm sales.orders"),
    ("POST /v1/tables/{name}/actions/deduplicate", 202, "deduplicate sales.orders --dry-run"),
    ("POST /v1/tables/{name}/actions/expire", 202, "expire sales.orders --dry-run"),
    ("POST /v1/tables/{name}/actions/cluster", 200, "cluster sales.orders --dry-run"),
    ("POST /v1/tables/{name}/actions/cluster", 202, "cluster sales.orders"),
    ("POST /v1/tables/{name}/actions/index", 202, "index sales.orders --revision-id 1 --bytes-per-iter 500000000"),
    ("POST /v1/tables/{name}/actions/rewrite-manifests", 200, "rewrite-manifests sales.orders --dry-run"),
    ("POST /v1/tables/{name}/actions/rewrite-manifests", 202, "rewrite-manifests sales.orders"),
    ("POST /v1/tables/{name}/actions/compute-statistics", 202, "compute-statistics sales.orders"),
    ("POST /v1/tables/{name}/actions/merge-deletes", 200, "merge-deletes sales.orders --dry-run"),
    ("POST /v1/tables/{name}/actions/merge-deletes", 202, "merge-deletes sales.orders"),
    ("POST /v1/tables/{name}/actions/convert-deletes", 200, "convert-deletes sales.orders --dry-run"),
    ("POST /v1/tables/{name}/actions/convert-deletes", 202, "convert-deletes sales.orders"),
    ("GET /v1/jobs", 200, "jobs list --state queued"),
    ("GET /v1/jobs/{job}", 200, "jobs show t.1.compact"),
    ("DELETE /v1/jobs/{job}", 200, "jobs cancel t.1.compact"),
    ("POST /v1/jobs/{job}/expedite", 200, "jobs expedite t.1.compact"),
    ("POST /v1/jobs/{job}/requeue", 200, "jobs requeue t.1.compact"),
    ("GET /v1/queue", 200, "queue show --group etl"),
    ("GET /v1/groups", 200, "queue groups"),
    ("GET /v1/queue/settings", 200, "queue settings"),
    ("PATCH /v1/queue/settings", 200, "queue set aging=2min max-attempts=5"),
    ("PUT /v1/queue/weights", 200, "queue weight tenant sales --weight 2 --group etl"),
    ("POST /v1/queue/pause", 200, "queue pause tenant sales"),
    ("POST /v1/queue/resume", 200, "queue resume tenant sales"),
    ("POST /v1/queue/audit", 200, "queue audit"),
    ("GET /v1/table-rows", 200, "tables list --paused"),
    ("POST /v1/tables/resume", 200, "tables resume --all"),
    ("GET /v1/refused-files", 200, "tables refused"),
    ("GET /v1/rejected-events", 200, "events rejected"),
    ("GET /v1/actors", 200, "actors list"),
    ("POST /v1/actors/{actor}/drain", 200, "actors drain worker-7-4711"),
    ("GET /v1/status", 200, "status"),
    ("GET /v1/stream", 200, "watch --count 1"),
]

WITHOUT_A_COMMAND = {
    "POST /v1/events/{source}": "what a source sends in its own shape; `events post FILE` takes every shape",
    "POST /v1/scan-reports": "for engines and catalogs, which know what they read",
    "OPTIONS /v1/events": "the handshake of CloudEvents, which a sender makes",
    "OPTIONS /v1/events/{source}": "the handshake of CloudEvents, which a sender makes",
    "GET /livez": "for supervisors; `doctor` and `status` are for people",
    "GET /readyz": "for load balancers; `doctor` and `status` are for people",
    "GET /v1/me": "for the page, which hides what a role may not do; a command is refused with the role that it needs",
    "GET /v1/history": "points of a chart of the page; `status` has the present sums",
    "GET /v1/tables/{name}/history": "points of a chart of the page; `tables show` has what rewriting was worth",
    "GET /v1/tables/{name}/layout-history": "points of a chart of the page; `tables show` has the present layout",
    "GET /v1/backlog": "for scalers; `queue show` is for people",
    "GET /metrics": "for Prometheus; `status` shows the same to people",
}
"""Calls that no person makes, and why."""


def documented(operation: str, status: int) -> httpx.Response:
    """Return an answer as the description says it is."""
    content = OPERATIONS[operation]["responses"][str(status)].get("content", {})
    for kind, media in content.items():
        example = media.get("example") or example_of(media["schema"], DOCUMENT["components"]["schemas"])
        body = example if isinstance(example, str) else json.dumps(example)
        return httpx.Response(status, content=body, headers={"content-type": kind})
    return httpx.Response(status)


def fits(request: httpx.Request, operation: str) -> bool:
    method, _, template = operation.partition(" ")
    pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
    return request.method == method and re.fullmatch(pattern, request.url.path) is not None


def test_every_call_has_a_command_or_a_reason_for_having_none() -> None:
    assert {operation for operation, _, _ in COMMANDS}.isdisjoint(WITHOUT_A_COMMAND)
    assert {operation for operation, _, _ in COMMANDS} | set(WITHOUT_A_COMMAND) == set(OPERATIONS)


@pytest.mark.parametrize(("operation", "status", "command"), COMMANDS, ids=[command for _, _, command in COMMANDS])
def test_a_command_makes_its_call_and_shows_the_documented_answer(operation: str, status: int, command: str) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if not fits(request, operation):  # A command for people says what failed, and what rewriting was worth, too.
            is_history = request.url.path.endswith("/history")
            return documented("GET /v1/tables/{name}/history" if is_history else "GET /v1/jobs", 200)
        asked.append(request)
        return documented(operation, status)

    for as_json in (False, True):
        setting = CliContext("http://decider", as_json, httpx.MockTransport(answer))
        result = CliRunner().invoke(app, command.split(), obj=setting, env={"COLUMNS": "200"})
        assert result.exit_code == 0, (result.output, result.exception)
        assert result.stdout.strip()
        if as_json:
            printed = json.loads(result.stdout)
            example = documented(operation, status)
            if "json" in example.headers.get("content-type", ""):
                assert printed == example.json()
    assert len(asked) == 2
    assert all(fits(request, operation) for request in asked), asked


ACTIONS = "/v1/tables/{name}/actions/"


def test_a_request_has_an_endpoint_and_a_command_by_being_declared() -> None:
    paths = openapi_document()["paths"]
    assert {path.removeprefix(ACTIONS) for path in paths if path.startswith(ACTIONS)} == set(REQUESTS)
    assert len(REQUESTS) >= 7


@pytest.mark.parametrize("name", sorted(set(REQUESTS) - {"index"}))
def test_a_command_has_the_options_of_the_request(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).stdout
    for one in fields(REQUESTS[name]):
        assert f"--{one.name.replace('_', '-')}" in shown


def test_a_request_beyond_its_bounds_is_wrong_use() -> None:
    assert CliRunner().invoke(app, ["vacuum", "sales.orders", "--retain-hours", "-1"]).exit_code == 2
