"""Rewrites go on without the Java classes that copy row groups, and one warning says so."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from actor.formats.parquet.classes import SOURCES, ParquetClasses
from actor.jvm import java_sources
from tests.support.fake_delta import JavaError

SESSION: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: "/work/classes"), version="4.1.0")
MISSING = (
    "Lost task 0.3: java.lang.ClassNotFoundException: io.lakewright.RowGroupCopy",
    "Lost task 0.3: java.lang.ClassCastException: cannot assign instance of java.lang.invoke.SerializedLambda to f",
)


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Notes what is compiled, sent and loaded."""
    done: dict[str, list[Any]] = {"compiled": [], "sent": [], "loaded": []}
    monkeypatch.setattr(java_sources, "compile_sources", lambda _, names: done["compiled"].append(names) or [Path("c")])
    monkeypatch.setattr(java_sources, "ship", lambda _, files, jar: done["sent"].append((files, jar)))
    monkeypatch.setattr(java_sources, "load_class", lambda _, name: done["loaded"].append(name))
    return done


def test_they_are_made_and_sent_once(jvm: dict[str, list[Any]]) -> None:
    classes = ParquetClasses()
    with capture_logs() as logged:
        assert [classes.are_usable(SESSION), classes.are_usable(SESSION)] == [True, True]
    assert (jvm["compiled"], len(jvm["sent"]), jvm["loaded"], logged) == ([SOURCES], 1, list(SOURCES), [])


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("step", ["compile_sources", "ship", "load_class"])
def test_where_they_cannot_be_made_one_warning_says_where_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("Read-only file system: /work/classes")

    monkeypatch.setattr(java_sources, step, fail)
    classes = ParquetClasses()
    with capture_logs() as logged:
        assert [classes.are_usable(SESSION), classes.are_usable(SESSION)] == [False, False]
    (warning,) = logged
    assert (warning["event"], warning["log_level"]) == ("row_group_copy_unavailable", "warning")
    assert warning["classes"] == "/work/classes"
    assert "Read-only file system" in warning["error"]
    assert "start the actor again" in warning["remedy"]


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("text", MISSING)
def test_an_executor_that_refuses_them_ends_their_use_with_one_warning(text: str) -> None:
    classes = ParquetClasses()
    assert classes.are_usable(SESSION)
    with capture_logs() as logged:
        for _ in range(2):
            classes.give_up_if_refused(SESSION, JavaError("SparkException", message=text))
    assert [one["event"] for one in logged] == ["row_group_copy_unavailable"]
    assert not classes.are_usable(SESSION)


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("text", ["No space left on device", "Job was cancelled", "FileNotFoundException: part-1"])
def test_any_other_failure_of_a_copy_is_raised(text: str) -> None:
    classes = ParquetClasses()
    with pytest.raises(JavaError, match=text):
        classes.give_up_if_refused(SESSION, JavaError("SparkException", message=text))
    assert classes.are_usable(SESSION)
