"""When older rows are removed: once rows were added, and not more often than the owner wants."""

import pytest

from decider.decide.decision import TableSignals
from decider.decide.deduplicate import DEDUPLICATE_ACTION, DeduplicateReason
from shared.jobs.deduplicate_options import DeduplicateOptions
from shared.layout.key_runs import KeyRuns
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

POLICY = Policy(primary_key="id", sequence_by="ts", deduplicate_every_s=100)


def signals(runs: KeyRuns) -> TableSignals:
    return TableSignals(9, key_runs=runs)


@pytest.mark.parametrize(
    ("runs", "at_ms", "reason", "timer"),
    [
        (KeyRuns(), 0, DeduplicateReason.NO_ROWS_ADDED, (0, TimerChange.STOP)),
        (KeyRuns(5), 0, DeduplicateReason.ROWS_ADDED, (0, TimerChange.SET)),
        (KeyRuns(5, 5, 1_000), 10**9, DeduplicateReason.NO_ROWS_ADDED, (0, TimerChange.STOP)),
        (KeyRuns(6, 5, 1_000), 100_999, DeduplicateReason.COMPARED_RECENTLY, (101_000, TimerChange.SET)),
        (KeyRuns(6, 5, 1_000), 101_000, DeduplicateReason.ROWS_ADDED, (101_000, TimerChange.SET)),
    ],
)
def test_a_run_is_due_once_rows_were_added_and_the_last_run_is_long_enough_ago(
    runs: KeyRuns, at_ms: int, reason: DeduplicateReason, timer: tuple[int, TimerChange]
) -> None:
    made = DEDUPLICATE_ACTION.evaluate(signals(runs), POLICY, at_ms)
    assert made.reason is reason
    assert (made.prediction is not None) == (reason is DeduplicateReason.ROWS_ADDED)
    assert DEDUPLICATE_ACTION.timer(signals(runs), POLICY, at_ms) == timer


def test_a_job_begins_where_the_last_run_ended() -> None:
    made = DEDUPLICATE_ACTION.evaluate(signals(KeyRuns(6, 5)), POLICY, 0)
    assert DeduplicateOptions.decode(made.options) == DeduplicateOptions(since_version=5)
    assert DeduplicateOptions.decode({}) == DeduplicateOptions()


def test_it_is_off_without_a_key() -> None:
    assert DEDUPLICATE_ACTION.is_on(POLICY)
    assert not DEDUPLICATE_ACTION.is_on(Policy())
