"""The error tree: a caller chooses by class what to do next, and reads in the message what, where and what to do.

LakewrightError
├── InvalidInput        a caller passed an invalid value: report it, change nothing
│   ├── NoTable         there is no table at a place: it vanished, or it never was
│   ├── OtherTable      another table lies at the place than the one that was decided on
│   └── Unsupported     a table or a feature that we refuse, with the reason
│       └── RefusedFiles    files that cannot be rewritten until they, their table or this release change
│           └── Difference  outputs hold other rows than their inputs: never committed, never tried again
├── RetryableError      the same call may succeed later: back off, then try again
│   ├── LeaseLost       another actor may own the job: stop, write nothing more
│   └── Conflict        another writer committed first: plan again on the newer snapshot
└── PermanentError      a retry cannot help: quarantine and report
    └── Corrupt         data that contradicts itself (rows lost in a rewrite, a damaged log)
"""

from shared.refusals import RefusalReason
from shared.table import ExaminedTable


class LakewrightError(Exception):
    """Root of every error raised on purpose; `str()` is a sentence for people."""


class InvalidInput(LakewrightError):  # noqa: N818 - the name describes the event
    """Input that cannot be used; `field` names the culprit and `allowed` what would have been accepted."""

    def __init__(self, message: str, *, field: str = "", allowed: str = "") -> None:
        super().__init__(message)
        self.field = field
        self.allowed = allowed


class NoTable(InvalidInput):
    """There is no table at a location; what was known of one is out of date."""


class OtherTable(InvalidInput):
    """The table at a location is not the one that was meant: it was dropped and made again, or the place is wrong."""


class Unsupported(InvalidInput):
    """A table, protocol feature or layout that Lakewright refuses to change; the message names it and the reason."""


class RefusedFiles(Unsupported):
    """Files that are not rewritten as they are: remembered until they, the table's schema or properties, or we change.

    `files` are their paths as the table spells them, empty: all of a group. `examined`: where a job on the table as a
    whole found nothing but what it refuses; None: that is not known.
    """

    def __init__(self, message: str, *, reason: RefusalReason, files: tuple[str, ...] = (), field: str = "") -> None:
        super().__init__(message, field=field)
        self.reason = reason
        self.files = files
        self.examined: ExaminedTable | None = None


class Difference(RefusedFiles):
    """Outputs hold other rows than their inputs; `columns` differ. Nothing was committed, and the outputs are gone."""

    def __init__(self, message: str, *, files: tuple[str, ...] = (), columns: tuple[str, ...] = ()) -> None:
        super().__init__(message, reason=RefusalReason.DIFFERENCE, files=files)
        self.columns = columns


class RetryableError(LakewrightError):
    """A failure of the moment; the same call may succeed later."""


class LeaseLost(RetryableError):  # noqa: N818
    """The lease of a job is lost or can no longer be proven: nothing more may be committed for it."""


class Conflict(RetryableError):  # noqa: N818
    """A concurrent commit took inputs or changed metadata; `kind` is the name Delta gives the conflict."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class PermanentError(LakewrightError):
    """A failure that repeating cannot cure."""


class Corrupt(PermanentError):  # noqa: N818
    """Data that contradicts itself, such as rows in differing from rows out."""
