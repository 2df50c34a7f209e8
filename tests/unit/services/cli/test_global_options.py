"""Options of the whole command line: --json before or behind the command, and --version."""

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.cli_context import CliContext

STATUS = {"actors": [], "busy_slots": 0, "slots": 0, "unserved": []}


def answered(*arguments: str) -> str:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=STATUS))
    result = CliRunner().invoke(
        app, list(arguments), obj=CliContext("http://decider", as_json=False, transport=transport)
    )
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_json_may_stand_behind_the_command() -> None:
    assert json.loads(answered("actors", "list", "--json")) == STATUS


def test_without_json_people_get_a_table() -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(answered("actors", "list"))


@pytest.mark.parametrize("command", ["tables list", "optimize", "what-if", "queue show", "status", "tables index t"])
def test_every_command_offers_json_in_its_help(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "120"})
    assert "--json" in result.stdout


def test_the_version_is_that_of_the_package() -> None:
    found = CliRunner().invoke(app, ["--version"])
    assert (found.exit_code, found.stdout) == (0, f"lakewright {version('lakewright')}\n")
    declared = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"]["version"]
    assert version("lakewright") == declared
