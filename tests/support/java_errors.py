"""Exceptions of the JVM as py4j shows them, with the ancestors that their classes really have.

A test with a JVM compares the ancestors (`tests/contract/test_failure_classes.py`).
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from py4j.protocol import Py4JError

ANCESTORS: Mapping[str, tuple[str, ...]] = {
    name: tuple(ancestors.split())
    for ancestors, names in {
        # Delta's.
        "DeltaConcurrentModificationException": "ConcurrentAppendException ConcurrentDeleteDeleteException "
        "ConcurrentDeleteReadException ConcurrentTransactionException ConcurrentWriteException "
        "MetadataChangedException ProtocolChangedException",
        "DeltaTableFeatureException": "DeltaUnsupportedTableFeatureException",
        "InvariantViolationException": "DeltaInvariantViolationException",
        "UnsupportedOperationException": "DeltaUnsupportedOperationException ColumnMappingUnsupportedException "
        "DeltaColumnMappingUnsupportedException DeltaCommandUnsupportedWithDeletionVectorsException "
        "DeltaStreamingNonAdditiveSchemaIncompatibleException SparkUnsupportedOperationException",
        "IllegalArgumentException": "DeltaIllegalArgumentException NumberFormatException",
        "ArithmeticException": "DeltaArithmeticException",
        "IndexOutOfBoundsException": "DeltaIndexOutOfBoundsException ArrayIndexOutOfBoundsException",
        # Iceberg's.
        "CleanableFailure RESTException": "BadRequestException ForbiddenException NotAuthorizedException "
        "ServiceUnavailableException",
        "CleanableFailure ValidationException": "CherrypickAncestorCommitException DuplicateWAPCommitException "
        "DeleteException RetryableValidationException",
        "CleanableFailure NoSuchTableException": "NoSuchIcebergTableException",
        "CleanableFailure NoSuchViewException": "NoSuchIcebergViewException",
        "CleanableFailure": "CommitFailedException NoSuchNamespaceException NoSuchTableException NoSuchViewException "
        "ValidationException",
        "RESTException": "ServiceFailureException UnprocessableEntityException NoSuchPlanIdException "
        "NoSuchPlanTaskException",
        # Java's and the stores'.
        "SocketException IOException": "ConnectException NoRouteToHostException",
        "InterruptedIOException IOException": "SocketTimeoutException",
        "SSLException IOException": "SSLHandshakeException",
        "DateTimeException": "DateTimeParseException",
        "IOException": "AccessDeniedException AccessControlException EOFException FileNotFoundException SSLException "
        "UnknownHostException NotSerializableException SafeModeException UnknownStoreException",
        "AwsServiceException": "S3Exception NoSuchBucketException",
        "HttpResponseException": "DataLakeStorageException BlobStorageException",
        "AWSServiceIOException IOException": "AWSServiceThrottledException AWSStatus500Exception",
    }.items()
    for name in names.split()
}
"""By simple name, as far as they matter; Iceberg's `CommitFailedException`, and not Delta's of that name."""


class JavaError(Py4JError):
    """An exception out of the JVM: its class names from the outermost to the innermost cause."""

    def __init__(self, *names: str, message: str | None = "") -> None:
        super().__init__(message or names[0])
        self.java_exception: Any = None
        for name in reversed(names):
            self.java_exception = throwable(java_class(name), message, self.java_exception)


def throwable(of: Any, message: str | None, cause: Any = None) -> Any:
    """Return an exception of a class, which may be the JVM's own object."""
    frame = SimpleNamespace(toString=lambda: "org.example.Reader.read(Reader.java:7)")
    return SimpleNamespace(
        getClass=lambda: of, getMessage=lambda: message, getCause=lambda: cause, getStackTrace=lambda: [frame]
    )


def java_class(name: str) -> Any:
    """Return a class with its ancestors in a row, which is all that is asked of it."""
    above = None
    for one in reversed((name, *ANCESTORS.get(name, ()), "Throwable")):
        above = _class(one, above)
    return above


def _class(name: str, above: Any) -> Any:
    return SimpleNamespace(getSimpleName=lambda: name, getSuperclass=lambda: above, getInterfaces=list)
