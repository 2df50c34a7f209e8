"""`lakewright optimize LOCATION` without a JVM: plans, questions, refusals and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from services.cli.__main__ import app
from shared.errors import InvalidInput, LakewrightError
from tests.support import delta_tables as tables


@pytest.fixture
def table(tmp_path: Path) -> tables.HandTable:
    made = tables.HandTable(
        tmp_path / "orders",
        partitions={"dt": "date"},
        configuration={"lakewright.target-file-size": "128kb", "lakewright.enabled": "false"},
    )
    days = (tables.DAY_1, tables.DAY_2)
    made.commit([{"add": made.new_file(20, {"dt": days[number % 2]})} for number in range(24)])
    return made


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "160", "LAKEWRIGHT_POLICY": ""})


def plan(table: tables.HandTable, *more: str) -> Any:
    result = call("--json", "optimize", str(table.path), "--dry-run", *more)
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)["plan"]


def test_a_dry_run_lists_every_group_with_its_files(table: tables.HandTable) -> None:
    found = plan(table)
    listed = [path for one in found["plans"] for group in one["groups"] for path in group["files"]]
    assert len(listed) == len(set(listed)) == found["files_replaced"] == 24
    assert {one["partition_label"] for one in found["plans"]} == {f"dt={tables.DAY_1}", f"dt={tables.DAY_2}"}
    assert found["target_bytes"] == 128 * 1024
    assert found["excess_ratio"]["after"] < found["excess_ratio"]["before"]
    assert found["files_needed"] == {"before": 2, "after": 2}
    assert plan(table) == found, "the same snapshot gives the same plan"


def test_options_are_laid_over_the_tables_own_properties(table: tables.HandTable) -> None:
    one_day = plan(table, "--partition", f"dt={tables.DAY_1}")
    assert [one["partition_label"] for one in one_day["plans"]] == [f"dt={tables.DAY_1}"]
    assert plan(table, "--set", "min-input-files=100")["plans"] == []
    assert plan(table, "--set", "min-input-files=100", "--mode", "full")["files_replaced"] == 24
    assert plan(table, "--mode", "idle")["plans"][0]["groups"][0]["mode"] == "idle"
    assert plan(table, "--target-file-size", "64kb")["target_bytes"] == 64 * 1024
    assert plan(table, "--set", "filter=dt = '2026-01-01'")["without_work"] == {"filtered": 1}


def test_nothing_to_do_is_reported_and_is_no_failure(table: tables.HandTable) -> None:
    result = call("optimize", str(table.path), "--yes", "--set", "min-input-files=100")
    assert result.exit_code == 0
    assert "Nothing to do at version 1." in result.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--target-file-size", "tiny"), "target-file-size = 'tiny' cannot be used"),
        (("--set", "fan-out=3"), "unknown property"),
        (("--partition", "day=1"), "is no partition column"),
    ],
)
def test_what_cannot_be_used_is_named(table: tables.HandTable, arguments: tuple[str, ...], why: str) -> None:
    result = call("optimize", str(table.path), "--dry-run", *arguments)
    assert isinstance(result.exception, LakewrightError), result.output
    assert why in str(result.exception)


@pytest.mark.parametrize(
    "arguments",
    [
        ("./t",),
        ("./t", "--yes", "--priority", "high"),
        ("name", "--yes"),
        ("./t", "--yes", "--wait"),
        ("./t", "--dry-run", "--mode", "all"),
    ],
    ids=["no one to ask", "a priority here and now", "a name is not confirmed", "no job to wait for", "no mode"],
)
def test_wrong_use_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    assert call("optimize", *arguments).exit_code == 2


def test_a_place_without_a_table_is_reported_to_be_none(tmp_path: Path) -> None:
    result = call("optimize", str(tmp_path), "--dry-run")
    assert isinstance(result.exception, InvalidInput)
    assert "there is no Delta log" in str(result.exception)
