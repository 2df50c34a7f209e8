"""A failed commit is judged by Iceberg's own classes alone; what they do not prove is unknown."""

from typing import Any

import pytest

from actor.formats.iceberg.conflicts import IcebergFailure, classify, translate
from shared.errors import NoTable, PermanentError, RetryableError, Unsupported


class JavaCause:
    """What py4j shows of a Java exception."""

    def __init__(self, name: str, cause: "JavaCause | None" = None, message: str = "") -> None:
        self._name, self._cause, self._message = name, cause, message or f"about {name}"

    def getClass(self) -> "JavaCause":  # noqa: N802
        return self

    def getSimpleName(self) -> str:  # noqa: N802
        return self._name

    def getMessage(self) -> str:  # noqa: N802
        return self._message

    def getCause(self) -> "JavaCause | None":  # noqa: N802
        return self._cause


def java(*names: str) -> Exception:
    cause = None
    for name in reversed(names):
        cause = JavaCause(name, cause)
    error: Any = RuntimeError("An error occurred while calling o1.commit")
    error.java_exception = cause
    return error  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("names", "failure"),
    [
        (["ValidationException"], IcebergFailure.TAKEN),
        (["RuntimeException", "ValidationException"], IcebergFailure.TAKEN),
        (["CommitFailedException"], IcebergFailure.BUSY),
        (["CommitStateUnknownException", "ValidationException"], IcebergFailure.UNKNOWN),
        (["RuntimeException", "CommitStateUnknownException"], IcebergFailure.UNKNOWN),
        (["ServiceFailureException"], IcebergFailure.UNKNOWN),
        (["SocketTimeoutException"], IcebergFailure.UNKNOWN),
        (["NullPointerException"], IcebergFailure.UNKNOWN),
    ],
)
def test_a_failed_commit_is_judged_by_the_classes_that_iceberg_gave_it(
    names: list[str], failure: IcebergFailure
) -> None:
    assert classify(java(*names)) is failure


def test_an_error_of_python_proves_nothing() -> None:
    assert classify(ConnectionError("ValidationException")) is IcebergFailure.UNKNOWN


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
    assert type(translate(java(name), "reading t")) is kind


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
    error: Any = java("RuntimeIOException")
    error.java_exception = JavaCause("RuntimeIOException", JavaCause(name, message=message))
    found = translate(error, "reading t")
    assert type(found) is Unsupported
    assert (found.field, found.allowed) == ("location", "LAKEWRIGHT_ALLOW_S3=true")
    assert "set LAKEWRIGHT_ALLOW_S3=true for the actors" in str(found)


def test_another_missing_class_or_file_system_is_no_matter_of_s3() -> None:
    for name, message in [
        ("NoClassDefFoundError", "org/postgresql/Driver"),
        ("UnsupportedFileSystemException", 'No FileSystem for scheme "gs"'),
    ]:
        error: Any = java(name)
        error.java_exception = JavaCause(name, message=message)
        assert type(translate(error, "reading t")) is RetryableError
