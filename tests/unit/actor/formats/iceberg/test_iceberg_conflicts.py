"""What is Iceberg's own in judging failures: what a refused commit becomes, tokens, and actors without jars for S3."""

import pytest

from actor.formats.iceberg.conflicts import classify, refused, translate
from actor.rewrite.model import NotAsked, Verdict
from shared.errors import Conflict, LakewrightError, NoTable, PermanentError, RefusedFiles, RetryableError, Unsupported
from tests.support.java_errors import JavaError


@pytest.mark.parametrize(
    ("names", "failure"),
    [
        (["RuntimeException", "ValidationException"], Verdict.TAKEN),
        (["CommitStateUnknownException", "ValidationException"], Verdict.UNKNOWN),
        (["RuntimeException", "CommitStateUnknownException"], Verdict.UNKNOWN),
        (["CommitStateUnknownException", "ForbiddenException"], Verdict.UNKNOWN),
    ],
)
def test_an_unknown_state_anywhere_outweighs_what_else_is_in_the_chain(names: list[str], failure: Verdict) -> None:
    assert classify(JavaError(*names)) is failure


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ForbiddenException", PermanentError),
        ("BadRequestException", PermanentError),
        ("NoSuchTableException", NoTable),
        ("NotAuthorizedException", RetryableError),
        ("ServiceUnavailableException", RetryableError),
    ],
)
def test_a_commit_that_was_refused_for_certain_says_so(name: str, kind: type[LakewrightError]) -> None:
    """A token that is no longer valid is a failure of the moment: the next run gets another one."""
    problem = refused(JavaError(name), "catalog://c/db/t")
    assert type(problem) is kind
    assert "catalog://c/db/t" in str(problem)
    assert "nothing was committed" in str(problem)


@pytest.mark.parametrize("name", ["ValidationException", "CommitFailedException"])
def test_a_commit_that_others_were_faster_than_is_a_conflict(name: str) -> None:
    problem = refused(JavaError(name, message="why"), "t")
    assert isinstance(problem, Conflict)
    assert problem.kind == classify(JavaError(name))
    assert f"{name}: why; plan it again" in str(problem)


def test_a_token_that_was_refused_before_the_commit_is_a_failure_of_the_moment() -> None:
    error = NotAsked("not asked")
    error.__cause__ = JavaError("NotAuthorizedException")
    assert type(refused(error, "t")) is RetryableError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NoSuchTableException", NoTable),
        ("ForbiddenException", PermanentError),
        ("NotAuthorizedException", PermanentError),
        ("UnsupportedOperationException", Unsupported),
        ("SparkException", RetryableError),
    ],
)
def test_other_failures_say_what_to_do_next(name: str, kind: type[Exception]) -> None:
    assert type(translate(JavaError(name), "reading t")) is kind


def test_pages_that_spark_does_not_read_are_files_that_are_refused_and_no_column() -> None:
    error = JavaError("SparkException", "SparkUnsupportedOperationException", message="Unsupported encoding: RLE_X")
    assert type(translate(error, "rewriting t")) is RefusedFiles


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoClassDefFoundError", "software/amazon/awssdk/core/exception/SdkException"),
        ("NoClassDefFoundError", "Could not initialize class org.apache.iceberg.aws.s3.S3FileIO"),
        ("ClassNotFoundException", "software.amazon.awssdk.core.exception.SdkException"),
        (
            "RuntimeException",
            "ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
        ),
        ("UnsupportedFileSystemException", 'No FileSystem for scheme "s3"'),
    ],
)
def test_an_actor_without_jars_for_s3_says_what_to_set(name: str, message: str) -> None:
    found = translate(JavaError("RuntimeIOException", name, message=message), "reading t")
    assert type(found) is Unsupported
    assert (found.field, found.allowed) == ("location", "LAKEWRIGHT_ALLOW_S3=true")
    assert "set LAKEWRIGHT_ALLOW_S3=true for the actors" in str(found)


def test_another_missing_class_or_file_system_is_no_matter_of_s3() -> None:
    other_class = translate(JavaError("NoClassDefFoundError", message="org/postgresql/Driver"), "reading t")
    assert type(other_class) is RetryableError
    other_scheme = JavaError("UnsupportedFileSystemException", message='No FileSystem for scheme "gs"')
    assert "LAKEWRIGHT_ALLOW_S3" not in str(translate(other_scheme, "reading t"))


def test_a_commit_that_would_drop_deletes_is_not_tried_again_and_planned_again() -> None:
    error = JavaError("DeletesDroppedException", message="later deletes would be dropped: d")
    assert (classify(error), type(refused(error, "t"))) == (Verdict.REFUSED, Conflict)
