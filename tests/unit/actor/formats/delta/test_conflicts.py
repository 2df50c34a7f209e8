"""What is Delta's own in judging failures: names of conflicts, and what a refused commit becomes."""

from actor.formats.delta.conflicts import classify, conflict_kind, refused, translate
from actor.jvm.errors import first_line, jvm_class_names
from actor.rewrite.model import NotAsked, Verdict
from shared.errors import Conflict, RefusedFiles, RetryableError
from tests.support.java_errors import JavaError


def test_the_conflict_itself_is_named_rather_than_its_parent_class() -> None:
    error = JavaError("DeltaConcurrentModificationException", "ConcurrentAppendException")
    assert conflict_kind(error) == "ConcurrentAppendException"
    assert conflict_kind(JavaError("DeltaConcurrentModificationException")) == "DeltaConcurrentModificationException"
    assert conflict_kind(JavaError("IOException")) is None


def test_an_error_of_python_is_judged_by_its_own_classes_too() -> None:
    class MetadataChangedException(Exception):  # noqa: N818 - PySpark's name
        """As PySpark wraps Delta's."""

    assert classify(MetadataChangedException()) is Verdict.CHANGED
    assert classify(TimeoutError("no answer")) is Verdict.UNKNOWN


def test_a_refusal_is_a_conflict_with_deltas_name_for_it() -> None:
    busy = JavaError("DeltaIllegalStateException", message="[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] x")
    for error, kind in ((JavaError("ConcurrentAppendException"), "ConcurrentAppendException"), (busy, Verdict.BUSY)):
        conflict = refused(error, "t")
        assert isinstance(conflict, Conflict)
        assert conflict.kind == kind


def test_a_commit_that_was_not_asked_for_is_no_conflict_and_says_that_nothing_was_committed() -> None:
    error = NotAsked("not asked")
    error.__cause__ = JavaError("IOException", message="the store is away")
    problem = refused(error, "t")
    assert type(problem) is RetryableError
    assert str(problem) == "committing to t: IOException: the store is away; nothing was committed"


def test_pages_that_spark_does_not_read_are_refused_and_not_tried_again() -> None:
    error = JavaError("SparkException", "SparkUnsupportedOperationException", message="Unsupported encoding: RLE_X")
    problem = translate(error, "writing t", so="the table is unchanged")
    assert isinstance(problem, RefusedFiles)
    assert "the table is unchanged; Spark does not read this encoding" in str(problem)


def test_the_first_line_names_the_outermost_and_the_innermost_cause_and_is_short() -> None:
    error = JavaError("SparkException", "Middle", "IOException", message="one\ntwo" + "x" * 1000)
    assert first_line(error) == "SparkException: one <- IOException: one"
    assert len(first_line(ValueError("x" * 1000))) < 520
    assert jvm_class_names(error)[-3:] == ("SparkException", "Middle", "IOException")
