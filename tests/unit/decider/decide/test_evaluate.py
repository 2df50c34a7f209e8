"""One partition, every action: each gets a decision of its own, and none depends on another's."""

import pytest

from decider.decide.compaction import COMPACTION
from decider.decide.context import DecisionContext
from decider.decide.decision import DecisionKind, Trigger
from decider.decide.evaluate import evaluate, evaluate_each
from shared.job_payload import COMPACT
from shared.layout.partition_stats import stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy import MIB, Policy
from tests.support.toy_action import CENSUS, Census

POLICY = Policy(target_bytes=8 * MIB)
ENQUEUE, SKIP = DecisionKind.ENQUEUE, DecisionKind.SKIP


@pytest.mark.parametrize(
    ("sizes", "compact", "census"),
    [
        ([100_000] * 10, ENQUEUE, ENQUEUE),
        ([9 * MIB] * 10, SKIP, ENQUEUE),
        ([9 * MIB], SKIP, SKIP),
    ],
)
def test_a_partition_is_evaluated_for_every_action_in_their_order(
    sizes: list[int], compact: DecisionKind, census: DecisionKind
) -> None:
    context, stats = DecisionContext.of_policy(POLICY), stats_of_sizes(POLICY.size_levels, sizes)
    actions = (COMPACTION, Census())
    made = evaluate_each(context, WHOLE_TABLE, stats, Trigger(1), actions)
    assert [(one.action, one.verdict) for one in made] == [(COMPACT, compact), (CENSUS, census)]
    assert made == tuple(evaluate(context, WHOLE_TABLE, stats, Trigger(1), action) for action in actions)
    backwards = evaluate_each(context, WHOLE_TABLE, stats, Trigger(1), reversed(actions))
    assert backwards == made[::-1]
