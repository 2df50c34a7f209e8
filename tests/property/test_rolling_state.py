"""The rolling state of a table is what its live files give, after any commits; within a batch no file counts twice."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.state.batch_files import BatchFiles
from decider.state.contention import MAX_PARTITIONS, NO_CONTENTION, WINDOW_MS
from decider.state.fold import fold
from shared.layout.partition_stats import CUBE_TAG, EMPTY_STATS, IDLE_COMPACTED_TAG, PartitionStats
from shared.partitions import WHOLE_TABLE
from shared.paths.data_paths import canonical_path
from shared.policy.policy import MIB, Policy
from shared.table import Commit, CommitOrigin, DataFile, PartitionKey, RemovedFile, TableMetadata
from tests.support.memory_log import commit, count_live_files, file, removed

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


PARTITIONS = [PartitionKey(f'{{"dt":"{number}"}}') for number in range(2)]
SPELLINGS = ("{}", "./{}", "x/../{}")
COMMITS = 40


class Story:
    """Commits that repeat themselves, and the files that a replay of them leaves live."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.partition_of: dict[str, PartitionKey] = {}
        base = [self.new_file(f"base{number}") for number in range(6)]
        self.base = tuple(base)
        self.live = {(file.path, file.dv_id): file for file in base}
        self.touched: list[DataFile] = []

    def new_file(self, name: str, dv_id: str | None = None) -> DataFile:
        dice = self.dice
        partition = self.partition_of.setdefault(name, dice.choice(PARTITIONS))
        tags = {tag: "1" for tag in (IDLE_COMPACTED_TAG, CUBE_TAG) if dice.random() < 0.3}
        deleted = dice.randint(1, 5) if dv_id else 0
        return DataFile(name, dice.randint(1, 9 * MIB), partition, dv_id, 10, deleted, dice.randint(0, 10**6), tags)

    def removal(self, file: DataFile) -> RemovedFile:
        path = self.dice.choice(SPELLINGS).format(file.path)
        return RemovedFile(path, file.dv_id, file.size_bytes, file.partition, file.deleted_rows, file.tags)

    def commit(self, version: int) -> Commit:
        """Add new files, add touched ones again, remove live ones, remove those that are gone."""
        dice = self.dice
        added: dict[tuple[str, str | None], DataFile] = {}
        removed: dict[tuple[str, str | None], RemovedFile] = {}
        for _ in range(dice.randint(1, 4)):
            known = dice.choice(self.touched) if self.touched else None
            match dice.choice(("new", "again", "remove", "remove", "twice")):
                case "again" if known is not None:
                    file = self.new_file(known.path, known.dv_id)
                    added[file.path, file.dv_id] = file
                case "remove" if self.live:
                    file = dice.choice(list(self.live.values()))
                    removed[file.path, file.dv_id] = self.removal(file)
                case "twice" if known is not None:
                    removed[known.path, known.dv_id] = self.removal(known)
                case _:
                    file = self.new_file(f"f{version}-{len(added)}", dice.choice([None, "dv"]))
                    added[file.path, file.dv_id] = file
        # The reader refuses a file that one commit both adds and removes.
        for key in removed.keys() & added.keys():
            del removed[key]
        for key in removed:
            gone = self.live.pop(key, None)
            self.touched += [gone] if gone else []
        self.live |= added
        self.touched += added.values()
        spelled = (self._spelled(file) for file in added.values())
        return Commit(version, 0, "WRITE", tuple(spelled), tuple(removed.values()))

    def _spelled(self, file: DataFile) -> DataFile:
        path = self.dice.choice(SPELLINGS).format(file.path)
        return DataFile(
            path,
            file.size_bytes,
            file.partition,
            file.dv_id,
            file.rows,
            file.deleted_rows,
            file.modified_ms,
            file.tags,
        )


@pytest.mark.parametrize("seed", range(200))
def test_a_batch_that_repeats_adds_and_removals_folds_to_what_a_replay_leaves(seed: int) -> None:
    story = Story(seed)
    policy = Policy(target_bytes=8 * MIB)
    state: dict[PartitionKey, PartitionStats] = count_live_files(story.base, policy)
    batch = BatchFiles()
    for version in range(1, COMMITS):
        made = fold(story.commit(version), HERE, policy, batch)
        assert made.rebuild_reason is None
        for partition, change in made.changes.items():
            state[partition] = (state.get(partition, EMPTY_STATS) + change).clamped()
        expected = count_live_files(story.live.values(), policy)
        assert {partition: one for partition, one in state.items() if one.files} == expected, (
            f"seed {seed}, version {version}"
        )


def test_the_story_repeats_itself_and_spells_paths_in_several_ways() -> None:
    """Else the test above would show nothing."""
    story = Story(1)
    commits = [story.commit(version) for version in range(1, COMMITS)]
    keys = [canonical_path(file.path) for commit in commits for file in commit.added]
    assert len(set(keys)) < len(keys)
    assert {file.path for commit in commits for file in commit.added} != set(keys)
    gone = [canonical_path(file.path) for commit in commits for file in commit.removed]
    assert len(set(gone)) < len(gone)


@pytest.mark.parametrize(("is_live", "expected"), [(True, "added again"), (False, "removed again"), (None, "")])
def test_what_earlier_batches_did_is_repeated_only_by_a_file_that_this_batch_has_not_named(
    is_live: bool | None, expected: str
) -> None:
    batch, one = BatchFiles(lambda _: is_live), DataFile("f", 1, PARTITIONS[0])
    gone = RemovedFile("f", None, 1, PARTITIONS[0])
    batch.add(one) if is_live else batch.remove(gone)
    assert expected in batch.repeated
    known = BatchFiles(lambda _: is_live)
    known.remove(gone) if is_live else known.add(one)
    known.add(one)
    known.remove(gone)
    assert not known.repeated
    assert list(known.latest()) == [(("f", None), False)]
