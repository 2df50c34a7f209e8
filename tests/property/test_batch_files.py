"""Within one batch of commits no file counts twice: adds of live files and removals of gone ones change nothing.

The model replays the same commits over a dictionary of paths, as Delta does.
"""

import random

import pytest

from decider.state.batch_files import BatchFiles
from decider.state.fold import fold
from shared.layout.partition_stats import CUBE_TAG, EMPTY_STATS, IDLE_COMPACTED_TAG, PartitionStats
from shared.paths.path_keys import canonical_path
from shared.policy.policy import MIB, Policy
from shared.table import Commit, DataFile, PartitionKey, RemovedFile, TableMetadata
from tests.support.counted_files import count_live_files

HERE = TableMetadata("t-1")
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
