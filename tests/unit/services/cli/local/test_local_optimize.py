"""`lakewright optimize LOCATION` without a JVM: plans, questions, refusals and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from services.cli.__main__ import app
from services.cli.local.plan import LocalPlan
from services.cli.local.run import LocalRun, LocalRunner, RunListener
from shared.errors import InvalidInput, LakewrightError, RefusedFiles
from shared.jobs.payload import RewriteKind
from shared.layout.planner import plan
from shared.policy.policy import MIB, Policy
from shared.refusals import RefusalReason
from shared.table import PartitionKey
from tests.support import delta_tables as tables
from tests.support.memory_engine import MemoryEngine


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


def planned(table: tables.HandTable, *more: str) -> Any:
    result = call("--json", "optimize", str(table.path), "--dry-run", *more)
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)["plan"]


def test_a_dry_run_lists_every_group_with_its_files(table: tables.HandTable) -> None:
    found = planned(table)
    listed = [path for one in found["plans"] for group in one["groups"] for path in group["files"]]
    assert len(listed) == len(set(listed)) == found["files_replaced"] == 24
    assert {one["partition_label"] for one in found["plans"]} == {f"dt={tables.DAY_1}", f"dt={tables.DAY_2}"}
    assert found["target_bytes"] == 128 * 1024
    assert found["excess_ratio"]["after"] < found["excess_ratio"]["before"]
    assert found["files_needed"] == {"before": 2, "after": 2}
    assert planned(table) == found, "the same snapshot gives the same plan"


def test_options_are_laid_over_the_tables_own_properties(table: tables.HandTable) -> None:
    one_day = planned(table, "--partition", f"dt={tables.DAY_1}")
    assert [one["partition_label"] for one in one_day["plans"]] == [f"dt={tables.DAY_1}"]
    assert planned(table, "--set", "min-input-files=100")["plans"] == []
    assert planned(table, "--set", "min-input-files=100", "--mode", "full")["files_replaced"] == 24
    assert planned(table, "--mode", "idle")["plans"][0]["groups"][0]["mode"] == "idle"
    assert planned(table, "--target-file-size", "64kb")["target_bytes"] == 64 * 1024
    assert planned(table, "--set", "filter=dt = '2026-01-01'")["without_work"] == {"filtered": 1}


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


POLICY = Policy(target_bytes=8 * MIB)
FIRST, SECOND = PartitionKey('{"dt":"1"}'), PartitionKey('{"dt":"2"}')


@pytest.mark.parametrize("is_raised", [False, True])
def test_the_groups_after_a_refused_one_are_written(is_raised: bool) -> None:
    engine = MemoryEngine()
    for partition in (FIRST, SECOND):
        engine.append([100_000] * 8, partition)
    if is_raised:
        engine.broken[FIRST] = RefusedFiles("no ids", reason=RefusalReason.COLUMNS_UNCLEAR)
    else:
        engine.refuses = lambda file: file.partition == FIRST
    plans = tuple(
        plan(one, [file for file in engine.files.values() if file.partition == one], POLICY) for one in (FIRST, SECOND)
    )
    total = plans[0].before + plans[1].before
    made = LocalPlan("memory://t", 0, RewriteKind.LEVELS, (), POLICY, plans, 2, total, total, {}, ())
    run = LocalRun("j")
    LocalRunner(made, engine, RunListener(stopping=lambda: False), run).go()
    assert (run.landed, run.refused, run.skipped, run.failure) == (1, 1, 0, None)
    assert run.describe()["groups_refused"] == 1
    assert run.describe()["refusal"] == ("no ids" if is_raised else "a type that cannot be stored")
