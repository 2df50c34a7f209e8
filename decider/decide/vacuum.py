"""Vacuum as an action: delete what no version inside the retention needs, once enough time has passed to delete any.

Which files these are is the actor's to find, on the log and the store. From the removals that commits were folded into
the decider knows when there are some, and how many bytes they hold, without listing anything.
"""

from fractions import Fraction

from decider.decide.decision import Prediction, TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.layout.eligibility import DecisionReason
from shared.layout.removals import Removals
from shared.policy.policy import Policy
from shared.queue.model import TimerChange


class VacuumReason(DecisionReason):
    """Why a table is, or is not, vacuumed."""

    FILES_EXPIRED = "files_expired", "Files were removed longer ago than the retention."
    ORPHANS_DUE = "orphans_due", "The last search for files that no commit names is `orphans-every` ago or longer."
    NOTHING_EXPIRED = "nothing_expired", "No removed file is older than the retention.", "pruned_by_retention"
    VACUUMED_RECENTLY = (
        "vacuumed_recently",
        "Less than `vacuum-every` has passed since the last vacuum.",
        "pruned_by_retention",
    )
    SEVERAL_NAMES = (
        "several_names",
        (
            "The table is registered under another name, too, with metadata of its own: what expires by the one may be "
            "current by the other."
        ),
        "refused",
    )


class VacuumAction:
    """When a table is vacuumed."""

    kind: str = VACUUM
    reasons: type[DecisionReason] = VacuumReason
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:
        """Return whether the owner switched it on."""
        return policy.vacuum

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:
        """Propose a vacuum where removed files have expired, or orphans are due, if the last one is long enough ago."""
        removals = signals.removals
        if signals.twins:
            return TableProposal(VacuumReason.SEVERAL_NAMES)
        if removals.vacuumed_ms and at_ms < removals.vacuumed_ms + policy.vacuum_every_s * 1000:
            return TableProposal(VacuumReason.VACUUMED_RECENTLY)
        files, _ = removals.expired(at_ms - policy.retention_s * 1000)
        due_ms = _orphans_due_ms(removals, policy)
        with_orphans = due_ms is not None and at_ms >= due_ms
        if not files and not with_orphans:
            return TableProposal(VacuumReason.NOTHING_EXPIRED)
        reason = VacuumReason.FILES_EXPIRED if files else VacuumReason.ORPHANS_DUE
        # It rewrites nothing, so it is charged with no bytes.
        predicted = Prediction(0, files, 0, Fraction(max(1, files)), files, 0)
        return TableProposal(reason, predicted, VacuumOptions(with_orphans).encode())

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:  # noqa: ARG002 - the protocol's
        """Evaluate when the oldest removal expires or orphans are due, and not before `vacuum-every` has passed."""
        removals = signals.removals
        first_end_ms = removals.first_end_ms
        expires_ms = None if first_end_ms is None else first_end_ms + policy.retention_s * 1000
        due = [due_ms for due_ms in (expires_ms, _orphans_due_ms(removals, policy)) if due_ms is not None]
        if not due:
            return 0, TimerChange.STOP
        earliest_ms = removals.vacuumed_ms + policy.vacuum_every_s * 1000 if removals.vacuumed_ms else 0
        return max(min(due), earliest_ms), TimerChange.SET


def _orphans_due_ms(removals: Removals, policy: Policy) -> int | None:
    """Return when the store is to be listed again, None if never."""
    return None if policy.orphans_every_s is None else removals.listed_ms + policy.orphans_every_s * 1000


VACUUM_ACTION = VacuumAction()
