"""A request about a table is declared in one place, and the API and the command line offer it with the same options."""

from dataclasses import fields

import pytest
from typer.testing import CliRunner

from decider.requests.registry import REQUESTS
from services.cli.__main__ import app
from tests.support.decider_app import openapi_document

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
