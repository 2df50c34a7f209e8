"""With --json standard output holds one JSON document and nothing else; logs and errors go to standard error.

Commands that ask the decider are held to that in `test_every_call`; these read a table here, and may log meanwhile.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from services.cli.__main__ import app
from services.settings import log_format
from shared.errors import InvalidInput
from tests.support.delta_tables import HandTable
from tests.support.stack import ROOT, lakewright
from tests.support.time_limits import scaled
from tests.unit.services.cli.test_every_call import COMMANDS

HERE = ("doctor",)
"""Commands that need neither a decider nor a table."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own, which sets up its logs as it does for a user."""
    return lakewright(*arguments, env={"PATH": ""}, seconds=120)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table that leads to a warning whenever it is read: its newest checkpoint is damaged."""
    made = HandTable(tmp_path / "t")
    made.append(12)
    (made.path / "_delta_log" / f"{1:020d}.checkpoint.parquet").write_bytes(b"damaged")
    (made.path / "_delta_log" / "_last_checkpoint").write_text("not JSON")
    return made.path


@pytest.mark.parametrize("command", [("what-if",), ("optimize", "--dry-run"), ("optimizations",)], ids=" ".join)
def test_a_command_that_reads_a_damaged_log_prints_one_document_and_logs_elsewhere(
    table: Path, command: tuple[str, ...]
) -> None:
    done = run("--json", *command, str(table))
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)
    if command[0] == "optimize":
        assert "checkpoint_unusable" in done.stderr


@pytest.mark.parametrize("command", HERE)
def test_a_command_that_asks_no_one_prints_one_document(command: str) -> None:
    assert isinstance(json.loads(run("--json", *command.split()).stdout), dict)


def test_every_command_is_held_to_one_document() -> None:
    asked = {command for _, _, command in COMMANDS} | set(HERE)
    assert [name for name in commands(get_command(app)) if not any(f"{one} ".startswith(name) for one in asked)] == [
        f"{service} " for service in ("standalone", "decider", "actor")
    ], "services answer nothing"


def commands(group: Any, prefix: str = "") -> Iterator[str]:
    """Yield every command with the words before it."""
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name} "


@pytest.mark.parametrize(
    "command",
    [
        ("what-if",),
        ("optimize", "--dry-run"),
        ("optimize", "--yes"),
        ("optimizations",),
        ("optimizations", "--before", "40"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("place", ["empty", "missing"])
def test_a_place_without_a_log_is_an_error_and_not_an_empty_answer(
    tmp_path: Path, command: tuple[str, ...], place: str
) -> None:
    (tmp_path / "empty").mkdir()
    for options in ((), ("--json",)):
        done = run(*options, *command, str(tmp_path / place))
        assert done.returncode == 1
        assert done.stdout == ""
        assert str(tmp_path / place) in done.stderr
        assert ("no Delta log" if place == "empty" else "no directory") in done.stderr


def test_a_table_whose_commits_were_all_cleaned_up_has_an_empty_history_and_is_no_error(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{7:020d}.checkpoint.parquet").write_bytes(b"")
    done = run("--json", "optimizations", str(tmp_path / "t"))
    assert (done.returncode, json.loads(done.stdout)["optimizations"]) == (0, [])


SAY = """
import logging, structlog
from services.logs import configure_logs
configure_logs("info", {form!r})
structlog.get_logger().info("folded", table="orders", version=7)
structlog.get_logger().debug("not_said")
logging.getLogger("a.library").warning("it said %s", "so")
"""


def stated(form: str) -> list[str]:
    """Log in a process of its own, whose standard error is no terminal."""
    done = subprocess.run(
        [sys.executable, "-c", SAY.format(form=form)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=scaled(60),
    )
    assert done.stdout == "", "standard output belongs to answers"
    return done.stderr.splitlines()


@pytest.mark.parametrize("form", ["json", "auto"])
def test_machines_get_one_object_a_line_from_us_and_from_libraries(form: str) -> None:
    ours, theirs = map(json.loads, stated(form))
    assert {name: ours[name] for name in ("event", "level", "table", "version")} == {
        "event": "folded",
        "level": "info",
        "table": "orders",
        "version": 7,
    }
    assert ours["timestamp"].endswith("Z")
    assert (theirs["event"], theirs["level"]) == ("it said so", "warning")


def test_people_get_lines_where_they_ask_for_them() -> None:
    ours, theirs = stated("console")
    assert "folded" in ours
    assert "table=orders" in ours
    assert "\x1b" not in ours, "no colours in a file"
    assert "it said so" in theirs


REHEARSED = """
import structlog
from services.logs import configure_logs
configure_logs("info", "json")
with structlog.contextvars.bound_contextvars(self_test=True):
    structlog.get_logger().info("commit_failed", error="ConcurrentDeleteReadException")
    structlog.get_logger().warning("orphan_files_not_deleted")
structlog.get_logger().info("commit_failed")
"""


def test_what_the_self_test_provokes_is_not_logged_and_its_warnings_are() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REHEARSED], cwd=ROOT, capture_output=True, text=True, check=True, timeout=scaled(60)
    )
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(one["event"], one.get("self_test", False)) for one in events] == [
        ("orphan_files_not_deleted", True), ("commit_failed", False),
    ]  # fmt: skip


def test_a_form_that_is_none_is_refused_by_name() -> None:
    assert log_format({}) == "auto"
    assert log_format({"LAKEWRIGHT_LOG_FORMAT": "JSON"}) == "json"
    with pytest.raises(InvalidInput, match="LAKEWRIGHT_LOG_FORMAT"):
        log_format({"LAKEWRIGHT_LOG_FORMAT": "xml"})
