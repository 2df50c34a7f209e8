"""A table's log, read as it is: the newest usable checkpoint, every commit on top of it, and nothing made up.

`_last_checkpoint` is a hint that may be stale, damaged or about another table; the listing decides. A version that
is missing above the checkpoint means that unknown files were added or removed, so it is refused.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from json import loads
from typing import Any, TypeVar

import structlog

from decider.formats.delta import checkpoint
from decider.formats.delta.actions import commit_digest, commit_time_ms, decode_commit
from decider.formats.delta.checkpoint import CheckpointPart
from decider.formats.delta.checkpoint_columns import ColumnReplay, suspicious_files
from decider.formats.delta.checkpoint_limits import DecodedBytes
from decider.formats.delta.damage import LogFile, no_log
from decider.formats.delta.listing import (
    LAST_CHECKPOINT,
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    Checkpoint,
    Listing,
    checksum_name,
    commit_name,
    commit_version,
    read_checksum,
    read_listing,
)
from decider.formats.delta.metadata import check_readable
from decider.formats.delta.replay import SnapshotReplay
from decider.formats.table_format import TableTotals
from decider.state.file_columns import LiveFiles
from decider.storage.object_reads import ObjectReader
from shared.errors import Corrupt, InvalidInput, RetryableError
from shared.paths.boundary import Boundary
from shared.table import MAX_VERSION, Commit, Snapshot, TableMetadata

READ_AHEAD = 8
"""Objects requested at once: enough to hide the latency of a store, few enough to hold them all in memory."""

COMMITS_AHEAD = 16
"""Commits requested at once: they are smaller than parts of checkpoints."""

MAX_CHECKPOINT_BYTES = 1024 * 1024 * 1024
"""Largest part of a checkpoint that is read into memory at once: some ten million files."""

MAX_HINT_BYTES = 16 * 1024 * 1024
"""Largest `_last_checkpoint` or checksum that is read: some writers add the schema, or a thousand files."""

THREAD_BYTES = 256 * 1024
"""From this size on an object is decoded in a thread: it takes milliseconds, which the event loop cannot wait."""

R = TypeVar("R")

log = structlog.get_logger()


class DeltaLog:
    """Reads the log of one table; holds no state of the table itself."""

    def __init__(self, reads: ObjectReader, boundary: Boundary | None = None) -> None:
        """`boundary` limits the files that a table may name; without one its log is read unchecked."""
        self._reads = reads
        self._boundary = boundary
        self.location = reads.location

    async def commits(self, versions: range, metadata: TableMetadata) -> AsyncGenerator[Commit, None]:
        """Yield commits in order up to the first that is missing; `metadata` is what is in force before them.

        Several of them are read at once. Raises Corrupt for a damaged commit, Unsupported if it turns on a feature that
        we cannot read.
        """
        names = [f"{LOG_DIRECTORY}/{commit_name(version)}" for version in versions]
        async with aclosing(self._reads.get_each(names)) as bodies:
            for version in versions:
                body = await anext(bodies)
                if body is None:
                    return
                commit = await self._commit(body, version, metadata)
                metadata = commit.metadata or metadata
                yield commit

    async def commit(self, version: int, metadata: TableMetadata) -> Commit | None:
        """Return one commit, None if there is no such version."""
        async with aclosing(self.commits(range(version, version + 1), metadata)) as found:
            return await anext(found, None)

    async def _commit(self, body: bytes, version: int, metadata: TableMetadata) -> Commit:
        commit = await self._decode(body, version, metadata)
        if commit.protocol is not None:
            check_readable(commit.protocol, self.location)
        if self._boundary is not None:
            external = self._boundary.first_external(self.location, commit.added)
            commit = replace(commit, external=external) if external else commit
        return commit

    def check_place(self) -> None:
        """Raise Unsupported if the table lies outside the boundary by a link; to be called before its log is read."""
        if self._boundary is not None:
            self._boundary.check_table(self.location)

    def check_not_linked(self, names: Iterable[str]) -> None:
        """Raise Unsupported if one of these files lies behind a link inside the table, as an actor does."""
        (self._boundary or Boundary()).check_not_linked(self.location, names)

    async def digest(self, version: int) -> str | None:
        """Return the digest of one commit, None if it does not exist."""
        body = await self._reads.get(f"{LOG_DIRECTORY}/{commit_name(version)}")
        return None if body is None else commit_digest(body)

    async def checksum(self, version: int) -> TableTotals | None:
        """Return what the writer of a version counted, None where it left nothing that can be used."""
        body = await self._reads.get(f"{LOG_DIRECTORY}/{checksum_name(version)}", MAX_HINT_BYTES)
        return None if body is None else read_checksum(body)

    async def versions_after(self, version: int) -> tuple[int, ...]:
        """Return the versions above `version` that have a commit file, ascending; a missing log has none."""
        after = commit_name(version) if version >= 0 else None
        names = await self._reads.list(LOG_DIRECTORY, after=after)
        found = (commit_version(name) for name in names)
        return tuple(sorted(number for number in found if number is not None and number > version))

    async def snapshot(self, version: int | None = None, sort_column: str | None = None) -> Snapshot:
        """Return all live files of a version, the newest by default.

        Ranges of files are ranges of `sort_column`, by default the table's sort key.
        Raises InvalidInput where there is no log or no such version, Corrupt where the log contradicts itself or has
        holes, Unsupported for tables that we cannot read or whose files lie outside the boundary, RetryableError if
        files vanish while they are read.
        """
        replay = SnapshotReplay(sort_column=sort_column)
        snapshot = await self._replayed(version, replay)
        if replay.has_moved_key:
            again = SnapshotReplay(snapshot.metadata.sort_key, sort_column)
            snapshot = await self._replayed(snapshot.version, again)
        if self._boundary is not None:
            self._boundary.check_files(self.location, snapshot.files)
        return snapshot

    async def live_files(self, version: int | None = None) -> LiveFiles:
        """Return the same files for counting, most of them in columns; raises what `snapshot` raises."""
        replay = ColumnReplay()
        found = await self._replayed(version, replay)
        columns = await asyncio.to_thread(replay.remaining)
        if columns is None or replay.has_moved_key:
            return LiveFiles.of(await self.snapshot(found.version))
        if self._boundary is not None:
            suspects = await asyncio.to_thread(suspicious_files, columns)
            self._boundary.check_files(self.location, [*found.files, *suspects])
        return LiveFiles(replace(found, files=()), columns, found.files)

    async def _replayed(self, version: int | None, replay: SnapshotReplay) -> Snapshot:
        """Replay the log up to a version; the files of the result are those that the replay keeps as values."""
        self.check_place()
        listing = await self._listing(await self._hinted(version))
        damage: dict[Checkpoint, Corrupt] = {}
        base = await self._load_checkpoint(listing, version, replay, damage)
        if base is None and listing.is_partial:
            listing = await self._listing(None)
            base = await self._load_checkpoint(listing, version, replay, damage)
        target = self._target(listing, version)
        first = 0 if base is None else base + 1
        await self._refuse_holes(range(first, target + 1), listing, damage)
        timestamp_ms, digest = await self._replay(range(first, target + 1), replay)
        snapshot = replay.snapshot(self._file(target), timestamp_ms)
        check_readable(snapshot.protocol, self.location)
        return replace(snapshot, digest=digest)

    async def checkpoint_parts(self, version: int | None = None) -> tuple[int, list[CheckpointPart]]:
        """Return version and parts of the newest checkpoint up to a version, sidecars included; -1 and none without.

        A checkpoint that is damaged is an error here, and not passed over.
        """
        for point in (await self._listing(None)).checkpoints:
            if version is not None and point.version > version:
                continue
            decoded = DecodedBytes()
            parts = await self._parts(point, LOG_DIRECTORY, point.parts, decoded)
            head = await asyncio.to_thread(checkpoint.read_head, parts)
            sidecars = await self._parts(point, SIDECAR_DIRECTORY, head.sidecars, decoded)
            return point.version, [*parts, *sidecars]
        return -1, []

    async def last_checkpoint(self) -> int | None:
        """Return the version that `_last_checkpoint` names, None if it is missing or cannot be read."""
        return await self._hinted(None)

    async def checkpointed_files(self) -> tuple[int, int] | None:
        """Return version and number of `add` actions that `_last_checkpoint` names, None if it does not name both."""
        hint = await self._last_checkpoint()
        version, files = hint.get("version"), hint.get("numOfAddFiles")
        return (version, files) if type(version) is int and type(files) is int else None

    async def _last_checkpoint(self) -> Mapping[str, Any]:
        """Return the fields of `_last_checkpoint`, none if it is missing or cannot be read."""
        body = await self._reads.get(LAST_CHECKPOINT, MAX_HINT_BYTES)
        try:
            hint = loads(body) if body is not None else {}
        except (ValueError, RecursionError):
            log.info("last_checkpoint_unreadable", location=self.location)
            return {}
        return hint if isinstance(hint, dict) else {}

    async def _hinted(self, version: int | None) -> int | None:
        """Return the version that `_last_checkpoint` names, None if that does not help with the wanted version."""
        found = (await self._last_checkpoint()).get("version")
        is_useful = type(found) is int and 0 <= found <= (MAX_VERSION if version is None else version)
        return found if is_useful else None

    async def _listing(self, hinted: int | None) -> Listing:
        # The name of the hinted commit without its suffix sorts before all files of its version.
        after = None if hinted is None else f"{hinted:020d}"
        names = await self._reads.list(LOG_DIRECTORY, after=after)
        return read_listing(names, is_partial=hinted is not None)

    def _target(self, listing: Listing, version: int | None) -> int:
        newest = listing.newest
        if newest is None:
            raise no_log(self.location)
        if version is not None and not 0 <= version <= newest:
            raise InvalidInput(
                f"{self.location}: there is no version {version}", field="version", allowed=f"0 to {newest}"
            )
        return newest if version is None else version

    async def _load_checkpoint(
        self, listing: Listing, version: int | None, replay: SnapshotReplay, damage: dict[Checkpoint, Corrupt]
    ) -> int | None:
        """Load the newest checkpoint that can be read, and return its version; note the damage of those that cannot."""
        for point in listing.checkpoints:
            if point in damage or (version is not None and point.version > version):
                continue
            try:
                await self._load(point, replay)
            except Corrupt as problem:
                damage[point] = problem
                log.warning("checkpoint_unusable", location=self.location, version=point.version, reason=str(problem))
                continue
            return point.version
        return None

    async def _load(self, point: Checkpoint, replay: SnapshotReplay) -> None:
        decoded = DecodedBytes()
        parts = await self._parts(point, LOG_DIRECTORY, point.parts, decoded)
        head = await asyncio.to_thread(checkpoint.read_head, parts, replay.sort_column)
        check_readable(head.protocol, self.location)
        columns, sort_key = head.metadata.partition_columns, replay.sort_key or head.metadata.sort_key
        files = [await asyncio.to_thread(replay.read, part, columns, sort_key) for part in parts]
        for start in range(0, len(head.sidecars), READ_AHEAD):
            names = head.sidecars[start : start + READ_AHEAD]
            sidecars = await self._parts(point, SIDECAR_DIRECTORY, names, decoded)
            files += [await asyncio.to_thread(replay.read, part, columns, sort_key) for part in sidecars]
        replay.start(head.metadata, head.protocol)
        for some in files:
            replay.take(some)

    async def _parts(
        self, point: Checkpoint, directory: str, names: tuple[str, ...], decoded: DecodedBytes
    ) -> list[CheckpointPart]:
        below = directory.removeprefix(LOG_DIRECTORY).lstrip("/")
        parts: list[CheckpointPart] = []
        for start in range(0, len(names), READ_AHEAD):
            some = names[start : start + READ_AHEAD]
            bodies = await asyncio.gather(
                *(self._reads.get_large(f"{directory}/{name}", MAX_CHECKPOINT_BYTES) for name in some)
            )
            for name, body in zip(some, bodies, strict=True):
                where = LogFile(self.location, point.version, f"{below}/{name}".lstrip("/"))
                if body is None:
                    raise where.corrupt(0, "the checkpoint needs this file, and it is missing")
                parts.append(CheckpointPart(where, body, decoded))
        return parts

    async def _refuse_holes(self, wanted: range, listing: Listing, damage: dict[Checkpoint, Corrupt]) -> None:
        """Raise unless every wanted commit exists; one that the listing missed while it was written is searched."""
        listed = set(listing.commits)
        for version in wanted:
            if version in listed or await self._exists(version):
                continue
            reasons = "".join(f"; unusable: {problem}" for problem in damage.values())
            if version == wanted.start == 0 and wanted[-1] != listing.newest:
                raise InvalidInput(
                    f"{self.location}: version {wanted[-1]} can no longer be rebuilt, the log was cleaned up{reasons}",
                    field="version",
                    allowed=f"versions that a checkpoint covers, up to {listing.newest}",
                )
            problem = f"this commit is missing, later ones exist, and no checkpoint covers it{reasons}"
            raise self._file(version).corrupt(0, problem)

    async def _exists(self, version: int) -> bool:
        return await self._reads.start(f"{LOG_DIRECTORY}/{commit_name(version)}", 1) is not None

    async def _replay(self, versions: range, replay: SnapshotReplay) -> tuple[int, str]:
        """Apply commits in order and return time and digest of the last, the checkpoint's own if there are none."""
        if not versions:
            return await self._known_of(versions.start - 1)
        timestamp_ms, digest = 0, ""
        names = [f"{LOG_DIRECTORY}/{commit_name(version)}" for version in versions]
        async with aclosing(self._reads.get_each(names)) as bodies:
            for version in versions:
                body = await anext(bodies)
                if body is None:
                    raise RetryableError(f"{self.location}: commit {version} vanished while the log was read")
                commit = await self._decode(body, version, replay.metadata, replay)
                replay.apply(commit)
                timestamp_ms, digest = commit.timestamp_ms, commit.digest
        return timestamp_ms, digest

    async def _known_of(self, version: int) -> tuple[int, str]:
        """Return time and digest of a commit that a checkpoint covers without them; 0 and `""` if it was deleted."""
        body = await self._reads.get(f"{LOG_DIRECTORY}/{commit_name(version)}")
        if body is None:
            return 0, ""
        return await _off_loop(body, lambda: commit_time_ms(body, self._file(version))), commit_digest(body)

    async def _decode(
        self, body: bytes, version: int, metadata: TableMetadata | None, replay: SnapshotReplay | None = None
    ) -> Commit:
        key, column = (None, None) if replay is None else (replay.sort_key, replay.sort_column)
        return await _off_loop(body, lambda: decode_commit(body, self._file(version), metadata, key, column))

    def _file(self, version: int) -> LogFile:
        return LogFile(self.location, version, commit_name(version))


async def _off_loop(body: bytes, decode: Callable[[], R]) -> R:
    """Decode at once what is small, and in a thread what is not."""
    return await asyncio.to_thread(decode) if len(body) >= THREAD_BYTES else decode()
