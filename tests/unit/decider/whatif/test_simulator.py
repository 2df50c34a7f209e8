"""Replays count what a rule does to a history, and the optimum is what it says."""

from dataclasses import replace
from functools import cache

import pytest

from decider.whatif.baselines import PEERS
from decider.whatif.optimize_baseline import optimize_after_each_commit
from decider.whatif.simulator import SimulationResult, replay_lakewright, replay_peer, replay_untouched
from decider.whatif.trace import CommitTrace
from shared.layout.eligibility import evaluate_idle
from shared.layout.partition_stats import IDLE_COMPACTED_TAG, stats_of_files
from shared.partitions import WHOLE_TABLE, partition_key
from shared.policy.policy import MIB, Policy
from shared.table import Commit, DataFile, PartitionColumn, RemovedFile
from tests.bench.offline_optimum import equal_files, neighbours

POLICY = Policy(target_bytes=64 * MIB)
DAY_MS = 24 * 3_600_000
RULES = {rule.name: rule for rule in PEERS}


def file(name: str, size: int = MIB, tags: dict[str, str] | None = None) -> DataFile:
    return DataFile(name, size, WHOLE_TABLE, tags=tags or {})


def stream(commits: int, size: int = MIB) -> CommitTrace:
    return CommitTrace(
        (), tuple(Commit(n, n * 60_000, "WRITE", (DataFile(f"f{n}", size, WHOLE_TABLE),)) for n in range(commits))
    )


def test_our_rule_rewrites_little_more_than_the_optimum_at_the_same_number_of_small_files() -> None:
    done = replay_lakewright(stream(640), POLICY, lag_commits=0)
    assert done.wa <= 1.1 * equal_files(64, done.small_max) / 64
    assert done.jobs == done.scans
    assert done.useless_scans == 0


def test_optimize_after_each_commit_is_the_rule_that_the_demonstration_uses() -> None:
    history = stream(200)
    rewritten = optimize_after_each_commit(
        [{"": [file.size_bytes for file in commit.added]} for commit in history.commits],
        target_bytes=POLICY.target_bytes,
    )
    assert replay_peer(history, POLICY, RULES["delta_optimize_each"]).bytes_rewritten == rewritten


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_peer_never_loses_a_byte_and_leaves_fewer_files_than_nothing_does(name: str) -> None:
    history = stream(300)
    done, nothing = replay_peer(history, POLICY, RULES[name]), replay_untouched(history, POLICY)
    assert done.bytes_added == nothing.bytes_added == 300 * MIB
    assert done.files_at_end < nothing.files_at_end == 300
    assert done.mean_files < nothing.mean_files
    assert done.curve[0].at_ms == 0
    assert done.curve[-1].at_ms == 299 * 60_000


def test_an_hourly_rule_looks_once_an_hour() -> None:
    done = replay_peer(stream(301), POLICY, RULES["delta_optimize_hourly"])
    assert done.scans <= 301 // 60 + 1


def test_a_table_that_moves_between_decision_and_run_makes_a_scan_useless() -> None:
    files = tuple(DataFile(f"f{n}", MIB, WHOLE_TABLE) for n in range(8))
    gone = tuple(RemovedFile(file.path, None, MIB, WHOLE_TABLE) for file in files)
    history = CommitTrace((), (Commit(0, 0, "WRITE", files), Commit(1, 1, "DELETE", (), gone), Commit(2, 2, "WRITE")))
    assert replay_lakewright(history, POLICY, lag_commits=1).useless_scans == 1
    assert replay_lakewright(history, POLICY, lag_commits=0).files_at_end == 0


def test_a_quiet_partition_is_settled_once_and_only_once() -> None:
    made = [Commit(n, n, "WRITE", (DataFile(f"f{n}", MIB, WHOLE_TABLE),)) for n in range(3)]
    other = [Commit(9 + n, (n + 1) * DAY_MS, "WRITE") for n in range(3)]
    done = replay_lakewright(CommitTrace((), (*made, *other)), POLICY)
    assert (done.files_at_end, done.bytes_rewritten) == (1, 3 * MIB)


def test_time_goes_on_after_the_last_commit_and_settles_what_went_quiet() -> None:
    history = stream(3)
    done = replay_lakewright(history, POLICY, tail_ms=DAY_MS)
    assert (done.files_at_end, done.bytes_rewritten, done.span_ms) == (1, 3 * MIB, 120_000)
    # Three files until six quiet hours are over, one from then on.
    assert done.tail_file_ms == 3 * DAY_MS // 4 + 3 * DAY_MS // 4
    assert done.curve[-1].files == 3
    assert replay_untouched(history, POLICY, tail_ms=DAY_MS).tail_file_ms == 3 * DAY_MS
    hourly = replay_peer(history, POLICY, RULES["delta_optimize_hourly"], tail_ms=DAY_MS)
    assert hourly.tail_file_ms == (3 + 23) * DAY_MS // 24


def test_a_replay_touches_no_partition_that_the_decider_would_not() -> None:
    columns = (PartitionColumn("dt", "p1", "string"),)
    partitions = {value: partition_key(columns, {"p1": value}) for value in "ab"}
    history = CommitTrace(
        (),
        tuple(Commit(n, n, "WRITE", (DataFile(f"f{n}", MIB, partitions["ab"[n % 2]]),)) for n in range(100)),
        columns,
    )
    everywhere, there, nowhere = (
        replay_lakewright(history, replace(POLICY, filter=stated), tail_ms=DAY_MS).files_at_end
        for stated in (None, "dt = 'a'", "dt = 'z'")
    )
    assert everywhere < there < nowhere == 100
    assert replay_lakewright(history, replace(POLICY, enabled=False), tail_ms=DAY_MS).files_at_end == 100


