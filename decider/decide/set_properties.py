"""Setting a table's own properties as an action: one ALTER TABLE, and only when a person applies an advice."""

from decider.decide.decision import TableSignals
from decider.decide.table_action import TableProposal
from shared.jobs.payload import SET_PROPERTIES
from shared.layout.eligibility import DecisionReason
from shared.policy.policy import Policy
from shared.queue.model import TimerChange


class PropertiesReason(DecisionReason):
    """Why a table's properties are not set."""

    ONLY_ON_REQUEST = "only_on_request", "Properties are set only when a person applies an advice.", "disabled"


class SetPropertiesAction:
    """When a table's properties are set: never without a request."""

    kind: str = SET_PROPERTIES
    reasons: type[DecisionReason] = PropertiesReason
    is_rewrite: bool = False

    def is_on(self, policy: Policy) -> bool:  # noqa: ARG002 - the protocol's
        """Return False: no owner switches it on."""
        return False

    def evaluate(self, signals: TableSignals, policy: Policy, at_ms: int) -> TableProposal:  # noqa: ARG002 - the protocol's
        """Propose nothing."""
        return TableProposal(PropertiesReason.ONLY_ON_REQUEST)

    def timer(self, signals: TableSignals, policy: Policy, at_ms: int) -> tuple[int, TimerChange] | None:  # noqa: ARG002 - the protocol's
        """Return None: it has no timer."""
        return None


SET_PROPERTIES_ACTION = SetPropertiesAction()
