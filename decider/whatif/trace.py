"""A table in a replay: the files that others wrote, as if another rule had merged them.

A file that a rule merged keeps the names of its origins, so that a later removal of an origin takes its bytes out of
whatever file it lies in by then. That is more favorable than reality to every rule, and equally so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from shared.layout.file_selection import window_start_ms
from shared.layout.partition_stats import EMPTY_STATS, IDLE_COMPACTED_TAG, PartitionStats, file_stats
from shared.policy.policy import Policy
from shared.table import Commit, DataFile, PartitionColumn, PartitionKey


@dataclass(frozen=True, slots=True)
class CommitTrace:
    """Trace of the writers of a table: the files at the beginning, and their commits since, oldest first.

    Only commits that change data belong here; a replay decides rewrites itself. `columns` are those
    that the table is partitioned by, whose names a policy's filter uses.
    """

    initial: tuple[DataFile, ...] = ()
    commits: tuple[Commit, ...] = ()
    columns: tuple[PartitionColumn, ...] = ()

    @property
    def bytes_added(self) -> int:
        """Bytes that the commits added."""
        return sum(file.size_bytes for commit in self.commits for file in commit.added)

    @property
    def files_added(self) -> int:
        """Files that the commits added."""
        return sum(len(commit.added) for commit in self.commits)


@dataclass(frozen=True, slots=True)
class SimulatedMerge:
    """Inputs that a rule rewrites together, and the sizes in bytes and the tags of the outputs."""

    inputs: tuple[DataFile, ...]
    outputs: tuple[int, ...]
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(slots=True)
class SimulatedPartition:
    """The live files of one partition by path, and the rolling state of all of them.

    small: below the full size; nearly: full, and yet below the target; full: from the target on.
    """

    key: PartitionKey
    small: dict[str, DataFile] = field(default_factory=dict)
    nearly: dict[str, DataFile] = field(default_factory=dict)
    full: dict[str, DataFile] = field(default_factory=dict)
    state: PartitionStats = EMPTY_STATS

    @property
    def files(self) -> int:
        """Number of live files."""
        return len(self.small) + len(self.nearly) + len(self.full)


class SimulatedTable:
    """All partitions of a table in a replay, changed by the commits of others and by the merges of a rule."""

    def __init__(self, policy: Policy, history: CommitTrace) -> None:
        self.partitions: dict[PartitionKey, SimulatedPartition] = {}
        self.files = 0
        self.small_files = 0
        self._policy = policy
        self._rungs = policy.size_levels
        self._home: dict[str, tuple[SimulatedPartition, str]] = {}
        self._origins: dict[str, tuple[str, ...]] = {}
        self._merged = 0
        # Streams repeat sizes, and what a file of one size adds to a state never changes.
        self._states: dict[tuple[int, bool], PartitionStats] = {}
        # Without removals the location of a file's bytes does not matter, and long streams need not keep it.
        self._remembers = any(commit.removed for commit in history.commits)
        for file in history.initial:
            partition = self._partition(file.partition)
            self._add(partition, file)
            self._home[file.path] = (partition, file.path)

    def apply(self, commit: Commit) -> tuple[SimulatedPartition, ...]:
        """Apply a commit of others and return the partitions that it touched, each once."""
        touched: dict[PartitionKey, SimulatedPartition] = {}
        for gone in commit.removed:
            partition = self._remove_origin(gone.path)
            if partition is not None:
                touched[partition.key] = partition
        for file in commit.added:
            partition = touched[file.partition] = self._partition(file.partition)
            self._add(partition, file)
            self._home[file.path] = (partition, file.path)
        return tuple(touched.values())

    @property
    def typical_file_bytes(self) -> int:
        """Size in bytes that the levels are fitted to; 0 if to none."""
        return self._rungs.typical_file_bytes

    def count_again(self, policy: Policy) -> None:
        """Count every partition again under a policy of the same target and the same full size with other levels."""
        self._policy, self._rungs = policy, policy.size_levels
        self._states.clear()
        for partition in self.partitions.values():
            files = (*partition.small.values(), *partition.nearly.values(), *partition.full.values())
            partition.state = self._known(sum(map(self._state, files), EMPTY_STATS))

    def merge(self, partition: SimulatedPartition, merges: Sequence[SimulatedMerge]) -> None:
        """Replace the inputs of each merge by its outputs, among which the origins are shared in the order of bytes."""
        for merge in merges:
            origins: list[tuple[str, int]] = []
            for file in merge.inputs:
                self._drop(partition, file.path)
                if self._remembers:
                    own = self._origins.pop(file.path, (file.path,))
                    origins += ((path, file.size_bytes // len(own)) for path in own)
            shares = _shared(origins, merge.outputs)
            for size, share in zip(merge.outputs, shares, strict=True):
                self._merged += 1
                name = f"merged-{self._merged:09d}"
                self._add(partition, DataFile(name, size, partition.key, tags=merge.tags))
                if self._remembers:
                    self._origins[name] = share
                    self._home.update(dict.fromkeys(share, (partition, name)))

    def _partition(self, key: PartitionKey) -> SimulatedPartition:
        found = self.partitions.get(key)
        if found is None:
            found = self.partitions[key] = SimulatedPartition(key)
        return found

    def _add(self, partition: SimulatedPartition, file: DataFile) -> None:
        if file.path in partition.small or file.path in partition.nearly or file.path in partition.full:
            self._drop(partition, file.path)
        is_small = file.size_bytes < self._rungs.full_bytes
        if is_small:
            partition.small[file.path] = file
        else:
            (partition.nearly if file.size_bytes < self._rungs.target_bytes else partition.full)[file.path] = file
        partition.state = self._known(partition.state + self._state(file))
        self.files += 1
        self.small_files += is_small

    def _drop(self, partition: SimulatedPartition, path: str) -> DataFile:
        is_small = path in partition.small
        file = (partition.small if is_small else partition.nearly if path in partition.nearly else partition.full).pop(
            path
        )
        partition.state = self._known(partition.state - self._state(file))
        self.files -= 1
        self.small_files -= is_small
        return file

    def _state(self, file: DataFile) -> PartitionStats:
        key = (file.size_bytes, IDLE_COMPACTED_TAG in file.tags)
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = file_stats(self._rungs, file.size_bytes, is_idle_compacted=key[1])
        return found.in_window(window_start_ms(file, self._policy.time_window_s))

    def _known(self, state: PartitionStats) -> PartitionStats:
        return state if self._policy.time_window_s is None else state.clamped()

    def _remove_origin(self, path: str) -> SimulatedPartition | None:
        """Remove a file of others, wherever its bytes are now; None if it is unknown."""
        home = self._home.pop(path, None)
        if home is None:
            return None
        partition, name = home
        rest = tuple(origin for origin in self._origins.pop(name, ()) if origin != path)
        file = self._drop(partition, name)
        if rest:
            share = file.size_bytes * len(rest) // (len(rest) + 1)
            self._origins[name] = rest
            self._add(partition, replace(file, size_bytes=share))
        return partition


def _shared(origins: Sequence[tuple[str, int]], outputs: Sequence[int]) -> list[tuple[str, ...]]:
    """Share origins, given with their bytes, among outputs in their order; each gets one at least, if there are enough.

    An output without an origin would outlive the removal of all that it was made of.
    """
    shares: list[tuple[str, ...]] = []
    position, end_bytes, taken_bytes = 0, 0, 0
    for index, size in enumerate(outputs):
        start = position
        end_bytes += size
        last = len(origins) - (len(outputs) - 1 - index)
        while position < last and (position == start or taken_bytes < end_bytes or last == len(origins)):
            taken_bytes += origins[position][1]
            position += 1
        shares.append(tuple(path for path, _ in origins[start:position]))
    return shares
