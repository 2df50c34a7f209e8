"""A merge waits for others of its table, never longer than its bound, and not where it was requested or is urgent."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.decide.company import company_wait_ms, together_after_ms, together_ms, wait_of
from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, DecisionKind, Prediction, Trigger, TriggerSource
from shared.jobs.payload import COMPACT, VACUUM, RewriteKind
from shared.layout.eligibility import Reason
from shared.layout.partition_stats import EMPTY_STATS
from shared.partitions import WHOLE_TABLE
from shared.policy.levels import SMALL_LEVELS
from shared.policy.policy import Policy
from shared.queue.model import IMMEDIATE, Band
from shared.table import PartitionKey, TableId, TableMetadata, TableRef

MINUTE_MS = 60_000
PARTITION = PartitionKey('{"day":"2026-01-01"}')
TABLE = TableRef(TableId("sales.orders"), "orders", "file:///t")
CONTEXT = DecisionContext(TABLE, TableMetadata("", ()), Policy(), at_ms=1_767_225_661_234, commit_every_ms=MINUTE_MS)
ABOVE = (0,) * (SMALL_LEVELS - 1)
STATE = replace(EMPTY_STATS, counts=(20, *ABOVE), sizes=(20, *ABOVE))
DECISION = Decision(
    PARTITION,
    DecisionKind.ENQUEUE,
    Reason.ELIGIBLE,
    STATE,
    Trigger(7, TriggerSource.DATA_CHANGE),
    Prediction(20, 19, 20, Fraction(19), 19, 20),
    action=COMPACT,
)


def ready_ms(context: DecisionContext, decision: Decision = DECISION) -> int:
    """When a job that the queue gets at once becomes ready."""
    return context.at_ms + wait_of(context, decision).quiet_ms


def test_merges_that_were_decided_at_different_times_are_ready_together() -> None:
    first = ready_ms(CONTEXT)
    assert first == CONTEXT.at_ms + 150_000
    joined = replace(CONTEXT, together_ms=together_after_ms(CONTEXT, [DECISION]))
    for later_ms in (1, MINUTE_MS, 149_999):
        assert ready_ms(replace(joined, at_ms=CONTEXT.at_ms + later_ms)) == first
    assert ready_ms(replace(joined, at_ms=first)) == first + 150_000, "what comes later goes with the next"


def test_what_does_not_wait_changes_nothing_for_those_that_do() -> None:
    context = replace(CONTEXT, together_ms=CONTEXT.at_ms + 7)
    requested = with_trigger(source=TriggerSource.REQUEST)(DECISION)
    others = [requested, replace(DECISION, verdict=DecisionKind.SKIP), replace(DECISION, verdict=DecisionKind.DEFER)]
    assert together_after_ms(context, others) == context.together_ms


def test_what_a_rewrite_leaves_waits_as_well() -> None:
    left = replace(DECISION, trigger=replace(DECISION.trigger, source=TriggerSource.OWN_REWRITE))
    assert wait_of(CONTEXT, left) == wait_of(CONTEXT, DECISION) != IMMEDIATE


def with_trigger(**changes: Any) -> Callable[[Decision], Decision]:
    return lambda given: replace(given, trigger=replace(given.trigger, **changes))


@pytest.mark.parametrize(
    "change",
    [
        with_trigger(source=TriggerSource.REQUEST),
        with_trigger(source=TriggerSource.TIMER),
        with_trigger(source=TriggerSource.REBUILD),
        with_trigger(band=Band.URGENT),
        with_trigger(is_forced=True),
        with_trigger(rewrite_kind=RewriteKind.IDLE),
        with_trigger(rewrite_kind=RewriteKind.FULL),
        lambda given: replace(given, action=VACUUM),
        lambda given: replace(given, partition=WHOLE_TABLE),
        lambda given: replace(given, state=replace(STATE, counts=(501, *ABOVE))),
    ],
)
def test_what_was_requested_is_alone_or_could_pass_the_bound_of_small_files_is_ready_at_once(
    change: Callable[[Decision], Decision],
) -> None:
    assert wait_of(CONTEXT, change(DECISION)) == IMMEDIATE


@pytest.mark.parametrize(
    ("every_ms", "max_job_wait_s", "wait_s"),
    [
        (MINUTE_MS, 300, 150),
        (MINUTE_MS, None, 0),
        (MINUTE_MS, 149, 149),
        (MINUTE_MS, 59, 0),
        (10_000, 300, 25),
        (300_000, 300, 300),
        (300_001, 300, 0),
        (0, 300, 0),
    ],
)
def test_a_wait_is_about_three_commits_and_none_where_no_commit_is_expected_meanwhile(
    every_ms: int, max_job_wait_s: int | None, wait_s: int
) -> None:
    wait_ms = company_wait_ms(PARTITION, STATE, every_ms, Policy(max_job_wait_s=max_job_wait_s))
    assert wait_ms == 1_000 * wait_s


@given(st.integers(0, 2**45), st.integers(1, 10**8), st.integers(1, 86_400), st.integers(-(2**40), 2**40))
def test_no_job_waits_longer_than_its_table_says(at_ms: int, every_ms: int, max_job_wait_s: int, left_ms: int) -> None:
    """Whatever the ones before it were to wait, such as under another property, or by a clock that was ahead."""
    policy = Policy(max_job_wait_s=max_job_wait_s)
    context = replace(CONTEXT, at_ms=at_ms, commit_every_ms=every_ms, policy=policy, together_ms=at_ms + left_ms)
    wait = wait_of(context, DECISION)
    assert 0 <= wait.quiet_ms <= wait.max_delay_ms <= 1_000 * max_job_wait_s
    assert wait.max_delay_ms <= 3 * every_ms


@given(st.integers(0, 2**45), st.integers(0, 2**45), st.integers(1, 2**30))
def test_who_waits_is_ready_after_now_and_within_one_wait(before_ms: int, at_ms: int, wait_ms: int) -> None:
    assert 0 < together_ms(before_ms, at_ms, wait_ms) - at_ms <= wait_ms
