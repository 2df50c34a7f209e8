"""Our history is read from the table's own log and nothing else, so that it survives Redis, deciders and releases.

One event per commit of ours, newest first. Going back costs one request of a few kilobytes per commit, for the first
line of a commit names its writer; only Lakewright's are read whole. A page reads a bounded number of commits and names
the version to continue from; the history ends where the log's retention has removed commits.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from json import loads
from typing import Any

from decider.formats.delta.actions import commit_time_ms
from decider.formats.delta.damage import LogFile, no_log, parsed_lines, split_lines
from decider.formats.delta.files import rows_in
from decider.formats.delta.listing import LAST_CHECKPOINT, LOG_DIRECTORY, commit_name, read_listing
from decider.formats.rewrites import FileStats, Rewrite, RewritePage
from decider.formats.table_format import MAX_SCANNED
from decider.storage.object_reads import ObjectReader
from shared.formats.qbeast.files import tagged_blocks
from shared.formats.qbeast.names import REVISION_TAG
from shared.index.stats import IndexSideStats, index_stats
from shared.layout import commit_metadata
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.policy.levels import SMALL_LEVELS

HEAD_BYTES = 16_384
"""Read of each commit to learn whose it is: Delta, which writes ours, puts commitInfo on the first line, some 2 KB."""

READ_AHEAD = 16
"""Commits requested at once: enough to hide the latency of a store."""


class DeltaRewrites:
    """Finds Lakewright's commits in one table's log."""

    def __init__(self, reads: ObjectReader) -> None:
        self._reads = reads
        self.location = reads.location

    async def page(self, *, limit: int, before: int | None = None, max_scanned: int = MAX_SCANNED) -> RewritePage:
        """Return up to `limit` events of versions below `before` (None: from the newest on).

        Raises NoTable where there is no log, Corrupt for a commit of ours that is damaged, RetryableError if the store
        does not answer.
        """
        top = await self._newest() + 1 if before is None else await self._top(before)
        found: list[Rewrite] = []
        bottom = max(0, top - max_scanned)
        for stop in range(top, bottom, -READ_AHEAD):
            window = range(stop - 1, max(bottom, stop - READ_AHEAD) - 1, -1)
            heads = await asyncio.gather(*(self._reads.start(_key(version), HEAD_BYTES) for version in window))
            for version, head in zip(window, heads, strict=True):
                if head is None:
                    return RewritePage(tuple(found), None)  # The log was cleaned up to here.
                if (event := await self._event(version, head)) is not None:
                    found.append(event)
                if len(found) == limit:
                    return RewritePage(tuple(found), version or None)
        return RewritePage(tuple(found), bottom or None)

    async def _top(self, before: int) -> int:
        """Return `before`, or what follows the newest version where that is less; the log is only listed then."""
        if before and await self._reads.start(_key(before - 1), HEAD_BYTES) is not None:
            return before
        return min(before, await self._newest() + 1)

    async def _newest(self) -> int:
        """Return the newest version with a commit, -1 if there is none; the last checkpoint's hint saves a long list.

        Raises NoTable where there is neither a commit nor a checkpoint.
        """
        body = await self._reads.get(LAST_CHECKPOINT)
        try:
            hint = loads(body).get("version") if body is not None else None
        except (ValueError, AttributeError, RecursionError):
            hint = None
        for after in ([f"{hint:020d}"] if type(hint) is int and hint >= 0 else []) + [None]:
            names = await self._reads.list(LOG_DIRECTORY, after=after)
            listing = read_listing(names)
            if listing.commits:
                return listing.commits[-1]
            if listing.checkpoints and after is None:
                return -1
        raise no_log(self.location)

    async def _event(self, version: int, head: bytes) -> Rewrite | None:
        first = head.partition(b"\n")[0]
        if commit_metadata.KEY.encode() not in first:
            return None
        body = head if len(head) < HEAD_BYTES else await self._reads.get(_key(version))
        if body is None:
            return None
        place = LogFile(self.location, version, commit_name(version))
        return await asyncio.to_thread(decode_event, body, place)


def decode_event(body: bytes, place: LogFile) -> Rewrite | None:
    """Decode a commit file into the event it represents, None if it is no Lakewright commit or rewrote nothing.

    Raises Corrupt for damaged lines.
    """
    mark: CommitMetadata | None = None
    removed: list[Mapping[str, Any]] = []
    added: list[Mapping[str, Any]] = []
    for position, action in parsed_lines(split_lines(body), place):
        info = action.get("commitInfo")
        if isinstance(info, dict):
            mark = mark or commit_metadata.decode(info.get("userMetadata"))
        for kind, into in (("remove", removed), ("add", added)):
            if (file := action.get(kind)) is not None:
                into.append(_checked(file, place, position, kind))
    if mark is None or not removed or any(file.get("dataChange") for file in (*removed, *added)):
        return None  # A commit that carries our mark and changes data is not ours: the mark was copied.
    before, after = _state(mark, removed), _state(mark, added)
    rows = _rows(added)
    # Rows in equal rows out: the actor proves it before the commit, and a removal need not carry statistics.
    return Rewrite(
        version=place.version,
        mark=mark,
        finished_ms=commit_time_ms(body, place),
        inputs=replace(
            _stats(removed, before, rows if (known := _rows(removed)) is None else known),
            index=_removed_index(mark, removed),
        ),
        outputs=replace(_stats(added, after, rows), index=_added_index(added)),
        deleted_rows=max(0, sum(map(_hidden, removed)) - sum(map(_hidden, added))),
        entropy_removed=None if before is None or after is None else before.shortfall - after.shortfall,
        revision_id=_revision(added),
    )


def _key(version: int) -> str:
    return f"{LOG_DIRECTORY}/{commit_name(version)}"


def _checked(file: object, place: LogFile, position: int, kind: str) -> Mapping[str, Any]:
    if not isinstance(file, dict) or type(file.get("path")) is not str:
        raise place.wrong(position, f"{kind}.path", file, "a text")
    size = file.get("size")
    if size is not None and (type(size) is not int or size < 0):
        raise place.wrong(position, f"{kind}.size", size, "a number of bytes")
    return file


def _state(mark: CommitMetadata, files: Sequence[Mapping[str, Any]]) -> PartitionStats | None:
    sizes = [file.get("size") for file in files]
    if mark.size_levels is None or None in sizes:
        return None
    return stats_of_sizes(mark.size_levels, [int(size) for size in sizes if size is not None])


def _stats(files: Sequence[Mapping[str, Any]], state: PartitionStats | None, rows: int | None) -> FileStats:
    full = 0 if state is None else state.files - state.small_files
    return FileStats(
        num_files=len(files),
        bytes=sum(file.get("size") or 0 for file in files),
        rows=rows,
        levels=None if state is None else (*state.counts[:SMALL_LEVELS], full),
        files=tuple(str(file["path"]) for file in files),
    )


def _removed_index(mark: CommitMetadata, removed: Sequence[Mapping[str, Any]]) -> IndexSideStats | None:
    """Return the index data of removed files, which the mark has in the order of their paths."""
    found = mark.index_input
    if found is None or len(found.file_levels) != len(removed):
        return None
    paths = [str(file["path"]) for file in removed]
    levels = dict(zip(sorted(paths), found.file_levels, strict=True))
    return replace(found, file_levels=tuple(levels[path] for path in paths))


def _added_index(added: Sequence[Mapping[str, Any]]) -> IndexSideStats | None:
    """Return the index data of added files, None unless all of them have any."""
    found = [tagged_blocks(file.get("tags")) for file in added]
    known = [[(block.cube, block.rows) for block in blocks] for blocks in found if blocks is not None]
    return index_stats(known) if known and len(known) == len(found) else None


def _revision(added: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the revision that the tags of all added files name, None if they name none or several."""
    named = {tags.get(REVISION_TAG) if isinstance(tags := file.get("tags"), dict) else None for file in added}
    text = named.pop() if len(named) == 1 else None
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() else None


def _rows(files: Sequence[Mapping[str, Any]]) -> int | None:
    """Sum the rows that readers see; None if a file has no statistics."""
    counts = [rows_in(stats) if isinstance(stats := file.get("stats"), str) else None for file in files]
    if None in counts:
        return None
    return sum(count for count in counts if count is not None) - sum(map(_hidden, files))


def _hidden(file: Mapping[str, Any]) -> int:
    vector = file.get("deletionVector")
    hidden = vector.get("cardinality") if isinstance(vector, dict) else 0
    return hidden if type(hidden) is int else 0
