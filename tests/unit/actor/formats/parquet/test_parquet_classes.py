"""Where executors refuse our Java classes, rewrites go on without them, and one warning says so."""

from functools import partial
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from actor.formats.parquet.classes import ParquetClasses
from tests.support.java_errors import JavaError

MISSING = (
    "Lost task 0.3: java.lang.ClassNotFoundException: io.lakewright.parquet.RowGroupCopy",
    "Lost task 0.3: java.lang.ClassCastException: cannot assign instance of java.lang.invoke.SerializedLambda to f",
)


def raise_(problem: Exception) -> NoReturn:
    raise problem


@pytest.mark.parametrize("text", MISSING)
def test_an_executor_that_refuses_them_ends_their_use_with_one_warning(text: str) -> None:
    classes = ParquetClasses()
    assert classes.run(lambda: "copied") == "copied"
    with capture_logs() as logged:
        assert classes.run(partial(raise_, JavaError("SparkException", message=text))) is None
    assert [(one["event"], one["log_level"]) for one in logged] == [("row_group_copy_unavailable", "warning")]
    assert not classes.are_usable
    assert classes.run(lambda: "copied") is None, "no task is begun any more"


def test_refusals_at_the_same_time_are_one_warning() -> None:
    classes = ParquetClasses()

    def refused_meanwhile() -> None:
        assert classes.run(partial(raise_, JavaError("SparkException", message=MISSING[0]))) is None
        raise JavaError("SparkException", message=MISSING[0])

    with capture_logs() as logged:
        assert classes.run(refused_meanwhile) is None  # type: ignore[func-returns-value]
    assert len(logged) == 1


@pytest.mark.parametrize("text", ["No space left on device", "Job was cancelled", "FileNotFoundException: part-1"])
def test_any_other_failure_of_a_copy_is_raised(text: str) -> None:
    classes = ParquetClasses()
    with pytest.raises(JavaError, match=text):
        classes.run(partial(raise_, JavaError("SparkException", message=text)))
    assert classes.are_usable
