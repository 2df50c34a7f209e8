"""Commits that change data are counted by partition where a property needs it, in bounded space."""

from decider.state.commit_counts import MAX_PARTITIONS, NO_COMMITS, CommitCounts
from shared.policy.policy import Policy
from shared.table import PartitionKey
from tests.support.memory_log import commit

A, B = PartitionKey('{"p":"a"}'), PartitionKey('{"p":"b"}')
COUNTING = Policy(compact_every_commits=2)


def test_each_commit_that_changes_data_counts_in_each_partition_that_it_touches() -> None:
    counts = NO_COMMITS.after_commit(commit(), [A, B], COUNTING).after_commit(commit(), [A], COUNTING)
    counts = counts.after_commit(commit(data_change=False), [A, B], COUNTING)
    assert (counts.of(A), counts.of(B), counts.of(PartitionKey("{}"))) == (2, 1, 0)


def test_nothing_is_kept_where_no_property_needs_it() -> None:
    assert CommitCounts({A: 5}).after_commit(commit(), [A], Policy()) is NO_COMMITS
    assert NO_COMMITS.after_commit(commit(), [A], Policy(full_every_commits=9)).of(A) == 1


def test_beyond_the_bound_the_partitions_changed_last_are_kept() -> None:
    counts = CommitCounts({PartitionKey(f"{number}"): 1 for number in range(MAX_PARTITIONS)})
    counts = counts.after_commit(commit(), [PartitionKey("0"), A], COUNTING)
    assert len(counts.counts) == MAX_PARTITIONS
    assert (counts.of(PartitionKey("0")), counts.of(A), counts.of(PartitionKey("1"))) == (2, 1, 0)
