"""When an index is optimized, on figures alone; that the figures are right is tested with the index."""

import random
from dataclasses import replace

import pytest

from decider.decide.decision import TableSignals, Trigger, TriggerSource
from decider.decide.evaluate import not_for_format
from decider.decide.index import INDEX_ACTION, SAMPLING, IndexReason
from decider.decide.signals_text import describe
from decider.decide.table_action import evaluate_table, table_timer
from shared.formats.qbeast.iterations import Strategy
from shared.formats.qbeast.status import index_status
from shared.index.signal import IndexSignal
from shared.index.status import IndexQuery
from shared.jobs.payload import COMPACT
from shared.layout.eligibility import Reason
from shared.policy.policy import Policy
from shared.queue.model import TimerChange
from tests.support.decisions import context_of
from tests.support.qbeast_tree import QbeastTree

POLICY = Policy(index=True, index_every_s=60).with_traits(is_indexed=True, job_kinds="index vacuum checkpoint")
DUE = IndexSignal(3, 4, 4_000, blocks=9, cubes=3, overhang_blocks=2, unindexed_files=1)


def signals(index: IndexSignal | None, commits: int = 0) -> TableSignals:
    return TableSignals(3, index=index, new_commits=commits)


def test_a_job_is_proposed_where_files_are_eligible_and_is_charged_with_their_bytes() -> None:
    found = INDEX_ACTION.evaluate(signals(DUE), POLICY, 0)
    assert found.reason is IndexReason.ELIGIBLE
    assert found.prediction is not None
    assert (found.prediction.files_replaced, found.prediction.bytes) == (4, 4_000)


def test_files_that_samples_read_too_much_of_are_a_reason_of_their_own() -> None:
    found = INDEX_ACTION.evaluate(signals(replace(DUE, next_strategy=SAMPLING)), POLICY, 0)
    assert found.reason is IndexReason.SAMPLE
    assert found.prediction is not None
    assert Strategy.SAMPLING.value == SAMPLING


def test_nothing_is_proposed_without_eligible_files_without_an_index_and_against_a_refusal() -> None:
    none = {
        IndexReason.NOTHING_ELIGIBLE: IndexSignal(3, blocks=9, cubes=9),
        IndexReason.NOT_INDEXED: None,
        IndexReason.REFUSED: IndexSignal(3, 4, 4_000, refusal="the table has no revision 9."),
        IndexReason.DOUBLED: IndexSignal(3, 4, 4_000, newest_by_others=3, doubled="version 3 …"),
    }
    for reason, index in none.items():
        found = INDEX_ACTION.evaluate(signals(index), POLICY, 0)
        assert (found.reason, found.prediction) == (reason, None)


def test_commits_share_an_evaluation_some_time_after_the_first_of_them() -> None:
    timer = table_timer(INDEX_ACTION, signals(None, commits=2), POLICY, 1_000)
    assert timer is not None
    assert (timer.fires_at_ms, timer.change) == (61_000, TimerChange.EARLIER)
    assert table_timer(INDEX_ACTION, signals(DUE), POLICY, 1_000) is None
    plain = Policy(index=True)
    assert table_timer(INDEX_ACTION, signals(None, commits=2), plain, 1_000) is None


def test_an_index_that_is_not_switched_on_is_left_alone_unless_a_person_requests_it() -> None:
    policy = Policy().with_traits(is_indexed=True, job_kinds="index")
    timed = evaluate_table(context_of(policy), signals(DUE), Trigger(3, TriggerSource.TIMER), INDEX_ACTION)
    assert (timed.reason, timed.prediction) == (Reason.SWITCHED_OFF, None)
    request = Trigger(3, TriggerSource.REQUEST, is_forced=True)
    asked = evaluate_table(context_of(policy), signals(DUE), request, INDEX_ACTION)
    assert asked.reason is Reason.REQUESTED


def test_the_signal_of_an_index_names_what_can_be_rewritten_and_not_what_no_release_can() -> None:
    tree = QbeastTree(random.Random(7), cube_size=5)
    for _ in range(10):
        tree.append(tree.new_rows(60))
    tree.append_plainly(tree.new_rows(9))
    status = index_status(tree.snapshot(), IndexQuery())
    assert status is not None
    assert status.rewrites.next is not None
    found = IndexSignal.of(status)
    assert status.rewrites.next.strategy == "leveled"
    assert (found.next_files, found.next_bytes) == (len(status.rewrites.next.paths), status.rewrites.next.bytes)
    assert found.unindexed_files == 1
    assert found.next_strategy == "leveled"
    fresh = index_status(QbeastTree(random.Random(7), cube_size=5).snapshot(), IndexQuery())
    assert fresh is not None
    assert IndexSignal.of(fresh).blocks == 0


def test_the_status_names_no_file_that_no_job_takes() -> None:
    """`tables index` once listed files of other writers as the next ones, which no release of the library indexes."""
    tree = QbeastTree(random.Random(7), cube_size=500)
    tree.append(tree.new_rows(60))
    tree.append_plainly(tree.new_rows(9))
    status = index_status(tree.snapshot(), IndexQuery())
    assert status is not None
    assert (status.unindexed.files, status.rewrites.next) == (1, None)


def test_the_signals_are_described_for_people() -> None:
    text = describe(signals(DUE))
    assert "9 blocks in 3 cubes (fragmentation 3.00), 2 of them overhanging; next: 4 files" in text
    assert "1 file not indexed." in text
    assert "not indexed" not in describe(signals(IndexSignal(3)))
    assert "Others" not in text
    others = describe(signals(IndexSignal(9, newest_by_others=7)))
    assert others.endswith("Others rewrote it lately, the last time in version 7.")
    alarm = describe(signals(IndexSignal(9, newest_by_others=7, doubled="version 7 rewrote f")))
    assert alarm.endswith("the last time in version 7. Alarm: version 7 rewrote f.")
    assert describe(signals(IndexSignal(3, refusal="a reason."))).endswith("The index is not optimized: a reason.")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy().with_traits(job_kinds="index", is_indexed=True), Reason.INDEXED_TABLE),
        (Policy().with_traits(job_kinds="cluster", is_clustered=True), Reason.CLUSTERED_TABLE),
        (Policy().with_traits(job_kinds="other"), Reason.NOT_FOR_FORMAT),
        (Policy().with_traits(is_indexed=True), None),
    ],
)
def test_a_partition_of_an_indexed_table_is_not_compacted_and_the_reason_says_so(
    policy: Policy, expected: Reason | None
) -> None:
    assert not_for_format(policy, COMPACT) is expected
