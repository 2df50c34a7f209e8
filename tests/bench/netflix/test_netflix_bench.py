"""The mix of tables is the same for every rule, and the figures compare what they say they do."""

import pytest

from shared.policy.policy import Policy
from tests.bench.netflix.__main__ import sums, table
from tests.bench.netflix.figures import OURS, UNTOUCHED, Figure, Totals, figures, periodic, replay_all
from tests.bench.netflix.warehouse import HOUR_MS, WrittenTable, warehouse

TABLES, HOURS = 3, 8


@pytest.fixture(scope="module")
def tables() -> list[WrittenTable]:
    return warehouse(TABLES, HOURS, 7)


@pytest.fixture(scope="module")
def totals(tables: list[WrittenTable]) -> dict[str, Totals]:
    return replay_all(tables, HOURS, [periodic(0), periodic(4)])


def test_a_seed_has_one_mix_whose_first_table_is_written_most(tables: list[WrittenTable]) -> None:
    assert tables == warehouse(TABLES, HOURS, 7) != warehouse(TABLES, HOURS, 8)
    commits = [len(one.history.commits) for one in tables]
    assert commits == sorted(commits, reverse=True)
    assert all(commit.timestamp_ms < HOURS * HOUR_MS for one in tables for commit in one.history.commits)
    assert len({one.queries_per_hour for one in tables}) == TABLES


def test_whole_partitions_cost_more_bytes_and_all_rules_leave_the_same_bytes_to_read(totals: dict[str, Totals]) -> None:
    each, periodically = totals[periodic(0).title], totals[periodic(4).title]
    assert each.files_replaced == each.overwritten
    assert each.bytes_rewritten > periodically.bytes_rewritten > 0
    assert each.scans > periodically.scans > 0
    assert totals[OURS].bytes_rewritten < each.bytes_rewritten
    assert totals[OURS].files_replaced < totals[OURS].overwritten
    assert totals[OURS].end_files < totals[UNTOUCHED].end_files
    assert totals[UNTOUCHED].merges == 0


def test_a_whole_partition_is_merged_into_files_of_the_target_and_one_rest(tables: list[WrittenTable]) -> None:
    from decider.whatif.baselines import ObservedPartition
    from decider.whatif.trace import SimulatedTable

    policy = Policy()
    simulated = SimulatedTable(policy, tables[0].history)
    for commit in tables[0].history.commits:
        simulated.apply(commit)
    partition = next(iter(simulated.partitions.values()))
    (merge,) = periodic(1).propose(ObservedPartition(partition, policy, 0, None))
    assert len(merge.inputs) == partition.files
    assert sum(merge.outputs) == sum(file.size_bytes for file in merge.inputs)
    assert {*merge.outputs[:-1]} <= {policy.target_bytes}
    simulated.merge(partition, [merge])
    assert periodic(1).propose(ObservedPartition(partition, policy, 0, None)) == []


def test_figures_state_their_change_and_whether_netflixs_is_reached(totals: dict[str, Totals]) -> None:
    found = figures(totals, periodic(4).title)
    assert [one.published for one in found] == [-22, -2, -72, -72, -80, -70, -60]
    by_name = {one.name: one for one in found}
    assert by_name["files"].baseline == UNTOUCHED
    assert by_name["compute"].before == totals[periodic(4).title].compute_s
    assert Figure("x", "y", "z", 100, 28, -72).is_reached
    more = Figure("x", "y", "z", 100, 29, -72)
    assert (round(more.change), more.is_reached) == (-71, False)
    assert "| **no** |" in table([more])
    assert OURS in sums(totals)
