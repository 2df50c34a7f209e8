"""Table hints and the other outcomes of an event: a hint states that a table may have changed, and nothing else.

A sender must learn at once whether its events are accepted: a malformed body is an error that names the field, and a
valid event that is ignored is counted by reason.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from shared.errors import InvalidInput

MAX_BATCH = 10_000
"""Events in one body; a bucket sends far fewer, and every one of them costs a look-up."""


@dataclass(frozen=True, slots=True)
class TableHint:
    """A canonical location or a registered name, and the version of the commit, if given.

    `catalog_path`: namespaces and name of the table in a catalog; which one of those that are connected is not known.
    `metadata_folder`: canonical location of the folder in which a table of a catalog has a new metadata file.
    """

    location: str | None = None
    name: str | None = None
    version: int | None = None
    catalog_path: tuple[str, ...] = ()
    metadata_folder: str | None = None


class IgnoredReason(StrEnum):
    """Machine-readable reason for an ignored event: of its content, or of the resolution to a table."""

    NOT_A_COMMIT = "not_a_commit"
    UNKNOWN_EVENT = "unknown_event"
    TEST_EVENT = "test_event"
    BAD_KEY = "invalid_object_key"
    BAD_NAME = "invalid_table_name"
    NOT_A_LOCATION = "not_a_table_location"
    ICEBERG = "iceberg_metadata_file"
    UNKNOWN_TABLE = "unknown_table"
    OUTSIDE_ROOTS = "outside_allowed_roots"
    UNKNOWN_LIMIT = "unknown_table_limit"
    NO_TABLE = "table_not_found"
    UNREADABLE = "location_unreadable"
    REMOVED = "table_removed"


@dataclass(frozen=True, slots=True)
class ValidationHandshake:
    """A validation code to return before the source sends events."""

    code: str


@dataclass(frozen=True, slots=True)
class SubscriptionConfirmation:
    """A subscription to confirm, by visiting its URL, before the topic sends events."""

    topic: str
    url: str


Outcome = TableHint | IgnoredReason | ValidationHandshake | SubscriptionConfirmation
"""Outcome of one event."""


@dataclass(frozen=True, slots=True)
class ParsedEvents:
    """The hints of one body, how many of its events were ignored for which reason, and what its sender requests."""

    hints: tuple[TableHint, ...] = ()
    ignored: tuple[tuple[str, int], ...] = ()
    handshake: ValidationHandshake | SubscriptionConfirmation | None = None

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> "ParsedEvents":
        """Sort outcomes of single events, hints each once and in order; raises InvalidInput beyond `MAX_BATCH`."""
        hints: dict[TableHint, None] = {}
        ignored: Counter[str] = Counter()
        handshake: ValidationHandshake | SubscriptionConfirmation | None = None
        for number, outcome in enumerate(outcomes):
            if number >= MAX_BATCH:
                raise too_many("body", "more events in all")
            match outcome:
                case IgnoredReason():
                    ignored[outcome.value] += 1
                case TableHint():
                    hints[outcome] = None
                case ValidationHandshake() | SubscriptionConfirmation():
                    # More than one handshake per body would let a sender trigger many requests.
                    if handshake not in (None, outcome):
                        raise InvalidInput("the body requests two handshakes", field="body", allowed="one handshake")
                    handshake = outcome
        return cls(tuple(hints), tuple(sorted(ignored.items())), handshake)


def too_many(field: str, found: str) -> InvalidInput:
    """Return the error for a list or a body with too many events."""
    return InvalidInput(
        f"{field} has {found}, expected at most {MAX_BATCH}; split it", field=field, allowed=f"{MAX_BATCH} events"
    )
