"""Logs are one event with key-values, in the form that a setting or the place they go to requests."""

import json
import subprocess
import sys

import pytest

from services.settings import log_format
from shared.errors import InvalidInput
from tests.support.stack import ROOT
from tests.support.time_limits import scaled

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
