"""What an exception from Delta means for a rewrite: inputs taken by others, plan again, or unknown outcome.

Only Delta's own conflict classes prove that a commit was refused. Any other failure during a commit leaves the outcome
unknown, because the log store may have written the version before the failure reached us.
"""

import re
from enum import StrEnum

from actor.jvm.errors import first_line, jvm_class_names, matching_line
from shared.errors import Conflict, LakewrightError, RetryableError, Unsupported

_ROOT = "DeltaConcurrentModificationException"

_TAKEN = frozenset({"ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException"})
_CONFLICTS = _TAKEN | {
    _ROOT,
    "ConcurrentAppendException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
}
_UNREADABLE_ENCODING = re.compile("Unsupported encoding: ")
"""What Spark's reader raises for pages that other writers encode otherwise, such as BYTE_STREAM_SPLIT of DuckDB."""

_BUSY = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"


class CommitFailure(StrEnum):
    """What a failed commit attempt means."""

    TAKEN = "taken"  # Others removed an input: what is left may still be committed.
    CHANGED = "changed"  # Metadata or protocol changed: the table's shape decides whether the files still fit.
    BUSY = "busy"  # Refused because others kept committing first: the same commit may be tried again.
    REFUSED = "refused"  # Another conflict: plan again.
    UNKNOWN = "unknown"  # It may or may not have been written: ask the log.


def conflict_kind(error: BaseException) -> str | None:
    """Return the name that Delta gives this conflict, None if the error is no conflict."""
    found = [name for name in jvm_class_names(error) if name in _CONFLICTS]
    return next((name for name in found if name != _ROOT), found[0] if found else None)


def classify(error: BaseException) -> CommitFailure:
    """Return what a failed commit attempt means."""
    match conflict_kind(error):
        case "ConcurrentDeleteReadException" | "ConcurrentDeleteDeleteException":
            return CommitFailure.TAKEN
        case "MetadataChangedException" | "ProtocolChangedException":
            return CommitFailure.CHANGED
        case None:
            return CommitFailure.BUSY if _BUSY in str(error) else CommitFailure.UNKNOWN
        case _:
            return CommitFailure.REFUSED


def refused(error: BaseException, location: str) -> Conflict:
    """Return our Conflict for one of Delta's."""
    kind = conflict_kind(error) or CommitFailure.BUSY
    return Conflict(f"the rewrite of {location} was refused ({kind}): {first_line(error)}; plan it again", kind=kind)


def translate(error: BaseException, doing: str, *, so: str = "") -> LakewrightError:
    """Return our error for a failure of Spark or Delta outside a commit; `so` is the consequence for the table."""
    names = jvm_class_names(error)
    text, end = f"{doing}: {first_line(error)}", f"; {so}" if so else ""
    if any("UnsupportedTableFeature" in name or name == "InvalidProtocolVersionException" for name in names):
        return Unsupported(f"{text}; this Delta version does not know the table's protocol", field="protocol")
    if matching_line(error, _UNREADABLE_ENCODING):
        return Unsupported(f"{text}{end}; Spark does not read this encoding: write these files again in another one")
    return RetryableError(f"{text}{end}")
