"""A warehouse-like mix of tables: Zipf's law for commits and queries, daily partitions, late data, bursts, loads.

Each table is seeded by its rank alone, so that every rule and every machine sees the same commits.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from decider.whatif.trace import CommitTrace
from shared.policy.policy import KIB, MIB
from shared.table import Commit, DataFile, PartitionKey

HOUR_MS = 3_600_000
COMMITS_PER_HOUR = 60.0
"""Of the table that is written most often: one a minute, as a streaming job does."""

ZIPF = 0.8
"""Exponent for commits and for queries, which are dealt to the tables independently."""

LATE_SHARE, LOAD_SHARE, BURST_HOURS, BURST_FACTOR = 0.2, 0.01, 2, 6
"""Commits with late data; commits that are large loads; hours of each day in which a table is written more often."""

QUERIES_PER_HOUR = 30.0
"""Of the table that is read most often; a query reads all of its table."""


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """One table: what was written, and how often it is read."""

    rank: int
    history: CommitTrace
    queries_per_hour: float

    def byte_ms(self, until_ms: int) -> int:
        """Return its bytes integrated over the time from its first commit until a moment; nothing is deleted."""
        return sum(
            file.size_bytes * max(0, until_ms - commit.timestamp_ms)
            for commit in self.history.commits
            for file in commit.added
        )


def warehouse(tables: int, hours: int, seed: int) -> list[WrittenTable]:
    """Return the tables, the one that is written most often first."""
    dice = random.Random(seed)
    by_reads = list(range(1, tables + 1))
    dice.shuffle(by_reads)
    return [
        WrittenTable(rank, CommitTrace((), tuple(_commits(rank, hours, seed))), QUERIES_PER_HOUR * read_rank**-ZIPF)
        for rank, read_rank in enumerate(by_reads, 1)
    ]


def _commits(rank: int, hours: int, seed: int) -> Iterator[Commit]:
    dice = random.Random(seed * 10_000 + rank)
    median = int(64 * KIB * 2 ** dice.uniform(0, 9))
    most_files = dice.choice((1, 2, 4, 8))
    burst_hour = dice.randrange(24)
    at_ms, version = 0.0, 0
    while True:
        is_burst = (at_ms // HOUR_MS - burst_hour) % 24 < BURST_HOURS
        per_hour = COMMITS_PER_HOUR * rank**-ZIPF * (BURST_FACTOR if is_burst else 1)
        at_ms += dice.expovariate(per_hour / HOUR_MS)
        if at_ms >= hours * HOUR_MS:
            return
        yield _commit(dice, version, int(at_ms), median, most_files)
        version += 1


def _commit(dice: random.Random, version: int, at_ms: int, median: int, most_files: int) -> Commit:
    today = at_ms // (24 * HOUR_MS)
    sizes = [(today, _size(dice, median)) for _ in range(dice.randint(1, most_files))]
    if today and dice.random() < LATE_SHARE:
        late = max(0, today - 1 - int(dice.expovariate(1 / 2)))
        sizes += [(late, _size(dice, median) // 8) for _ in range(dice.randint(1, 2))]
    if dice.random() < LOAD_SHARE:
        sizes += [(today, dice.randint(64 * MIB, 256 * MIB)) for _ in range(8)]
    files = tuple(
        DataFile(f"{version:06d}-{n}", size, PartitionKey(f'{{"day":"{day:03d}"}}'))
        for n, (day, size) in enumerate(sizes)
    )
    return Commit(version, at_ms, "WRITE", files)


def _size(dice: random.Random, median: int) -> int:
    return min(256 * MIB, max(4 * KIB, int(median * dice.lognormvariate(0, 1.2))))
