"""Meaning of Delta's exceptions: proof that a commit was refused, or that this release cannot change a table.

Only Delta's own conflict classes prove a refusal. Any other failure leaves the outcome unknown once the log was asked,
because the log store may have written the version before the failure reached us.
"""

import re

from actor.failures import JudgedBy, Meaning, Rule, cause_of
from actor.jvm.errors import first_lines, jvm_class_names
from actor.rewrite.model import Verdict
from shared.errors import Conflict, LakewrightError
from shared.refusals import RefusalReason

_ROOT = "DeltaConcurrentModificationException"
_BUSY = re.compile("DELTA_MAX_COMMIT_RETRIES_EXCEEDED")

RULES: tuple[Rule, ...] = (
    Rule(frozenset({"ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException"}), verdict=Verdict.TAKEN),
    Rule(frozenset({"MetadataChangedException", "ProtocolChangedException"}), verdict=Verdict.CHANGED),
    Rule(frozenset({_ROOT}), verdict=Verdict.REFUSED),
    Rule(text=_BUSY, verdict=Verdict.BUSY),
    Rule(
        frozenset({"DeltaTableFeatureException", "InvalidProtocolVersionException"}),
        Meaning.UNSUPPORTED,
        remedy="this Delta version does not know the table's protocol",
        field="protocol",
    ),
    Rule(
        frozenset({"InvariantViolationException", "InnerInvariantViolationException"}),
        Meaning.REFUSED,
        remedy="rows of these files break a constraint of the table: correct them, or drop the constraint",
        reason=RefusalReason.CONSTRAINT,
    ),
)

_CONFLICTS = frozenset(
    {
        *(_ROOT, "ConcurrentAppendException", "ConcurrentDeleteDeleteException", "ConcurrentDeleteReadException"),
        *("ConcurrentTransactionException", "ConcurrentWriteException", "MetadataChangedException"),
        "ProtocolChangedException",
    }
)


def conflict_kind(error: BaseException) -> str | None:
    """Return the name that Delta gives this conflict, None if the error is no conflict."""
    found = [name for name in jvm_class_names(cause_of(error)) if name in _CONFLICTS]
    return next((name for name in found if name != _ROOT), found[0] if found else None)


def refused(error: BaseException, location: str) -> LakewrightError:
    """Return our error for a commit that was certainly not made: a Conflict for one of Delta's."""
    found = classify(error)
    kind = conflict_kind(error) or (found if found is Verdict.BUSY else None)
    if kind is None:
        return translate(error, f"committing to {location}", so="nothing was committed")
    text = f"the rewrite of {location} was refused ({kind}): {first_lines(cause_of(error))}; plan it again"
    return Conflict(text, kind=kind)


FAILURES = JudgedBy(RULES, refused)
"""Meaning of exceptions of the JVM for tables of this format."""

classify = FAILURES.verdict
translate = FAILURES.translate