def test_full_rewrites_come_at_their_interval_and_not_without_a_commit() -> None:
    policy = replace(POLICY, idle_compaction_after_s=None, full_rewrite_interval_s=3_600)
    hourly = CommitTrace((), tuple(Commit(n, n * 1_800_000, "WRITE", (file(f"f{n}"),)) for n in range(5)))
    assert replay_lakewright(hourly, replace(policy, full_rewrite_interval_s=None), tail_ms=DAY_MS).jobs == 0
    done = replay_lakewright(hourly, policy, tail_ms=DAY_MS)
    # A timer is set by the second file, fires at 1.5 h with three, is set again by the fourth, and fires at 2.5 h.
    assert (done.jobs, done.bytes_rewritten, done.files_at_end) == (2, (3 + 5) * MIB, 1)


def test_rewrites_after_a_number_of_commits_are_replayed() -> None:
    policy = replace(POLICY, idle_compaction_after_s=None, full_every_commits=3)
    history = CommitTrace((), tuple(Commit(n, n * 1_000, "WRITE", (file(f"f{n}"),)) for n in range(7)))
    done = replay_lakewright(history, policy)
    # The third and the sixth commit trigger one each; the seventh file stays.
    assert (done.jobs, done.bytes_rewritten, done.files_at_end) == (2, (3 + 6 - 2) * MIB + 2 * MIB, 2)
    assert replay_lakewright(history, replace(policy, full_every_commits=None)).jobs == 0


def test_a_settling_that_finds_nothing_is_a_useless_scan() -> None:
    # The second file comes a day after two others were idle-compacted: what was idle-compacted once is not settled
    # again.
    history = CommitTrace((), (Commit(0, 0, "WRITE", (file("a"), file("b"))), Commit(1, DAY_MS, "WRITE", (file("c"),))))
    done = replay_lakewright(history, POLICY, tail_ms=DAY_MS)
    rung = evaluate_idle(
        stats_of_files([file("ab", 2 * MIB, {IDLE_COMPACTED_TAG: "1"}), file("c")], POLICY.size_levels), POLICY
    )
    assert (done.jobs, done.files_at_end) == (1, 2)
    assert (done.scans, done.useless_scans) == ((2, 1) if rung.needs_rewrite else (1, 0))


def test_what_one_job_may_not_carry_is_carried_by_the_next() -> None:
    files = tuple(DataFile(f"f{n:04d}", MIB, WHOLE_TABLE) for n in range(640))
    small_jobs = replace(POLICY, max_bytes_per_job=128 * MIB)
    done = replay_lakewright(CommitTrace((), (Commit(0, 0, "WRITE", files),)), small_jobs)
    assert (done.jobs, done.useless_scans, done.files_at_end) == (5, 0, 10)


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_that_acts_late_acts_on_what_lies_there_by_then(name: str) -> None:
    at_once, late = (replay_peer(stream(300), POLICY, RULES[name], lag_commits=lag) for lag in (0, 3))
    assert late.small_max >= at_once.small_max
    assert late.scans < at_once.scans or RULES[name].every_ms
    assert late.jobs <= at_once.jobs


def test_a_later_removal_takes_a_file_out_of_what_it_was_merged_into() -> None:
    history = stream(64)
    gone = tuple(RemovedFile(f"f{n}", None, MIB, WHOLE_TABLE) for n in range(64))
    emptied = CommitTrace((), (*history.commits, Commit(64, 64 * 60_000, "DELETE", (), gone)))
    assert replay_lakewright(emptied, POLICY, lag_commits=0).files_at_end == 0


def replay(name: str, history: CommitTrace, policy: Policy) -> SimulationResult:
    return replay_peer(history, policy, RULES[name]) if name in RULES else replay_lakewright(history, policy, tail_ms=1)


@pytest.mark.parametrize("name", [*sorted(RULES), "lakewright"])
def test_a_partition_that_was_emptied_holds_nothing_of_it_under_any_rule(name: str) -> None:
    files = tuple(DataFile(f"f{n}", 10 * MIB, WHOLE_TABLE) for n in range(100))
    gone = tuple(RemovedFile(file.path, None, file.size_bytes, WHOLE_TABLE) for file in files)
    commits = (
        Commit(0, 0, "WRITE", files),
        Commit(1, 60_000, "DELETE", (), gone),
        Commit(2, 120_000, "WRITE", (DataFile("z", MIB, WHOLE_TABLE),)),
    )
    assert replay(name, CommitTrace((), commits), Policy()).files_at_end == 1


def test_the_optimum_equals_brute_force() -> None:
    @cache
    def one(files: int, slots: int) -> int:
        return 0 if files == 1 else several(files, slots) + files

    @cache
    def several(files: int, slots: int) -> int:
        splits = [one(n, slots) + at_most(files - n, slots - 1) for n in range(1, files)] if slots > 1 else []
        return min(splits, default=10**9)

    def at_most(files: int, slots: int) -> int:
        return min(one(files, slots), several(files, slots))

    for files in range(2, 40):
        for slots in range(2, 8):
            assert equal_files(files, slots) == one(files, slots)


def test_the_optimum_of_uneven_sizes_agrees_with_the_even_one() -> None:
    # The files of one output, then one that is full already: nothing is left that need not be merged.
    assert neighbours([1] * 40 + [40], 6, output_bytes=40) == equal_files(40, 6)
    assert neighbours([5, 5], 2, output_bytes=100) == 0
