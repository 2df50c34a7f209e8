"""`NAME=VALUE` is read in one way by every command: what is none is wrong use, exit code 2."""

import httpx
import pytest
import typer
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from services.cli.name_values import name_values

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
