"""The four streams that policies are compared on: seeded, so that every run and every machine sees the same commits."""

import random
from collections.abc import Callable, Iterator

from decider.whatif.trace import CommitTrace
from shared.policy.policy import KIB, MIB
from shared.table import Commit, DataFile, PartitionKey, RemovedFile

MINUTE_MS = 60_000
PARTITIONS = 200


def _history(added: Iterator[list[tuple[PartitionKey, int]]]) -> CommitTrace:
    """One commit a minute; each adds the given files."""
    commits = []
    for version, files in enumerate(added):
        named = tuple(DataFile(f"{version:06d}-{n}", size, partition) for n, (partition, size) in enumerate(files))
        commits.append(Commit(version, version * MINUTE_MS, "WRITE", named))
    return CommitTrace((), tuple(commits))


WHOLE = PartitionKey("{}")


def one_mb(commits: int) -> CommitTrace:
    """One file of 1 MiB a commit into one partition."""
    return _history([(WHOLE, MIB)] for _ in range(commits))


def lognormal(commits: int) -> CommitTrace:
    """One file a commit, lognormal with a median of 1 MiB and sigma 1.5 (mean 3.1 MiB), into one partition."""
    dice = random.Random(1)
    return _history([(WHOLE, max(KIB, int(MIB * dice.lognormvariate(0, 1.5))))] for _ in range(commits))


def eight_100kb(commits: int) -> CommitTrace:
    """Eight files of 100 KiB a commit, as eight writing tasks leave them, into one partition."""
    return _history([(WHOLE, 100 * KIB)] * 8 for _ in range(commits))


def mixed_late(commits: int) -> CommitTrace:
    """A daily table of 200 partitions with late data, sizes of every kind, and some overwriting.

    The day's partition gets one to four files a commit. Three commits in ten also bring late data: one to three small
    files into each of one to three earlier partitions, the last days more often. One commit in fifty is a large load
    (32 files of 64 to 512 MiB). One in five hundred overwrites an earlier partition: what makes waiting jobs useless.
    """
    dice = random.Random(2)
    live: dict[PartitionKey, list[DataFile]] = {}
    made = []
    for version in range(commits):
        today = version * PARTITIONS // commits
        sizes = [(today, _size(dice)) for _ in range(dice.randint(1, 4))]
        if today and dice.random() < 0.3:
            for _ in range(dice.randint(1, 3)):
                day = max(0, today - 1 - int(dice.expovariate(1 / 7)))
                sizes += [(day, _size(dice) // 8) for _ in range(dice.randint(1, 3))]
        if dice.random() < 0.02:
            sizes += [(today, dice.randint(64 * MIB, 512 * MIB)) for _ in range(32)]
        files = tuple(
            DataFile(f"{version:06d}-{n}", size, PartitionKey(f'{{"day":"{day:03d}"}}'))
            for n, (day, size) in enumerate(sizes)
        )
        removed: tuple[RemovedFile, ...] = ()
        if today and dice.random() < 0.002:
            partition = PartitionKey(f'{{"day":"{max(0, today - 1 - int(dice.expovariate(1 / 3))):03d}"}}')
            gone = live.pop(partition, [])
            removed = tuple(RemovedFile(file.path, None, file.size_bytes, partition) for file in gone)
        for file in files:
            live.setdefault(file.partition, []).append(file)
        made.append(Commit(version, version * MINUTE_MS, "WRITE", files, removed))
    return CommitTrace((), tuple(made))


def _size(dice: random.Random) -> int:
    """A file of a streaming job with many tasks: lognormal, median 2 MiB, sigma 1.5, at most 400 MiB."""
    return min(400 * MIB, max(16 * KIB, int(2 * MIB * dice.lognormvariate(0, 1.5))))


STREAMS: dict[str, Callable[[int], CommitTrace]] = {
    "one_mb": one_mb,
    "lognormal": lognormal,
    "eight_100kb": eight_100kb,
    "mixed_late": mixed_late,
}
