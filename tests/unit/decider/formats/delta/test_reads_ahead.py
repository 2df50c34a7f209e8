"""How many commits are requested at once, and how a log is listed: never more in vain than found."""

import asyncio
import json
from contextlib import aclosing

import pytest
from obstore.store import MemoryStore

from decider.formats.delta.listing import Checkpoint, commit_version, read_listing
from decider.formats.delta.log import COMMITS_AHEAD, DeltaLog
from decider.formats.delta.table import DeltaTable
from decider.storage.object_reads import ObjectReader, ReadKind, ReadMeter
from decider.storage.stores import RootedStore
from shared.table import Position, TableMetadata

METADATA = TableMetadata("u")


class Followed:
    """A log of commits without actions, and the requests that following it makes."""

    def __init__(self, commits: int) -> None:
        store = MemoryStore()
        for version in range(1, commits + 1):
            store.put(f"_delta_log/{version:020d}.json", json.dumps({"commitInfo": {}}).encode())
        self.meter = ReadMeter()
        reads = ObjectReader(RootedStore(store), location="memory:///t", meter=self.meter)
        self.table = DeltaTable(DeltaLog(reads), reads)

    def take(self, after: int, most: int = 10_000, *, rejects: bool = False, until: int | None = None) -> int:
        """Take at most so many commits, look at one more if the caller `rejects` it; returns the requests it took."""
        before = self.meter.counts[ReadKind.GET]

        async def run() -> None:
            taken = 0
            async with aclosing(self.table.changes(Position(after), METADATA, until=until)) as commits:
                async for commit in commits:
                    taken += 1
                    assert commit.version == after + taken
                    if taken == most + rejects:
                        return

        asyncio.run(run())
        return self.meter.counts[ReadKind.GET] - before


def test_a_table_that_is_far_behind_is_read_in_full_windows_from_its_second_batch_on() -> None:
    followed = Followed(64 + 5 * COMMITS_AHEAD)
    assert followed.take(0, 64) == 64
    assert followed.take(64, 1, rejects=False) == COMMITS_AHEAD


@pytest.mark.parametrize("taken", [1, 2, 5, 30])
def test_commits_that_a_caller_rejects_are_requested_again_and_few_of_them_in_vain(taken: int) -> None:
    followed = Followed(500)
    requests = sum(followed.take(n * taken, taken, rejects=True) for n in range(10))
    assert requests <= 2 * 10 * taken + 10


@pytest.mark.parametrize("commits", [1, 3, 64, 200])
def test_at_the_end_no_more_requests_fail_than_succeed(commits: int) -> None:
    followed = Followed(commits)
    assert followed.take(0) <= 2 * commits + 1
    assert [followed.take(commits) for _ in range(3)] == [1, 1, 1]


def test_versions_that_events_name_cost_one_request_each_and_nothing_later() -> None:
    followed = Followed(40)
    assert [followed.take(version, until=version + 1) for version in range(40)] == [1] * 40
    assert followed.take(40) == 1


UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def test_everything_but_commits_and_checkpoints_is_passed_over() -> None:
    listing = read_listing(
        [
            f"{3:020d}.json",
            f"{2:020d}.json",
            f"{3:020d}.crc",
            f".{3:020d}.json.crc",
            f"{4:020d}.json.tmp",
            f".tmp/{4:020d}.json",
            f"_staged_commits/{5:020d}.{UUID}.json",
            f"{6:020d}.{UUID}.json",
            f"{1:020d}.{9:020d}.compacted.json",
            f"_sidecars/{UUID}.parquet",
            "_last_checkpoint",
            f"{7:020d}.checkpoint.parquet.tmp",
            f"{7:020d}.checkpoint.not-a-uuid.json",
            "99999999999999999999.json",
            "99999999999999999999.checkpoint.parquet",
            "0000000000000000000\u0667.json",
        ]
    )
    assert listing.commits == (2, 3)
    assert listing.checkpoints == ()
    assert listing.newest == 3


def test_checkpoints_come_newest_first_and_only_whole() -> None:
    names = [
        f"{10:020d}.checkpoint.parquet",
        f"{20:020d}.checkpoint.{1:010d}.{2:010d}.parquet",
        f"{20:020d}.checkpoint.{2:010d}.{2:010d}.parquet",
        f"{30:020d}.checkpoint.{1:010d}.{3:010d}.parquet",
        f"{30:020d}.checkpoint.{3:010d}.{3:010d}.parquet",
        f"{40:020d}.checkpoint.{0:010d}.{0:010d}.parquet",
        f"{25:020d}.checkpoint.{UUID}.json",
        f"{25:020d}.checkpoint.{UUID}.parquet",
    ]
    assert read_listing(names).checkpoints == (
        Checkpoint(25, (names[6],)),
        Checkpoint(25, (names[7],)),
        Checkpoint(20, (names[1], names[2])),
        Checkpoint(10, (names[0],)),
    )
    assert read_listing(names).newest == 25


def test_a_checkpoint_in_one_file_is_preferred_to_parts_of_its_version() -> None:
    parts = [f"{5:020d}.checkpoint.{part:010d}.{2:010d}.parquet" for part in (1, 2)]
    listing = read_listing([*parts, f"{5:020d}.checkpoint.parquet"])
    assert [len(point.parts) for point in listing.checkpoints] == [1, 2]


def test_an_empty_log_has_no_newest_version() -> None:
    assert read_listing([]).newest is None
    assert commit_version("") is None
