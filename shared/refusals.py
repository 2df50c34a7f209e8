"""A refusal: why a table must not be rewritten; each format decides it by a rule of its own.

The decider asks the rule first, shows the answer on the table and queues nothing; the actor asks the same rule again.
"""

from dataclasses import dataclass
from enum import StrEnum


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
