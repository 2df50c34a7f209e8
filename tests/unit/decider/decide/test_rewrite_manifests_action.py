"""Manifests are rewritten where many are superfluous, and never because nothing is known of them."""

from fractions import Fraction

import pytest

from decider.decide.decision import TableSignals
from decider.decide.rewrite_manifests import EVALUATED_AFTER_MS, REWRITE_MANIFESTS_ACTION
from decider.decide.signals_text import describe
from shared.layout.manifest_files import ManifestFiles, ManifestReason
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

POLICY = Policy(rewrite_manifests_at=50)


@pytest.mark.parametrize(
    ("manifests", "reason"),
    [
        (ManifestFiles(51, 900, 1), ManifestReason.MANY),
        (ManifestFiles(50, 900, 1), ManifestReason.FEW),
        (ManifestFiles(90, 900, 60), ManifestReason.FEW),
        (None, ManifestReason.MANIFESTS_NOT_KNOWN),
    ],
)
def test_a_rewrite_is_proposed_where_as_many_are_superfluous_as_the_policy_says(
    manifests: ManifestFiles | None, reason: ManifestReason
) -> None:
    made = REWRITE_MANIFESTS_ACTION.evaluate(TableSignals(7, manifests=manifests), POLICY, 0)
    assert made.reason is reason
    if reason is ManifestReason.MANY:
        assert made.prediction is not None
        assert (made.prediction.benefit, made.prediction.bytes) == (Fraction(50), 0)
    else:
        assert made.prediction is None


def test_a_table_is_evaluated_some_time_after_new_commits_and_not_later_for_those_that_follow() -> None:
    timer = REWRITE_MANIFESTS_ACTION.timer
    assert timer(TableSignals(7, new_commits=3), POLICY, 17) == (17 + EVALUATED_AFTER_MS, TimerChange.EARLIER)
    assert timer(TableSignals(7), POLICY, 17) is None
    assert timer(TableSignals(7, new_commits=3), Policy(), 17) is None
    assert (REWRITE_MANIFESTS_ACTION.is_on(POLICY), REWRITE_MANIFESTS_ACTION.is_on(Policy())) == (True, False)


def test_the_record_of_a_decision_has_the_numbers() -> None:
    signals = TableSignals(7, manifests=ManifestFiles(51, 1 << 20, 1))
    assert "51 manifests with 1 MiB, of which 1 would be enough." in describe(signals)
    assert "manifests" not in describe(TableSignals(7))
