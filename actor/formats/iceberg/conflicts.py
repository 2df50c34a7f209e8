"""What an exception from Iceberg means for a commit: refused for its inputs, refused for others' speed, or unknown.

Only Iceberg's own classes prove that a commit was refused. Any other failure leaves the outcome unknown, because the
catalog may have accepted the commit before the failure reached us.
"""

import re
from enum import StrEnum

from actor.jvm.errors import first_line, jvm_class_names, matching_line
from shared.errors import LakewrightError, NoTable, PermanentError, RetryableError, Unsupported

_UNKNOWN = "CommitStateUnknownException"
_TAKEN = frozenset({"ValidationException", "MissingRequiredFilesException"})
_BUSY = frozenset({"CommitFailedException", "AlreadyExistsException"})
_MISSING = frozenset({"NoSuchTableException", "NoSuchNamespaceException"})
_UNAUTHORIZED = "NotAuthorizedException"
_FORBIDDEN = frozenset({"ForbiddenException", _UNAUTHORIZED})
_NOT_IN_SPARK = frozenset({"UnsupportedOperationException"})  # A column of a type that Spark does not have.
_WITHOUT_S3 = re.compile(
    r"(NoClassDefFoundError|ClassNotFoundException).*(software[./]amazon[./]awssdk|org[./]apache[./]iceberg[./]aws)"
    r'|No FileSystem for scheme "?s3[an]?\b|S3AFileSystem not found'
)
"""What an actor raises that has no jars for S3: from Iceberg's own client of S3, from Hadoop's, and from neither."""


class IcebergFailure(StrEnum):
    """What a failed commit attempt means."""

    TAKEN = "taken"  # Others removed an input, or deleted rows of one: what is left may still be committed.
    BUSY = "busy"  # Refused because others kept committing first: the same commit may be tried again.
    UNKNOWN = "unknown"  # It may or may not have been made: ask the table.


def classify(error: BaseException) -> IcebergFailure:
    """Return what a failed commit attempt means; an unknown state anywhere in the causes outweighs the rest."""
    names = set(jvm_class_names(error))
    if _UNKNOWN in names:
        return IcebergFailure.UNKNOWN
    if names & _TAKEN:
        return IcebergFailure.TAKEN
    return IcebergFailure.BUSY if names & _BUSY else IcebergFailure.UNKNOWN


def is_token_refused(error: BaseException) -> bool:
    """Whether the catalog did not accept who asks, as it does when a token is no longer valid."""
    return _UNAUTHORIZED in jvm_class_names(error)


def translate(error: BaseException, doing: str) -> LakewrightError:
    """Return our error for a failure of Spark or Iceberg outside of a commit."""
    names, text = set(jvm_class_names(error)), f"{doing}: {first_line(error)}"
    if names & _MISSING:
        return NoTable(text, field="location")
    if names & _FORBIDDEN:
        return PermanentError(f"{text}; check the credentials in LAKEWRIGHT_CATALOGS, and that they may write")
    if matching_line(error, _WITHOUT_S3):
        return Unsupported(
            f"{text}; this actor has no jars for S3: set LAKEWRIGHT_ALLOW_S3=true for the actors (see docs/iceberg.md)",
            field="location",
            allowed="LAKEWRIGHT_ALLOW_S3=true",
        )
    if names & _NOT_IN_SPARK:
        return Unsupported(text, field="schema")
    return RetryableError(text)
