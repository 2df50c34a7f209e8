"""Reads a whole log for its paths: the newest snapshot, the commits that are still there, and what was live before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from decider.formats.delta.damage import LogFile
from decider.formats.delta.listing import LOG_DIRECTORY, commit_name, read_listing
from decider.formats.delta.log import DeltaLog
from decider.formats.delta.path_health import MissedRemove, MissedRemoves, PathCommit, read_path_commit
from decider.storage.object_reads import ObjectReader, ReadMeter
from decider.storage.stores import ObjectStores
from shared.errors import LakewrightError
from shared.paths.locations import canonical_location
from shared.table import DataFile, Snapshot


@dataclass(frozen=True, slots=True)
class PathHistory:
    """Contents of a log: the newest snapshot, the removes that missed, and the first version (None: none is left).

    `is_whole`: what was live before the first examined commit is known.
    """

    snapshot: Snapshot
    missed: tuple[MissedRemove, ...]
    first_version: int | None
    is_whole: bool


class PathLog:
    """The log of one table."""

    def __init__(self, reads: ObjectReader) -> None:
        self._reads = reads
        self._log = DeltaLog(reads)
        self.location = reads.location

    async def read(self) -> PathHistory:
        """Examine every commit that is there.

        Raises what `DeltaLog.snapshot` raises, and Corrupt for a damaged commit. Commits after the last hole in the
        log are examined; a snapshot needs a checkpoint behind it.
        """
        snapshot = await self._log.snapshot()
        listing = read_listing(await self._reads.list(LOG_DIRECTORY))
        versions = _unbroken([version for version in listing.commits if version <= snapshot.version])
        first = versions.start if versions else None
        base = () if first == 0 else await self._live_before(first)
        removes = MissedRemoves(self.location, base, snapshot.files)
        commits = [commit async for commit in self._commits(versions)]
        missed = await asyncio.to_thread(removes.examine, commits)
        return PathHistory(snapshot, missed, first, is_whole=base is not None)

    async def _live_before(self, first: int | None) -> tuple[DataFile, ...] | None:
        """Return the files live before the first commit, None where no checkpoint has them."""
        if first is None:
            return None
        try:
            return (await self._log.snapshot(first - 1)).files
        except LakewrightError:
            return None

    async def _commits(self, versions: range) -> AsyncIterator[PathCommit]:
        names = [f"{LOG_DIRECTORY}/{commit_name(version)}" for version in versions]
        async with aclosing(self._reads.get_each(names)) as bodies:
            for version in versions:
                body = await anext(bodies)
                if body is not None:
                    yield await asyncio.to_thread(
                        read_path_commit, body, LogFile(self.location, version, commit_name(version))
                    )


def _unbroken(versions: list[int]) -> range:
    """Return the versions behind the last hole."""
    if not versions:
        return range(0)
    first = versions[-1]
    for version in reversed(versions):
        if version < first - 1:
            break
        first = version
    return range(first, versions[-1] + 1)


def open_path_log(location: str, *, meter: ReadMeter, stores: ObjectStores | None = None) -> PathLog:
    """Open the log of the table at a location; raises InvalidInput if there can be none."""
    canonical = canonical_location(location)
    return PathLog(ObjectReader((stores or ObjectStores()).open(canonical), location=canonical, meter=meter))
