"""With time windows: a window is compacted while it is open, settled once it is over, and never read without result.

The decider's side of each story is what `fold` makes of commits, in which a removal does not tell its window; the
actor's side is the live files.
"""

import random
from collections import Counter
from fractions import Fraction
from itertools import count

import pytest

from decider.decide.compaction_timers import COMPACTION_TIMERS
from decider.state.fold import fold, rewritten_windows
from decider.whatif.simulator import replay_lakewright
from decider.whatif.trace import CommitTrace
from shared.layout.eligibility import evaluate_idle
from shared.layout.file_selection import window_start_ms
from shared.layout.partition_count import count_partitions
from shared.layout.partition_stats import EMPTY_STATS, IDLE_COMPACTED_TAG, WINDOWS_KEPT, PartitionStats, stats_of_files
from shared.layout.planner import Plan, plan, plan_idle_compaction
from shared.partitions import WHOLE_TABLE as PARTITION
from shared.policy.levels import FULL
from shared.policy.policy import MIB, Policy
from shared.queue.model import Timer, TimerChange
from shared.table import Commit, CommitOrigin, DataFile, RemovedFile, TableMetadata
from tests.support.decisions import decide_on_state

MINUTE_MS = 60_000
HERE = TableMetadata("u-1")


class Partition:
    """One partition that is written to, decided on and rewritten; time is the commits' own."""

    def __init__(self, policy: Policy, seen: Counter[str]) -> None:
        self.policy, self.seen = policy, seen
        self.names, self.versions = count(), count(1)
        self.files: dict[str, DataFile] = {}
        self.state = EMPTY_STATS
        self.timers: dict[str, int] = {}
        self.arrived: dict[str, int] = {}

    def windows(self) -> dict[int, list[DataFile]]:
        found: dict[int, list[DataFile]] = {}
        for file in self.files.values():
            found.setdefault(window_start_ms(file, self.policy.time_window_s) or 0, []).append(file)
        return found

    def write(self, sizes: list[int], at_ms: int, *, written_ms: int, removes: int = 0) -> None:
        """Let others commit; what they remove is told without its window."""
        added = [DataFile(f"i{next(self.names)}", size, PARTITION, modified_ms=written_ms) for size in sizes]
        gone = list(self.files.values())[:removes]
        commit = Commit(next(self.versions), at_ms, "WRITE", tuple(added), reported(gone))
        self.take(commit)
        self.change(COMPACTION_TIMERS.after_commit(PARTITION, self.state, self.policy, at_ms, ()))
        made = decide_on_state(PARTITION, self.state, self.policy, commit.version)
        if made.prediction:
            assert 2 <= made.prediction.files_replaced <= self.state.small_files
            self.run(plan(PARTITION, list(self.files.values()), self.policy), at_ms, "levels")

    def run(self, made: Plan, at_ms: int, kind: str) -> None:
        self.seen[kind] += 1
        self.seen[f"{kind} in vain"] += not made.groups
        if not made.groups:
            return
        out = [
            DataFile(f"r{next(self.names)}", g.bytes, PARTITION, modified_ms=at_ms, tags=g.tags) for g in made.groups
        ]
        gone = [file for group in made.groups for file in group.files]
        origin = CommitOrigin("j", next(self.versions))
        commit = Commit(origin.token, at_ms, "OPTIMIZE", tuple(out), reported(gone), data_change=False, origin=origin)
        self.take(commit)
        rewritten = rewritten_windows(commit, self.policy)[PARTITION]
        self.change(COMPACTION_TIMERS.after_rewrite(PARTITION, self.state, self.policy, rewritten))

    def take(self, commit: Commit) -> None:
        for gone in commit.removed:
            del self.files[gone.path]
        self.files |= {file.path: file for file in commit.added}
        self.arrived |= {file.path: commit.timestamp_ms for file in commit.added}
        self.state = (self.state + fold(commit, HERE, self.policy).changes[PARTITION]).clamped()
        size_levels = self.policy.size_levels
        total = stats_of_files(self.files.values(), size_levels)
        assert (self.state.counts, self.state.sizes) == (total.counts, total.sizes)
        assert PartitionStats.decode(self.state.encode()) == self.state
        assert len(self.state.windows) <= WINDOWS_KEPT
        there = {start: stats_of_files(files, size_levels) for start, files in self.windows().items()}
        for start, known in self.state.windows:
            real = there.get(start, EMPTY_STATS)
            assert all(few <= many for few, many in zip(known.counts, real.counts, strict=True))
            assert all(few <= many for few, many in zip(known.sizes, real.sizes, strict=True))

    def change(self, timers) -> None:
        for timer in timers:
            if timer.change is TimerChange.STOP:
                self.timers.pop(timer.name, None)
            elif timer.change is TimerChange.SET or timer.fires_at_ms < self.timers.get(
                timer.name, timer.fires_at_ms + 1
            ):
                self.timers[timer.name] = timer.fires_at_ms

    def pass_time(self, until_ms: int) -> None:
        while due := sorted((at, name) for name, at in self.timers.items() if at <= until_ms):
            at_ms, name = due[0]
            del self.timers[name]
            if evaluate_idle(self.state, self.policy).needs_rewrite:
                closed_ms = at_ms - (self.policy.idle_compaction_after_s or 0) * 1000
                files = list(self.files.values())
                self.run(plan_idle_compaction(PARTITION, files, self.policy, ended_by_ms=closed_ms), at_ms, "settling")


