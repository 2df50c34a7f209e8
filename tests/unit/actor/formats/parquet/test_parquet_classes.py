"""Where executors refuse our Java classes, rewrites go on without them, and one warning says so."""

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from actor.formats.parquet.classes import ParquetClasses
from tests.support.java_errors import JavaError

SESSION: Any = SimpleNamespace(version="4.1.0")
MISSING = (
    "Lost task 0.3: java.lang.ClassNotFoundException: io.lakewright.parquet.RowGroupCopy",
    "Lost task 0.3: java.lang.ClassCastException: cannot assign instance of java.lang.invoke.SerializedLambda to f",
)


@pytest.mark.parametrize("text", MISSING)
def test_an_executor_that_refuses_them_ends_their_use_with_one_warning(text: str) -> None:
    classes = ParquetClasses()
    assert classes.are_usable(SESSION)
    with capture_logs() as logged:
        for _ in range(2):
            classes.give_up_if_refused(SESSION, JavaError("SparkException", message=text))
    assert [(one["event"], one["log_level"]) for one in logged] == [("row_group_copy_unavailable", "warning")]
    assert not classes.are_usable(SESSION)


@pytest.mark.parametrize("text", ["No space left on device", "Job was cancelled", "FileNotFoundException: part-1"])
def test_any_other_failure_of_a_copy_is_raised(text: str) -> None:
    classes = ParquetClasses()
    with pytest.raises(JavaError, match=text):
        classes.give_up_if_refused(SESSION, JavaError("SparkException", message=text))
    assert classes.are_usable(SESSION)
