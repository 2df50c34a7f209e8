"""Properties are set on request, and by nothing else."""

from decider.decide.decision import TableSignals
from decider.decide.set_properties import SET_PROPERTIES_ACTION, PropertiesReason
from shared.policy.policy import Policy


def test_neither_a_policy_nor_a_commit_has_properties_set() -> None:
    action = SET_PROPERTIES_ACTION
    assert not action.is_on(Policy())
    assert action.timer(TableSignals(9, new_commits=5), Policy(), 0) is None
    made = action.evaluate(TableSignals(9), Policy(), 0)
    assert (made.reason, made.prediction) == (PropertiesReason.ONLY_ON_REQUEST, None)
    assert "person" in made.reason.message