def reported(files: list[DataFile]) -> tuple[RemovedFile, ...]:
    return tuple(RemovedFile(file.path, file.dv_id, file.size_bytes, PARTITION, tags=file.tags) for file in files)


def fresh(files: list[DataFile], policy: Policy) -> list[DataFile]:
    size_levels = policy.size_levels
    return [file for file in files if size_levels.level(file.size_bytes) < FULL and IDLE_COMPACTED_TAG not in file.tags]


@pytest.mark.parametrize("removes", [0, 0.05], ids=["only added to", "deleted from, too"])
def test_a_window_that_is_over_is_settled_while_newer_ones_are_written_to_and_nothing_is_read_in_vain(
    removes: float,
) -> None:
    seen: Counter[str] = Counter()
    dice = random.Random(5)
    for _ in range(24):
        window_s, settle_s = dice.choice([600, 3600, 86_400]), dice.choice([600, 3600, 6 * 3600])
        policy = Policy(
            target_bytes=64 * MIB, tolerance=Fraction(0), time_window_s=window_s, idle_compaction_after_s=settle_s,
            min_input_files=dice.choice([2, 8]),
        )  # fmt: skip
        partition, deletions, at_ms = Partition(policy, seen), 0, 10**12
        gap_ms = window_s * 1000 // dice.choice([2, 6, 30])
        for _ in range(dice.choice([40, 100])):
            at_ms += dice.randint(1, 2 * gap_ms)
            partition.pass_time(at_ms)
            deleted = min(len(partition.files), dice.randint(1, 4)) if dice.random() < removes else 0
            deletions += bool(deleted)
            seen["deletions"] += bool(deleted)
            # Some files were begun in the window before.
            sizes = [dice.choice([MIB, dice.randint(1, 20 * MIB)]) for _ in range(dice.randint(1, 2))]
            partition.write(sizes, at_ms, written_ms=at_ms - dice.choice([0, 0, gap_ms // 2]), removes=deleted)
            for start_ms, files in partition.windows().items():
                if start_ms + (window_s + settle_s) * 1000 < at_ms and not deletions:
                    # Files that came after its end wait for an idle period of their own.
                    end_ms = start_ms + window_s * 1000
                    assert sum(partition.arrived[file.path] < end_ms for file in fresh(files, policy)) <= 1
                    seen["closed windows"] += 1
        partition.pass_time(at_ms + 10 * (window_s + settle_s) * 1000)
        for files in partition.windows().values():
            assert len(fresh(files, policy)) <= 1 + deletions
        seen["windows"] += len(partition.windows())
    print(f"what was met: {dict(seen)}")
    assert min(seen["levels"], seen["settling"]) >= 100
    assert seen["levels in vain"] == 0
    # A deletion may take what a timer was set for, and its window is read once all the same.
    assert seen["settling in vain"] <= seen["deletions"]
    assert seen["settling in vain"] <= 0.05 * seen["settling"]


@pytest.mark.parametrize(("window_s", "gap_min", "commits"), [(3600, 10, 1000), (86_400, 240, 600), (86_400, 5, 2000)])
def test_a_stream_into_windows_has_few_useless_scans_and_one_small_file_for_each_closed_window(
    window_s: int, gap_min: int, commits: int
) -> None:
    def stream(sizes: int) -> CommitTrace:
        times = [(n, n * gap_min * MINUTE_MS) for n in range(sizes)]
        files = [DataFile(f"f{n}", MIB, PARTITION, modified_ms=at_ms) for n, at_ms in times]
        return CommitTrace((), tuple(Commit(n, at_ms, "WRITE", (files[n],)) for n, at_ms in times))

    policy = Policy(time_window_s=window_s)
    done = replay_lakewright(stream(commits), policy, tail_ms=3 * 86_400_000)
    windows = -(-commits * gap_min * 60 // window_s)
    print(f"{commits} commits, {windows} windows: {done.scans} scans, {done.useless_scans} useless, WA {done.wa:.2f}")
    assert done.jobs >= windows - 1
    assert done.useless_scan_share <= 0.02
    # Full files beside the one that is small.
    assert done.files_at_end <= windows + commits * MIB // policy.size_levels.full_bytes
    assert done.wa <= 4


def test_a_rebuild_sets_a_timer_for_each_window_that_is_not_over_and_one_for_all_that_are_overdue() -> None:
    policy = Policy(time_window_s=3600)
    hour = 3_600_000
    files = [DataFile(f"f{n}", MIB, PARTITION, modified_ms=n * hour // 2) for n in range(48)]
    at_ms = 24 * hour
    partitions = count_partitions(files, policy)
    timers = list(COMPACTION_TIMERS.after_rebuild(partitions, policy, at_ms, ()))
    overdue = [timer for timer in timers if timer.fires_at_ms <= at_ms]
    assert len(overdue) == 1
    later = sorted(timer.fires_at_ms for timer in timers if timer.fires_at_ms > at_ms)
    assert later == [at_ms + n * hour for n in range(1, 7)]
    assert len(partitions[PARTITION].state.windows) == WINDOWS_KEPT
    groups = plan_idle_compaction(PARTITION, files, policy, ended_by_ms=at_ms - 6 * hour).groups
    assert len(groups) == 18
    assert isinstance(timers[0], Timer)
