"""Peers' rules act exactly where their sources say, and the store is charged for what is kept."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.whatif.baselines import HOUR_MS, PEERS, ObservedPartition
from decider.whatif.storage import HeldStorage, StorageStep, held_storage
from decider.whatif.trace import CommitTrace, SimulatedTable
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import Commit, CommitOrigin, DataFile, RemovedFile
from tests.unit.decider.whatif.test_whatif import Log, _read

TARGET = 1 << 20
POLICY = Policy(target_bytes=TARGET)
RULES = {rule.name: rule for rule in PEERS}


def merges(name: str, *sizes: int, rewritten_ms: int | None = 0, at_ms: int = 1) -> list[tuple[list[int], list[int]]]:
    """Return what a rule makes of a partition with files of these sizes: input sizes and output sizes of each merge."""
    table = SimulatedTable(POLICY, CommitTrace())
    added = tuple(DataFile(f"f{n:04d}", size, WHOLE_TABLE) for n, size in enumerate(sizes))
    (partition,) = table.apply(Commit(0, 0, "WRITE", added))
    look = ObservedPartition(partition, POLICY, at_ms, rewritten_ms)
    if not RULES[name].wants(look):
        return []
    return [([file.size_bytes for file in merge.inputs], list(merge.outputs)) for merge in RULES[name].propose(look)]


def test_delta_takes_whatever_is_below_the_target_and_leaves_bins_of_one() -> None:
    nearly = TARGET - 10
    assert merges("delta_optimize_each", 4, nearly, 6) == [([4, 6, nearly], [TARGET])]
    assert merges("delta_optimize_each", 11, nearly) == []
    assert merges("delta_optimize_each", 4, TARGET) == []


def test_auto_compaction_waits_for_50_files_of_at_most_half_of_the_target() -> None:
    assert merges("delta_auto_compaction", *[8] * 49) == []
    assert merges("delta_auto_compaction", *[8] * 49, TARGET // 2 + 1) == []
    assert merges("delta_auto_compaction", *[8] * 50, TARGET // 2 + 1) == [([8] * 50, [400])]


def test_iceberg_waits_for_5_files_or_more_than_a_target() -> None:
    assert merges("iceberg_defaults", *[8] * 4) == []
    assert merges("iceberg_defaults", *[8] * 4, 3 * TARGET // 4) == []
    assert merges("iceberg_defaults", *[8] * 5) == [([8] * 5, [40])]
    half = TARGET // 2
    assert merges("iceberg_defaults", half, half) == []
    assert merges("iceberg_defaults", half, half + 1) == [([half, half + 1], [TARGET + 1])]


@pytest.mark.parametrize(
    ("total", "outputs"),
    [
        (TARGET - 1, 1),
        (TARGET + TARGET // 20, 1),
        (TARGET + TARGET // 5, 2),
        (TARGET + 3 * TARGET // 4, 2),
        (10 * TARGET + TARGET // 2, 10),
        (10 * TARGET + 7 * TARGET // 8, 11),
    ],
)
def test_iceberg_spreads_a_remainder_where_outputs_grow_by_less_than_a_tenth(total: int, outputs: int) -> None:
    ((inputs, found),) = merges("iceberg_defaults", *[total // 20] * 20, total - total // 20 * 20)
    assert len(found) == outputs
    assert sum(inputs) == sum(found) == total


def test_glue_waits_for_100_files_below_three_quarters() -> None:
    assert merges("fold_100", *[8] * 99, TARGET) == []
    assert merges("fold_100", *[8] * 100) == [([8] * 100, [800])]


def test_amoro_packs_fragments_and_segments_apart() -> None:
    fragment, segment = TARGET // 8, TARGET // 8 + 1
    assert merges("amoro", *[fragment] * 11) == []
    assert merges("amoro", *[8] * 12) == [([8] * 12, [96])]
    # Fewer than a target of segments requests nothing; once fragments do, they are merged as well, by themselves.
    assert merges("amoro", segment, segment) == []
    assert merges("amoro", segment, segment, *[8] * 12) == [([segment] * 2, [2 * segment]), ([8] * 12, [96])]
    # A target of segments of which no two fit into one file requests nothing either.
    large = TARGET // 2 + 1
    assert merges("amoro", large, large) == []
    assert merges("amoro", *[TARGET // 2] * 2) == [([TARGET // 2] * 2, [TARGET])]


def test_amoro_merges_two_fragments_once_an_hour_has_passed() -> None:
    assert merges("amoro", 8, 8, at_ms=HOUR_MS) == []
    assert merges("amoro", 8, 8, at_ms=HOUR_MS + 1) == [([8, 8], [16])]
    assert merges("amoro", 8, at_ms=HOUR_MS + 1) == []


def test_raw_entropy_never_lets_two_small_files_be() -> None:
    assert merges("raw_mse", 8, 8) == [([8, 8], [16])]
    assert merges("raw_mse", 8) == []


def test_a_removed_file_counts_until_the_retention_has_passed() -> None:
    steps = [StorageStep(0, 100, 0), StorageStep(HOUR_MS, 40, 100), StorageStep(4 * HOUR_MS, 0, 0)]
    assert held_storage(0, steps, 0) == HeldStorage(0, (100 + 3 * 40) // 4, 140, 40)
    assert held_storage(0, steps, 7_200) == HeldStorage(7_200, (100 + 2 * 140 + 40) // 4, 140, 40)
    assert held_storage(0, steps, 86_400) == HeldStorage(86_400, (100 + 3 * 140) // 4, 140, 140)
    assert held_storage(7, [], 0) == HeldStorage(0, 7, 7, 7)
    assert held_storage(7, [StorageStep(5, 1, 0)], 0) == HeldStorage(0, 8, 8, 8)


@given(
    steps=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), max_size=8),
    retention_s=st.integers(0, 30),
)
def test_the_figures_are_those_of_a_count_second_by_second(steps: list[tuple[int, int]], retention_s: int) -> None:
    """Each commit adds some bytes and removes half of them a moment later."""
    made = [StorageStep(at_s * 1000, size, size // 2) for at_s, size in sorted(steps)]
    found = held_storage(0, made, retention_s)
    if not made:
        return
    begin_s, end_s = made[0].at_ms // 1000, made[-1].at_ms // 1000

    def held(at_s: int) -> int:
        added = sum(one.added_bytes for one in made if one.at_ms // 1000 <= at_s)
        return added - sum(one.removed_bytes for one in made if one.at_ms // 1000 + retention_s <= at_s)

    assert found.end_bytes == held(end_s)
    if end_s > begin_s:
        assert found.mean_bytes == sum(held(at_s) for at_s in range(begin_s, end_s)) // (end_s - begin_s)
    assert found.peak_bytes >= max(held(at_s) for at_s in range(begin_s, end_s + 1))


def test_a_history_has_the_bytes_of_rewrites_and_not_those_of_a_new_vector() -> None:
    first, second = (DataFile(name, 100, WHOLE_TABLE) for name in ("a", "b"))
    merged = DataFile("c", 150, WHOLE_TABLE)
    gone = [RemovedFile(file.path, None, 100, WHOLE_TABLE) for file in (first, second)]
    marked = replace(merged, dv_id="udv", deleted_rows=1)
    log = Log(
        (
            Commit(0, 0, "WRITE", (first,)),
            Commit(1, 1, "WRITE", (second,)),
            Commit(2, 2, "OPTIMIZE", (merged,), tuple(gone), data_change=False, origin=CommitOrigin("j", 1)),
            Commit(3, 3, "DELETE", (marked,), (RemovedFile("c", None, 150, WHOLE_TABLE),)),
        )
    )
    table = asyncio.run(_read(log))
    changes = [(step.added_bytes, step.removed_bytes) for step in table.storage]
    assert changes == [(100, 0), (100, 0), (150, 200), (0, 0)]
    assert held_storage(table.initial_bytes, table.storage, 0).end_bytes == 150
    assert held_storage(table.initial_bytes, table.storage, 86_400).end_bytes == 350


@given(times_ms=st.lists(st.sampled_from([0, 1, 5 * HOUR_MS, 9 * HOUR_MS]), min_size=2, max_size=7))
def test_whatever_times_commits_have_no_byte_is_removed_before_it_was_added(times_ms: list[int]) -> None:
    """Clocks of writers differ, and a commit may have no time at all, which is 0: both once told negative bytes."""
    commits = tuple(
        Commit(
            *(version, at_ms, "WRITE", (DataFile(f"f{version}", 100, WHOLE_TABLE),)),
            (RemovedFile(f"f{version - 1}", None, 100, WHOLE_TABLE),) if version else (),
        )
        for version, at_ms in enumerate(times_ms)
    )
    table = asyncio.run(_read(Log(commits)))
    steps = [step.at_ms for step in table.storage]
    assert steps == sorted(steps)
    assert [commit.timestamp_ms for commit in table.history.commits] == steps
    assert 0 not in steps or not any(times_ms)
    for retention_s in (0, 3_600, 86_400):
        held = held_storage(table.initial_bytes, table.storage, retention_s)
        assert held.peak_bytes >= held.mean_bytes >= 100
        assert held.end_bytes >= 100
