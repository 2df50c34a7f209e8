"""Tasks of a proofreader's process and its answers: values that travel between processes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from actor.proofread.model import Rewritten


class Work(StrEnum):
    """Work to be done on a group."""

    ROWS = "rows"  # By DuckDB alone.
    ROWS_AGAIN = "rows_again"  # By the second reader.
    DECODE = "decode"  # The inputs by the second reader, whatever their columns are: which of them it cannot.
    BYTES = "bytes"
    FINGERPRINT = "fingerprint"
    DELETES = "deletes"  # Which rows are deleted, by DuckDB.


@dataclass(frozen=True, slots=True)
class Task:
    """A group to read; secrets: options of DuckDB's secrets by bucket; memory_mib: what DuckDB may take."""

    work: Work
    group: Rewritten
    memory_mib: int
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, hash=False)


class ReadEnding(StrEnum):
    """How reading a group ended."""

    SAME = "same"
    DIFFERENT = "different"
    UNCLEAR = "unclear"  # The format does not say which column is which.
    UNREADABLE = "unreadable"  # By this reader.
    NO_MEMORY = "no_memory"
    DIED = "died"  # The process that read.


@dataclass(frozen=True, slots=True)
class Answer:
    """Findings of a reader; `text` says them for people: what differs, or why nothing was compared. Never values.

    columns and files: that differ. fingerprint: of the inputs' schemas, writers and encodings.
    """

    ending: ReadEnding
    text: str = ""
    rows: int | None = None
    columns: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    cpu_ms: int = 0
