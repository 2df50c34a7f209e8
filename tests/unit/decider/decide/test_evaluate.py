"""One partition, every action: each gets a decision of its own, and none depends on another's."""

from dataclasses import replace

import pytest

from decider.decide.compaction import COMPACTION
from decider.decide.context import DecisionContext
from decider.decide.decision import DecisionKind, Trigger, TriggerSource
from decider.decide.evaluate import evaluate, evaluate_each
from decider.decide.ledger import decode, encode
from shared.jobs.payload import COMPACT, RewriteKind
from shared.layout.eligibility import Reason
from shared.layout.partition_stats import EMPTY_STATS, file_stats, stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from tests.support.decisions import decide_again
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


def counted(commits: int, policy: Policy, sizes: list[int]) -> tuple[DecisionKind, str, RewriteKind]:
    stats = stats_of_sizes(policy.size_levels, sizes)
    trigger = Trigger(1, TriggerSource.DATA_CHANGE, commits=commits)
    made = evaluate(DecisionContext.of_policy(policy), WHOLE_TABLE, stats, trigger, COMPACTION)
    assert decide_again(decode(encode(made, DecisionContext.of_policy(policy)))).reason is made.reason
    return made.verdict, made.reason, made.rewrite_kind


@pytest.mark.parametrize(
    ("commits", "sizes", "expected"),
    [
        (0, [MIB] * 3, (SKIP, Reason.NO_PROMOTION, RewriteKind.LEVELS)),
        (1, [MIB] * 3, (SKIP, Reason.NO_PROMOTION, RewriteKind.LEVELS)),
        (2, [MIB] * 3, (ENQUEUE, Reason.COMMIT_COUNT_REACHED, RewriteKind.IDLE)),
        (3, [MIB] * 3, (ENQUEUE, Reason.COMMIT_COUNT_REACHED, RewriteKind.FULL)),
        (4, [MIB] * 3, (ENQUEUE, Reason.COMMIT_COUNT_REACHED, RewriteKind.IDLE)),
        (6, [MIB] * 3, (ENQUEUE, Reason.COMMIT_COUNT_REACHED, RewriteKind.FULL)),
        # Nothing to merge: the number alone leads to nothing.
        (6, [9 * MIB], (SKIP, Reason.NO_SMALL_FILES, RewriteKind.LEVELS)),
        (1, [100_000] * 10, (ENQUEUE, Reason.ELIGIBLE, RewriteKind.LEVELS)),
        (2, [100_000] * 10, (ENQUEUE, Reason.COMMIT_COUNT_REACHED, RewriteKind.IDLE)),
    ],
)
def test_a_rewrite_is_due_at_each_multiple_of_the_commits_and_the_greater_one_wins(
    commits: int, sizes: list[int], expected: tuple[DecisionKind, str, RewriteKind]
) -> None:
    assert counted(commits, replace(POLICY, compact_every_commits=2, full_every_commits=3), sizes) == expected


def test_the_number_of_commits_triggers_nothing_without_its_property() -> None:
    assert counted(6, POLICY, [MIB] * 3) == (SKIP, Reason.NO_PROMOTION, RewriteKind.LEVELS)
    only_full = replace(POLICY, full_every_commits=4)
    assert counted(2, only_full, [MIB] * 3)[0] is SKIP
    assert counted(4, only_full, [MIB] * 3)[2] is RewriteKind.FULL


@pytest.mark.parametrize(
    ("commits", "dv_files", "expected"),
    [
        (0, 5, (ENQUEUE, Reason.DELETE_COUNT_REACHED, RewriteKind.FULL)),
        # The greater of two, and nothing where there is nothing to rewrite.
        (2, 5, (ENQUEUE, Reason.DELETE_COUNT_REACHED, RewriteKind.FULL)),
        (0, 0, (SKIP, Reason.NO_SMALL_FILES, RewriteKind.LEVELS)),
    ],
)
def test_a_full_rewrite_is_due_once_the_files_with_deletes_have_reached_their_number(
    commits: int, dv_files: int, expected: tuple[DecisionKind, str, RewriteKind]
) -> None:
    policy = replace(POLICY, compact_every_commits=2, full_every_delete_files=5)
    stats = replace(stats_of_sizes(policy.size_levels, [9 * MIB]), dv_files=dv_files)
    trigger = Trigger(1, TriggerSource.DATA_CHANGE, commits=commits, is_deletes_due=True)
    made = evaluate(DecisionContext.of_policy(policy), WHOLE_TABLE, stats, trigger, COMPACTION)
    assert decide_again(decode(encode(made, DecisionContext.of_policy(policy)))).reason is made.reason
    assert (made.verdict, made.reason, made.rewrite_kind) == expected


def test_the_levels_still_decide_where_the_counted_rewrite_finds_nothing() -> None:
    policy = replace(POLICY, compact_every_commits=2)
    compacted = file_stats(policy.size_levels, 100_000, is_idle_compacted=True)
    stats = sum([compacted] * 10, EMPTY_STATS)
    trigger = Trigger(1, TriggerSource.DATA_CHANGE, commits=2)
    made = evaluate(DecisionContext.of_policy(policy), WHOLE_TABLE, stats, trigger, COMPACTION)
    assert (made.reason, made.rewrite_kind) == (Reason.ELIGIBLE, RewriteKind.LEVELS)
