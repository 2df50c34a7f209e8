"""Bytes held over time under a retention: what is removed counts until it has passed."""

import asyncio
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from decider.whatif.storage import HeldStorage, StorageStep, held_storage
from shared.partitions import WHOLE_TABLE
from shared.table import Commit, CommitOrigin, DataFile, RemovedFile
from tests.unit.decider.whatif.test_whatif import Log, _read

HOUR_MS = 3_600_000


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
