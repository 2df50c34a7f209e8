"""Writes all groups of a rewrite concurrently; either every failure is explained, or nothing stays behind.

A group that fails because its inputs are missing is stale: another writer removed them, and the rest continues. Any
other failure stops the rewrite before its commit, and deletes what it wrote.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

import structlog

from actor.formats.delta.conflicts import first_line, translate
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.write import GroupWriter, WrittenGroup
from shared.errors import LakewrightError
from shared.layout.planner import FileGroup

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What writing led to: every group is in exactly one of these."""

    written: tuple[WrittenGroup, ...] = ()
    conflicted: tuple[FileGroup, ...] = ()
    skipped: tuple[FileGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What groups are written with: a writer, threads, entry of a thread into the session, stop condition, liveness."""

    writer: GroupWriter
    threads: int
    bound: Callable[[], AbstractContextManager[object]]
    should_stop: Callable[[], bool]
    is_live: Callable[[LiveGroup], bool]
    discard: Callable[[Sequence[WrittenGroup]], None]
    sweep: Callable[[Sequence[WrittenGroup]], None]  # Delete whatever this attempt wrote besides these groups.


def write_groups(context: WriteContext, groups: Sequence[LiveGroup]) -> WriteResult:
    """Write groups until asked to stop; raises the first failure that staleness does not explain."""
    attempts = _attempt_all(context, groups)
    written = tuple(result for result in attempts if isinstance(result, WrittenGroup))
    skipped = tuple(live.group for live, result in zip(groups, attempts, strict=True) if result is None)
    if any(isinstance(result, Exception) for result in attempts):
        context.sweep(written)  # Failed tasks leave what they had written, and no thread writes any more.
    stale = []
    for live, result in zip(groups, attempts, strict=True):
        if isinstance(result, Exception):
            try:
                _explain(context, live, result)
            except BaseException:
                context.discard(written)
                raise
            stale.append(live.group)
    return WriteResult(written, tuple(stale), skipped)


def _attempt_all(context: WriteContext, groups: Sequence[LiveGroup]) -> list[WrittenGroup | Exception | None]:
    failed = threading.Event()

    def attempt(live: LiveGroup) -> WrittenGroup | Exception | None:
        if failed.is_set() or context.should_stop():
            return None
        try:
            with context.bound():
                return context.writer.write(live)
        except Exception as error:  # noqa: BLE001 - returned, and raised or explained by the caller
            failed.set()
            return error

    threads = min(context.threads, len(groups))
    if threads <= 1:
        return [attempt(live) for live in groups]
    with ThreadPoolExecutor(threads, thread_name_prefix="lakewright-write") as pool:
        return list(pool.map(attempt, groups))


def _explain(context: WriteContext, live: LiveGroup, error: Exception) -> None:
    """Return if others have taken the group's inputs, raise its error otherwise."""
    if isinstance(error, LakewrightError):
        raise error
    if context.is_live(live):
        doing = f"writing {len(live.inputs)} files of {live.group.partition}"
        raise translate(error, doing, so="the table is unchanged") from error
    _log.info(
        "group_inputs_removed_concurrently",
        partition=live.group.partition,
        files=len(live.inputs),
        error=first_line(error),
    )
