"""Writes all groups of a rewrite concurrently; what fails leaves nothing behind, and what is written may land.

A group that fails because its inputs are missing is stale: another writer removed them. One with an input that cannot
be read fails alone, and so does one for which the disk has no space: those that are written land. Any other failure
stops the rewrite before its commit, and deletes what it wrote.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import structlog

from actor.formats.delta.conflicts import translate
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.write import GroupWriter, WrittenGroup
from actor.jvm.errors import first_line, matching_line
from actor.parallel_groups import attempt_all
from shared.errors import LakewrightError
from shared.layout.planner import FileGroup

_log = structlog.get_logger(__name__)

_UNREADABLE = re.compile(r"FAILED_READ_FILE|Could not read footer: java\.lang\.RuntimeException|DamagedInput")
"""An input: in Spark's error, in parquet-java's and in ours (`DamagedInput.java`)."""

_FOR_ITSELF = re.compile(rf"{_UNREADABLE.pattern}|FileNotFoundException|No space left on device|Disk quota exceeded")
"""What says nothing of groups that are written already."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What writing led to: every group is in exactly one of these."""

    written: tuple[WrittenGroup, ...] = ()
    conflicted: tuple[FileGroup, ...] = ()
    skipped: tuple[FileGroup, ...] = ()
    failed: tuple[tuple[FileGroup, LakewrightError], ...] = ()  # Only beside others that are written.


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
    has_lost_attempts: Callable[[], bool] = lambda: False  # Whether tasks that were begun again may have left files.


def write_groups(context: WriteContext, groups: Sequence[LiveGroup]) -> WriteResult:
    """Write groups until asked to stop; raises the first failure that staleness does not explain."""
    attempts = _attempt_all(context, groups)
    written = tuple(result for result in attempts if isinstance(result, WrittenGroup))
    skipped = tuple(live.group for live, result in zip(groups, attempts, strict=True) if result is None)
    if any(isinstance(result, Exception) for result in attempts) or context.has_lost_attempts():
        context.sweep(written)  # Failed tasks leave what they had written, and no thread writes any more.
    stale: list[FileGroup] = []
    failed: list[tuple[FileGroup, LakewrightError]] = []
    try:
        for live, result in zip(groups, attempts, strict=True):
            if not isinstance(result, Exception):
                continue
            error = _explain(context, live, result)
            if error is None:
                stale.append(live.group)
            elif written and _FOR_ITSELF.search(str(error)):
                _log.warning("group_failed", partition=live.group.partition, files=len(live.inputs), error=str(error))
                failed.append((live.group, error))
            else:
                raise error from result  # noqa: TRY301 - what is written has to be deleted
    except BaseException:
        context.discard(written)
        raise
    return WriteResult(written, tuple(stale), skipped, tuple(failed))


def _attempt_all(context: WriteContext, groups: Sequence[LiveGroup]) -> list[WrittenGroup | Exception | None]:
    def write(live: LiveGroup) -> WrittenGroup:
        with context.bound():
            return context.writer.write(live)

    return attempt_all(
        groups,
        write,
        threads=context.threads,
        should_stop=context.should_stop,
        spares_others=_is_about_its_inputs,
    )


def _is_about_its_inputs(error: Exception) -> bool:
    """Whether a group failed because a file of its own cannot be read, which says nothing of other groups."""
    return not isinstance(error, LakewrightError) and matching_line(error, _UNREADABLE) != ""


def _explain(context: WriteContext, live: LiveGroup, error: Exception) -> LakewrightError | None:
    """Return None if others have taken the group's inputs, otherwise what failed; raises errors of our own."""
    if isinstance(error, LakewrightError):
        raise error
    if context.is_live(live):
        doing = f"writing {len(live.inputs)} files of {live.group.partition}"
        culprit = matching_line(error, _FOR_ITSELF)
        doing += f" ({culprit})" if culprit not in first_line(error) else ""
        return translate(error, doing, so="the table is unchanged")
    _log.info(
        "group_inputs_removed_concurrently",
        partition=live.group.partition,
        files=len(live.inputs),
        error=first_line(error),
    )
    return None
