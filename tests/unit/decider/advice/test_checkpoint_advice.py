"""Advice to write checkpoints: where the log has been long for a while, and not where it waits for the next one."""

import random
from typing import Any

import pytest

from decider.advice.analysis import former_values, is_in_force
from decider.advice.checkpoint_advice import CHANGE, analyze_checkpoint, judge_checkpoint
from decider.store.tables.advice_records import Advice
from decider.whatif.comparison import CostModel
from shared.policy.policy import Policy
from shared.refusals import Refusal, RefusalCode
from shared.table import TableId
from tests.support.removing_history import HOUR_MS, history, policy

T, PRICES, NEVER = TableId("t"), CostModel(), -1


def advised(checkpoint: int | None, first: int = 0, known: Policy | None = None, **more: Any) -> Advice | None:
    """Return what is advised after some commits from version `first` on, an hour apart."""
    trace = history(**more)
    last = first + len(trace.history.commits) - 1
    trace = history(**more, first_version=first, last_version=last)
    at_ms = trace.history.commits[-1].timestamp_ms
    return analyze_checkpoint(T, trace, known or policy(), checkpoint, PRICES, at_ms)


TEN = {
    "none in 5,000 commits": ((NEVER, 5_000), True),
    "none in 600 commits": ((NEVER, 500), True),
    "one, 5,000 commits ago": ((1_000, 6_000), True),
    "one, 400 commits ago": ((5_700, 6_000), True),
    "one, 300 commits ago": ((5_800, 6_000), True),
    "one, before the older half, not long ago": ((6_000, 6_000), False),
    "one in the middle": ((6_050, 6_000), False),
    "one at the end": ((6_099, 6_000), False),
    "none in 100 commits": ((NEVER, 0), False),
    "a format without any": ((None, 5_000), False),
}


@pytest.mark.parametrize(("given", "is_advised"), TEN.values(), ids=TEN)
def test_of_ten_histories_checkpoints_are_advised_where_the_log_is_long(
    given: tuple[int | None, int], is_advised: bool
) -> None:
    found = advised(*given)
    assert (None if found is None else found.change) == (CHANGE if is_advised else None)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"known": policy(**{"checkpoint-every": "1000"})}, id="on"),
        pytest.param({"known": policy(enabled="false")}, id="off"),
        pytest.param({"commits": 49}, id="too few commits"),
        pytest.param({"every_ms": 60_000}, id="hours"),
        pytest.param({"refusal": Refusal(RefusalCode.QBEAST, "t", "no", "none")}, id="refused"),
    ],
)
def test_nothing_is_advised_without_ground(more: dict[str, Any]) -> None:
    assert advised(NEVER, 5_000, **more) is None


def test_a_log_that_was_short_in_one_half_of_the_history_needs_no_advice() -> None:
    assert advised(NEVER, commits=2_000) is not None
    assert advised(1_000, commits=2_000) is None


def test_of_a_hundred_random_short_histories_no_checkpoint_is_advised() -> None:
    dice = random.Random(3)
    for _ in range(100):
        commits = dice.randrange(2, 100)
        every_ms = dice.randrange(50, 23 * HOUR_MS // commits)
        assert advised(NEVER, dice.randrange(10_000), commits=commits, every_ms=every_ms) is None


def test_the_proof_states_how_long_the_log_is_and_what_opening_costs() -> None:
    found = advised(1_000, 2_000)
    assert found is not None
    log, proof = found.proof.log, found.proof
    assert log is not None
    assert (log.commits, log.checkpoint) == (1_099, 1_000)
    assert proof.current.read_s == pytest.approx(99 * 10 * 1_049.5 * 0.003)
    assert (proof.advised.write_s, proof.advised.read_s) == pytest.approx((2.0, 99 * 10 * 50 * 0.003))
    assert "The newest checkpoint is of version 1,000" in found.message
    assert "There is no checkpoint" in str(getattr(advised(NEVER, 2_000), "message", ""))
    assert former_values(found) == {"lakewright.checkpoint-every": "none"}
    assert Advice.decode(found.encode()) == found
    assert is_in_force(CHANGE, policy(**{"checkpoint-every": "100"}))


def test_it_is_judged_by_the_checkpoints_since() -> None:
    found = advised(NEVER, 2_000)
    assert found is not None
    log = found.proof.log
    assert log is not None
    trace = history(first_version=2_100, last_version=2_199)
    at_ms = trace.history.commits[-1].timestamp_ms
    done, undone = (judge_checkpoint(found, log, trace, one, PRICES, at_ms) for one in (2_150, NEVER))
    assert done is not None
    assert undone is not None
    assert done.saved_share > 0.9
    assert undone.saved_share == pytest.approx(0, abs=0.05)
    assert judge_checkpoint(found, log, history(commits=49), 2_150, PRICES, at_ms) is None
    assert judge_checkpoint(found, log, trace, None, PRICES, at_ms) is None
