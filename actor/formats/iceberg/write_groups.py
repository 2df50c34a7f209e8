"""Writes all groups of a rewrite, several at once; what fails leaves nothing behind.

A group that fails because others have changed its inputs is left out, and those that are written may be committed. Any
other failure stops the rewrite before its commit, and deletes what it wrote.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import structlog

from actor.formats.iceberg.commit import StagedGroup
from actor.formats.iceberg.inputs import InputGroup
from actor.jvm.errors import first_line
from actor.parallel_groups import attempt_all
from shared.errors import LakewrightError
from shared.layout.planner import FileGroup

_log = structlog.get_logger(__name__)


class InputGroupWriter(Protocol):
    """Writes groups of one table; used by several threads."""

    def write(self, live: InputGroup) -> StagedGroup:
        """Write the group's rows; what raises has left no file."""


@dataclass(frozen=True, slots=True)
class StagingContext:
    """What groups are written with: a writer, threads, entry of a thread into the session, stop condition, liveness."""

    writer: InputGroupWriter
    threads: int
    bound: Callable[[], AbstractContextManager[object]]
    should_stop: Callable[[], bool]
    is_live: Callable[[InputGroup], bool]
    discard: Callable[[Sequence[StagedGroup]], None]


def write_groups(
    context: StagingContext, groups: Sequence[InputGroup]
) -> tuple[tuple[StagedGroup, ...], tuple[FileGroup, ...]]:
    """Return the groups that were written and those that were not begun; raises the first failure of a live one."""

    def write(live: InputGroup) -> StagedGroup:
        with context.bound():
            return context.writer.write(live)

    attempts = attempt_all(groups, write, threads=context.threads, should_stop=context.should_stop)
    written = tuple(result for result in attempts if isinstance(result, StagedGroup))
    skipped = tuple(live.group for live, result in zip(groups, attempts, strict=True) if result is None)
    try:
        for live, result in zip(groups, attempts, strict=True):
            if not isinstance(result, Exception):
                continue
            if isinstance(result, LakewrightError) or context.is_live(live):
                raise result  # noqa: TRY301 - what is written has to be deleted
            _log.info("group_inputs_removed_concurrently", error=first_line(result))
    except BaseException:
        context.discard(written)
        raise
    return written, skipped
