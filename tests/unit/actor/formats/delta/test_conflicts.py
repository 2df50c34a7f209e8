"""What an exception out of Delta means: only Delta's own conflict classes prove that a commit was refused."""

import pytest

from actor.formats.delta.conflicts import CommitFailure, classify, conflict_kind, refused, translate
from actor.jvm.errors import first_line, jvm_class_names
from shared.errors import RetryableError, Unsupported
from tests.support.fake_delta_table import JavaError

WRAPPER = "Py4JJavaError"


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("ConcurrentDeleteReadException", CommitFailure.TAKEN),
        ("ConcurrentDeleteDeleteException", CommitFailure.TAKEN),
        ("MetadataChangedException", CommitFailure.CHANGED),
        ("ProtocolChangedException", CommitFailure.CHANGED),
        ("ConcurrentAppendException", CommitFailure.REFUSED),
        ("ConcurrentTransactionException", CommitFailure.REFUSED),
        ("ConcurrentWriteException", CommitFailure.REFUSED),
        ("DeltaConcurrentModificationException", CommitFailure.REFUSED),
        ("IOException", CommitFailure.UNKNOWN),
        ("SparkException", CommitFailure.UNKNOWN),
        ("FileAlreadyExistsException", CommitFailure.UNKNOWN),
        ("ConcurrentModificationException", CommitFailure.UNKNOWN),  # Java's own, of a collection.
    ],
)
@pytest.mark.parametrize("place", ["outermost", "innermost"])
def test_a_failed_commit_is_judged_by_the_class_that_delta_gave_it_wherever_it_stands(
    name: str, verdict: CommitFailure, place: str
) -> None:
    error = JavaError(name) if place == "outermost" else JavaError(WRAPPER, "SparkException", name)
    assert classify(error) is verdict


def test_the_conflict_itself_is_named_rather_than_its_parent_class() -> None:
    error = JavaError("DeltaConcurrentModificationException", "ConcurrentAppendException")
    assert conflict_kind(error) == "ConcurrentAppendException"
    assert conflict_kind(JavaError("DeltaConcurrentModificationException")) == "DeltaConcurrentModificationException"
    assert conflict_kind(JavaError("IOException")) is None


def test_an_error_of_python_is_judged_by_its_own_classes_too() -> None:
    class MetadataChangedException(Exception):  # noqa: N818 - PySpark's name
        """As PySpark wraps Delta's."""

    assert classify(MetadataChangedException()) is CommitFailure.CHANGED
    assert classify(TimeoutError("no answer")) is CommitFailure.UNKNOWN


def test_a_commit_that_others_were_always_faster_than_may_be_tried_again() -> None:
    assert classify(JavaError("DeltaIllegalStateException", message="[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] x")) == "busy"
    assert (
        classify(JavaError("DeltaIllegalStateException", message="[DELTA_SOMETHING_ELSE] x")) is CommitFailure.UNKNOWN
    )


def test_a_refusal_is_a_conflict_with_deltas_name_for_it() -> None:
    assert refused(JavaError("ConcurrentAppendException"), "t").kind == "ConcurrentAppendException"
    assert refused(JavaError("DeltaIllegalStateException"), "t").kind == CommitFailure.BUSY


@pytest.mark.parametrize("name", ["DeltaUnsupportedTableFeatureException", "InvalidProtocolVersionException"])
def test_a_protocol_that_delta_does_not_know_is_unsupported(name: str) -> None:
    problem = translate(JavaError(WRAPPER, name), "reading t")
    assert isinstance(problem, Unsupported)
    assert problem.field == "protocol"


def test_pages_that_spark_does_not_read_are_unsupported_and_not_tried_again() -> None:
    error = JavaError("SparkException", "SparkUnsupportedOperationException", message="Unsupported encoding: RLE_X")
    problem = translate(error, "writing t", so="the table is unchanged")
    assert isinstance(problem, Unsupported)
    assert "the table is unchanged; Spark does not read this encoding" in str(problem)


def test_any_other_failure_may_be_tried_again_and_says_what_follows() -> None:
    problem = translate(JavaError("SparkException", message="lost task"), "writing t", so="the table is unchanged")
    assert isinstance(problem, RetryableError)
    assert str(problem) == "writing t: SparkException: lost task; the table is unchanged"


def test_the_first_line_names_the_outermost_and_the_innermost_cause_and_is_short() -> None:
    error = JavaError("SparkException", "Middle", "IOException", message="one\ntwo" + "x" * 1000)
    assert first_line(error) == "SparkException: one <- IOException: one"
    assert len(first_line(ValueError("x" * 1000))) < 520
    assert jvm_class_names(error)[-3:] == ("SparkException", "Middle", "IOException")
