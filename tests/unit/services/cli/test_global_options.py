"""Options of the whole command line: --json, --version and help; names, values and names of catalogs."""

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
import typer
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from services.cli.locations import is_location, location_of
from services.cli.name_values import name_values
from tests.tools.cli_page import commands

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


IMPERATIVES = {
    "Cancel", "Check", "Change", "Delete", "Dispatch", "Explain", "Keep", "Let", "List", "Make", "Move", "Optimize",
    "Merge", "Post", "Rebuild", "Register", "Rename", "Replay", "Run", "Set", "Show", "Simulate", "Sort", "Stop",
    "Stream", "Unregister", "Write",
}  # fmt: skip


ALL = dict(commands(typer.main.get_command(app)))


def test_every_command_is_covered() -> None:
    assert len(ALL) > 35
    assert {"tables add", "tables optimizations", "doctor"} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_help_text_is_an_instruction(name: str) -> None:
    command = ALL[name]
    assert command.help.split()[0].rstrip(",") in IMPERATIVES, command.help
    texts = [command.help, *(one.help for one in command.params if getattr(one, "help", None))]
    for text in texts:
        assert text.rstrip().endswith("."), text


COMMANDS = [
    ("optimize", "sales.orders"),
    ("optimize", "/lake/orders", "--dry-run"),
    ("what-if", "sales.orders"),
    ("what-if", "/lake/orders"),
    ("tables", "add", "/lake/orders"),
    ("tables", "change", "sales.orders"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("given", ["foo", "=4", "fan-in="])
def test_what_is_no_name_and_value_is_wrong_use_in_every_command(command: tuple[str, ...], given: str) -> None:
    setting = CliContext("http://decider", as_json=False, transport=httpx.MockTransport(lambda _: httpx.Response(500)))
    result = CliRunner().invoke(app, [*command, "--set", given], obj=setting)
    assert result.exit_code == 2, result.output
    assert "expected name=value" in result.stderr


def test_blanks_do_not_count_and_the_last_value_of_a_name_stays() -> None:
    assert name_values(["a = 1", "b=x=y", "a=2"]) == {"a": "2", "b": "x=y"}
    assert name_values(None) == {}
    with pytest.raises(typer.BadParameter, match="found ' = '"):
        name_values([" = "])


def test_a_name_in_one_of_the_catalogs_is_a_location(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWRIGHT_CATALOGS", '{"prod": {}}')
    assert is_location("prod.sales.orders")
    assert location_of("prod.sales.eu.orders") == "catalog://prod/sales/eu/orders"
    assert location_of("catalog://prod/sales/orders") == "catalog://prod/sales/orders"
    for name in ("prod.orders", "other.sales.orders", "prod..orders", "orders"):
        assert not is_location(name)


def test_without_catalogs_every_name_is_that_of_a_registered_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEWRIGHT_CATALOGS", raising=False)
    assert not is_location("prod.sales.orders")
