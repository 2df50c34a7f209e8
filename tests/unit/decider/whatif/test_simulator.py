"""Replays count what a rule does to a history; rows that are spread over files are estimated from their bounds."""

import asyncio
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.whatif.baselines import PEERS, optimize_after_each_commit
from decider.whatif.simulator import SimulationResult, replay_lakewright, replay_peer, replay_untouched
from decider.whatif.sort_advice import KeyedFiles
from decider.whatif.spread_rows import ROWS, describe_key, spread_rows
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace, with_ranges
from shared.layout.eligibility import evaluate_idle
from shared.layout.partition_stats import IDLE_COMPACTED_TAG, stats_of_files
from shared.partitions import WHOLE_TABLE, partition_key
from shared.policy.policy import MIB, Policy
from shared.table import (
    Commit,
    DataFile,
    PartitionColumn,
    PartitionKey,
    RemovedFile,
    Snapshot,
    TableMetadata,
    TableProtocol,
)
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


def test_a_table_that_moves_between_decision_and_run_makes_a_scan_useless() -> None:
    files = tuple(DataFile(f"f{n}", MIB, WHOLE_TABLE) for n in range(8))
    gone = tuple(RemovedFile(file.path, None, MIB, WHOLE_TABLE) for file in files)
    history = CommitTrace((), (Commit(0, 0, "WRITE", files), Commit(1, 1, "DELETE", (), gone), Commit(2, 2, "WRITE")))
    assert replay_lakewright(history, POLICY, lag_commits=1).useless_scans == 1
    assert replay_lakewright(history, POLICY, lag_commits=0).files_at_end == 0


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


def test_a_filter_that_moves_is_replayed_as_of_each_commit_and_as_time_goes_on() -> None:
    columns = (PartitionColumn("dt", "p1", "string"),)
    first_ms = 20_000 * DAY_MS
    days = [
        partition_key(columns, {"p1": datetime.fromtimestamp((first_ms + n * DAY_MS) / 1000, UTC).date().isoformat()})
        for n in range(3)
    ]
    commits = [
        Commit(n, first_ms + n * DAY_MS // 10, "WRITE", (DataFile(f"f{n}", MIB, days[n // 10]),)) for n in range(30)
    ]
    history = CommitTrace((), tuple(commits), columns)

    def replayed(text: str | None, tail_ms: int = 0) -> tuple[int, int]:
        policy = replace(POLICY, filter=text, idle_compaction_after_s=None)
        done = replay_lakewright(history, policy, tail_ms=tail_ms)
        return done.files_at_end, done.jobs

    assert replayed("dt < current_date")[1] == 2, "each day is merged once it is over"
    assert replayed("dt < current_date", DAY_MS)[1] == 3, "the last one after the last commit"
    assert replayed("dt >= current_date - 1 days") == replayed(None)
    assert replayed("dt < current_date - 9 days") == (30, 0)


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


if TYPE_CHECKING:
    from decider.formats.table_format import TableReader

KEY = PartitionColumn("k", "k", "long")

DAYS = (PartitionKey('{"day":"1"}'), PartitionKey('{"day":"2"}'))
BOUNDS = st.one_of(st.none(), st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 10**6)))
FILES = st.lists(st.tuples(st.integers(1, 10**9), st.sampled_from(DAYS), BOUNDS, BOUNDS), max_size=20)


@given(FILES)
def test_rows_lie_within_the_bounds_of_their_files(drawn: list[tuple[int, PartitionKey, object, object]]) -> None:
    def keyed(at: int, name: str) -> KeyedFiles:
        files = []
        for number, (size, day, *bounds) in enumerate(drawn):
            low_and_width = bounds[at]
            known = None if low_and_width is None else (low_and_width[0], sum(low_and_width))  # type: ignore[index]
            files.append(DataFile(str(number), size, day, key_range=known))
        return KeyedFiles(PartitionColumn(name, name, "long"), tuple(files))

    sides = [keyed(0, "a"), keyed(1, "b")]
    sample = spread_rows(sides)
    rows = [row for partition in sample.partitions for row in partition.rows]
    assert len(drawn) <= len(rows) + 1
    assert len(rows) <= ROWS + len(drawn)
    assert sum(partition.bytes for partition in sample.partitions) == sum(size for size, *_ in drawn)
    for at, side in enumerate(sides):
        known = [file.key_range for file in side.files if file.key_range is not None]
        values = [row[at] for row in rows if row[at] is not None]
        assert (not known) == (not values)
        assert all(min(low for low, _ in known) <= value <= max(high for _, high in known) for value in values)


