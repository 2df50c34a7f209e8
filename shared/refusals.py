"""A refusal: why a table must not be rewritten; each format decides it by a rule of its own.

The decider asks the rule first, shows the answer on the table and queues nothing; the actor asks the same rule again.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Explained(StrEnum):
    """Base of machine-readable codes, each declared with one sentence for people, and maybe a further text."""

    message: str
    detail: str

    def __new__(cls, code: str, message: str = "", detail: str = "") -> Self:
        """Make a member of what stands behind its name: `NAME = "code", "Sentence."`."""
        made = str.__new__(cls, code)
        made._value_ = code
        made.message, made.detail = message, detail
        return made


class RefusalCode(StrEnum):
    """Machine-readable reason for a refusal."""

    FEATURE = "unsafe_feature"
    PROTOCOL = "unknown_protocol"
    QBEAST = "qbeast"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a table must not be rewritten: `subject` is the feature or property at fault, `action` what to do.

    allows: kinds of jobs that may run all the same, once the owner has switched on the first of them.
    """

    code: RefusalCode
    subject: str
    reason: str
    action: str
    allows: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Short text that identifies this refusal, such as `unsafe_feature:clustering`."""
        return f"{self.code}:{self.subject}"

    @property
    def message(self) -> str:
        """Reason and action as sentences for people, to be put behind the name of the table."""
        return f"{self.reason}. {self.action}."


class RefusalReason(Explained):
    """Why files are not rewritten as they are, by the engine that would have rewritten them; behind it the remedy.

    An engine raises `shared.errors.RefusedFiles` with one of these; what it refuses is remembered with the partition.
    """

    COLUMNS_UNCLEAR = (
        "columns_unclear",
        "The files do not say which of their columns is which column of the table.",
        "Set the table's name mapping, or rewrite the files with the engine that wrote them",
    )
    DIFFERENCE = (
        "difference",
        "The rewritten files held other rows than their inputs, so nothing was committed.",
        "Report this as a bug with the message; the table is unchanged, and a new release tries again",
    )
    UNVERIFIED = (
        "unverified",
        "No independent reader can compare the rewritten files with their inputs, and `proofread` is `strict`.",
        "Set `lakewright.proofread` to another value, or rewrite the files in the table's own engine",
    )
    TYPES = (
        "types",
        "The files have a type whose values a rewrite could not store as they were.",
        "Run OPTIMIZE in the table's own engine",
    )
    DEFAULTS = (
        "defaults",
        "Some files lack a column for which Spark reads a default and other readers read null.",
        "Write the column by an UPDATE of Spark's that sets it to itself",
    )
    DOUBLED = (
        "doubled",
        "A file is live twice, with different deleted rows, so its rows are there twice.",
        "Restore the table to the version before, or delete these rows with Spark",
    )
    BOUNDS = (
        "bounds",
        "The log has no minima and maxima of a clustering column, by which files have their place in cells.",
        "Let the table's writers note statistics of its clustering columns",
    )
    DAMAGED = (
        "damaged",
        "A file is damaged: what it holds is not what its writer wrote.",
        "Restore the file from a backup, or delete its rows",
    )
    INDEX = (
        "index",
        "The rows of a Qbeast index are not in the blocks that the index says, or are mapped in an unknown way.",
        "Optimize the table with Qbeast's own library, or write it again",
    )
    ENCODING = (
        "encoding",
        "Spark does not read the encoding of a file.",
        "Write the file again in another encoding",
    )
    CODEC = (
        "codec",
        "The actor has no codec for a file.",
        "Write the file again with another codec",
    )
    CONSTRAINT = (
        "constraint",
        "Rows of the files break a constraint of the table.",
        "Correct these rows, or drop the constraint",
    )
    PARTITION_SPELLING = (
        "partition_spelling",
        "The files store the value of their partition in several spellings, which readers take for different values.",
        "Nothing for merges, each of which is of one spelling; for removals by key, rewrite the files with one",
    )
    UNSUPPORTED = (
        "unsupported",
        "The actor cannot rewrite the partition as the table is now.",
        "Follow the message; a change of the table's schema or properties lifts the refusal",
    )

    @property
    def remedy(self) -> str:
        """Remedy for people, as one sentence."""
        return self.detail


def explain(reason: str) -> tuple[str, str]:
    """Return message and remedy of a remembered reason, also of one that only a newer release knows."""
    try:
        known = RefusalReason(reason)
    except ValueError:
        return f"The actor refused the files: {reason}.", "Update Lakewright, which does not know this reason"
    return known.message, known.remedy
