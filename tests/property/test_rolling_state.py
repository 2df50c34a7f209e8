"""The rolling state of a table is what its live files give, after any commits; write contention stays bounded."""

from hypothesis import given
from hypothesis import strategies as st

from decider.state.batch_files import BatchFiles
from decider.state.contention import MAX_PARTITIONS, NO_CONTENTION, WINDOW_MS
from decider.state.fold import fold
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.table import Commit, CommitOrigin, DataFile, PartitionKey, RemovedFile, TableMetadata
from tests.support.counted_files import count_live_files
from tests.support.folding import commit, file, removed

POLICY = Policy()
HERE = TableMetadata("t-1")
OTHER = PartitionKey('{"dt":"2026-01-02"}')
NOON = 1000 * WINDOW_MS


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 200 * MIB), st.booleans()), max_size=6), max_size=6)
)
def test_folding_any_commits_equals_a_count_of_all_files_of_what_they_leave(
    commits: list[list[tuple[int, int, bool]]],
) -> None:
    """The law of the rolling state: each commit replaces, adds and deletes files of two partitions."""
    live: dict[str, DataFile] = {}
    states: dict[PartitionKey, PartitionStats] = {}
    for version, touched in enumerate(commits):
        added, gone = {}, []
        for number, size, is_kept in touched:
            path = f"f{number}"
            if path in live:
                gone.append(removed(live.pop(path)))
            if is_kept and path not in added:
                more = {"dv_id": "v", "deleted_rows": 3} if size % 3 == 0 else {}
                added[path] = file(path, size, OTHER if number % 2 else WHOLE_TABLE, **more)
        made = fold(commit(version, added=tuple(added.values()), removed=tuple(gone)), HERE, POLICY)
        assert made.rebuild_reason is None
        live |= added
        for partition, change in made.changes.items():
            states[partition] = (states.get(partition, EMPTY_STATS) + change).clamped()
    assert {partition: state for partition, state in states.items() if state != EMPTY_STATS} == count_live_files(
        live.values(), POLICY
    )


actions = st.lists(
    st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 3), st.integers(1, 200 * MIB)), max_size=4
)


@given(st.lists(actions, max_size=6))
def test_repeated_adds_and_removes_within_a_batch_count_once(commits: list[list[tuple[str, int, int]]]) -> None:
    """Delta lets writers add what is live, and remove what is gone; replaying the log, neither changes anything."""
    live: dict[str, DataFile] = {}
    states: dict[PartitionKey, PartitionStats] = {}
    batch = BatchFiles()
    seen: set[str] = set()
    for version, touched in enumerate(commits):
        gone = {f"f{number}" for kind, number, _ in touched if kind == "remove"} & seen
        added = {
            f"f{n}": file(f"f{n}", size, OTHER if n % 2 else WHOLE_TABLE) for kind, n, size in touched if kind == "add"
        }
        removes = tuple(RemovedFile(path, None, 7, WHOLE_TABLE, tags={}) for path in sorted(gone))
        made = fold(commit(version, added=tuple(added.values()), removed=removes), HERE, POLICY, batch)
        assert made.rebuild_reason is None
        live = {path: one for path, one in live.items() if path not in gone} | added
        seen |= added.keys()
        for partition, change in made.changes.items():
            states[partition] = states.get(partition, EMPTY_STATS) + change
    assert {partition: state for partition, state in states.items() if state != EMPTY_STATS} == count_live_files(
        live.values(), POLICY
    )


@given(
    st.lists(
        st.tuples(
            st.integers(NOON, NOON + 10 * WINDOW_MS),
            st.integers(0, 10**9),
            st.lists(st.integers(0, 200), max_size=80, unique=True),
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_heat_stays_bounded(steps: list[tuple[int, int, list[int], bool]]) -> None:
    heat = NO_CONTENTION
    for at_ms, ran_ms, partitions, is_ours in steps:
        commit = Commit(1, at_ms, "MERGE", execution_ms=ran_ms)
        if is_ours:
            commit = Commit(1, at_ms, "OPTIMIZE", data_change=False, origin=CommitOrigin("j", 1))
        heat, hints = heat.after_commit(commit, [PartitionKey(str(partition)) for partition in partitions], at_ms)
        assert hints in (0, 1)
        assert len(heat.windows) <= MAX_PARTITIONS
        assert all(0 <= heat.busy_ratio(partition, at_ms) <= 1 for partition in heat.windows)