def test_two_columns_of_a_file_are_spread_evenly_and_apart() -> None:
    def keyed(name: str) -> KeyedFiles:
        return KeyedFiles(PartitionColumn(name, name, "long"), (DataFile("f", 1, DAYS[0], key_range=(0, ROWS - 1)),))

    (partition,) = spread_rows([keyed("a"), keyed("b")]).partitions
    for at in (0, 1):
        assert Counter(row[at] for row in partition.rows) == Counter(range(ROWS))
    # Of the lower half by one column, half are in the lower half by the other.
    both = sum(row[0] < ROWS // 2 and row[1] < ROWS // 2 for row in partition.rows)  # type: ignore[operator]
    assert 0.24 < both / ROWS < 0.26


def test_a_range_reads_nearly_all_files_of_random_keys_and_once_sorted_its_own_share_and_a_file() -> None:
    dice = random.Random(3)
    drawn = (sorted((dice.randrange(1_000_000), dice.randrange(1_000_000))) for _ in range(100))
    files = tuple(DataFile(f"f{at}", MIB, WHOLE_TABLE, key_range=(low, high)) for at, (low, high) in enumerate(drawn))
    found = describe_key(KeyedFiles(KEY, files), MIB)
    assert (found["column"], found["files"], found["files_without_range"]) == ("k", 100, 0)
    assert [one["share"] for one in found["ranges"]] == [0.001, 0.01, 0.1]
    for one in found["ranges"]:
        assert one["share_read_now"] > 0.25
        assert one["share"] <= one["share_read_sorted"] <= one["share"] + 0.02


def test_every_range_reads_the_files_without_bounds_and_none_is_made_up_where_no_file_has_any() -> None:
    unknown = tuple(DataFile(f"f{n}", MIB, WHOLE_TABLE) for n in range(3))
    found = describe_key(KeyedFiles(KEY, unknown), MIB)
    assert (found["files_without_range"], found["ranges"]) == (3, [])
    known = replace(unknown[0], key_range=(0, 1_000))
    ranges = describe_key(KeyedFiles(KEY, (known, *unknown[1:])), MIB)["ranges"]
    assert [one["share_read_now"] for one in ranges] == [1.0] * 3
    assert describe_key(KeyedFiles(KEY, ()), MIB)["ranges"] == []


class Reader:
    """The newest version of a table, which has bounds of every column."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def snapshot_with_ranges(self, column: str) -> Snapshot:
        self.asked.append(column)
        metadata = TableMetadata("t", sort_key=PartitionColumn(column, column, "long"))
        files = (DataFile("a", 1, WHOLE_TABLE, key_range=(1, 2)),)
        return Snapshot(3, 0, metadata, TableProtocol(1, 2), files)


def test_each_column_is_read_once_and_the_tables_own_if_none_is_named() -> None:
    reader, log = Reader(), cast("TableReader", Reader())
    plain = TableTrace("memory:///t", 0, 3, TableMetadata("t"), CommitTrace((), ()), 0, 0, 1)
    assert asyncio.run(with_ranges(log, plain, ())).keyed == ()
    own = asyncio.run(with_ranges(log, replace(plain, metadata=TableMetadata("t", sort_key=KEY)), ()))
    assert [(one.column.name, len(one.files)) for one in own.keyed] == [("k", 1)]
    named = asyncio.run(with_ranges(cast("TableReader", reader), plain, ("x", "y", "x")))
    assert [one.column.name for one in named.keyed] == reader.asked == ["x", "y"]
