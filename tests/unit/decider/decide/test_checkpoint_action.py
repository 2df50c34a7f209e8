"""When a checkpoint is written: after so many commits without one, seen at each multiple of that number."""

import pytest

from decider.decide.checkpoint import CHECKPOINT_ACTION, CheckpointReason
from decider.decide.decision import TableSignals
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

POLICY = Policy(checkpoint_every=100)


@pytest.mark.parametrize(
    ("version", "checkpoint", "reason"),
    [
        (99, -1, CheckpointReason.MANY_COMMITS),
        (98, -1, CheckpointReason.FEW_COMMITS),
        (200, 100, CheckpointReason.MANY_COMMITS),
        (200, 101, CheckpointReason.FEW_COMMITS),
        (200, None, CheckpointReason.NOT_KNOWN),
    ],
)
def test_a_checkpoint_is_written_when_so_many_commits_follow_the_newest(
    version: int, checkpoint: int | None, reason: CheckpointReason
) -> None:
    made = CHECKPOINT_ACTION.evaluate(TableSignals(version, checkpoint=checkpoint), POLICY, 0)
    assert made.reason is reason
    assert (made.prediction is None) == (reason is not CheckpointReason.MANY_COMMITS)


def test_without_the_property_none_is_proposed() -> None:
    made = CHECKPOINT_ACTION.evaluate(TableSignals(10**6, checkpoint=-1), Policy(), 0)
    assert (made.reason, made.prediction) == (CheckpointReason.FEW_COMMITS, None)


@pytest.mark.parametrize(
    ("version", "new", "expected"),
    [
        (98, 1, False),
        (99, 1, True),
        (100, 1, False),
        (150, 64, True),
        (150, 50, False),
        (199, 100, True),
        (5, 6, False),
    ],
)
def test_the_table_is_evaluated_when_its_commits_pass_a_multiple(version: int, new: int, expected: bool) -> None:
    found = CHECKPOINT_ACTION.timer(TableSignals(version, new_commits=new), POLICY, 17)
    assert found == ((17, TimerChange.EARLIER) if expected else None)
    assert CHECKPOINT_ACTION.timer(TableSignals(version, new_commits=new), Policy(), 17) is None
