"""Lists jobs: the live ones state by state, then the finished runs of the history, newest first.

One call reads a bounded number of jobs, whatever the filter; its cursor is where the next call continues.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from uuid import uuid4

from decider.store.redis.queue_executor import AsyncQueueExecutor
from shared.errors import InvalidInput
from shared.queue import commands, keys, queries
from shared.queue.limits import MAX_JOBS_READ
from shared.queue.model import CancelOutcome, JobId, JobState
from shared.queue.records import JobView, RunRecord
from shared.table import TableId

MAX_PAGES = 40
"""Pages of the queue that one call reads at most; a filter that finds little then answers with a cursor."""

_PAGE_TOKEN = re.compile(
    r"(leased|queued|delayed|quarantined)(?:@([a-z0-9_-]{1,40}))?\.(\d{1,12})?|(finished)\.(\d{1,20}-\d{1,20})?"
)


class JobStage(StrEnum):
    """States of a job, in the order in which they are listed."""

    LEASED = "leased"
    QUEUED = "queued"
    DELAYED = "delayed"
    QUARANTINED = "quarantined"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class JobListing:
    """A page of jobs and finished runs; `cursor` is None on the last one."""

    entries: tuple[JobView | RunRecord, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class _Source:
    """A list that is read page by page: the jobs of a group in one state, or the finished runs of all groups."""

    stage: JobStage
    queue: str

    @property
    def name(self) -> str:
        """The beginning of cursors in it."""
        group = keys.group_of(self.queue)
        return f"{self.stage}@{group}" if group else str(self.stage)


class RunQueries:
    """Reads jobs and finished runs of one queue and its groups, and cancels jobs."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    async def page(
        self,
        *,
        limit: int,
        stage: JobStage | None = None,
        table: TableId | None = None,
        group: str | None = None,
        page_token: str | None = None,
    ) -> JobListing:
        """Return up to `limit` jobs of one stage, or of all, and of one table or group, if they are given.

        `group`: the queue of a group. Raises InvalidInput for a cursor that no page gave out.
        """
        names = self._queue.names if group is None else (group,)
        sources = [one for each in (JobStage if stage is None else (stage,)) for one in self._sources(each, names)]
        place = ""
        if page_token is not None:
            first, place = _parse(page_token)
            known = [one.name for one in sources]
            if first not in known:
                raise InvalidInput(f"the cursor {page_token!r} belongs to another state or group", field="page_token")
            sources = sources[known.index(first) :]
        found: list[JobView | RunRecord] = []
        for _ in range(MAX_PAGES):
            current = sources[0]
            entries, after = await self._read(current, place)
            for entry, behind in entries:
                is_of_group = group is None or isinstance(entry, JobView) or entry.group == keys.group_of(group)
                if is_of_group and (table is None or entry.key.table == table):
                    found.append(entry)
                if len(found) == limit:
                    return JobListing(tuple(found), f"{current.name}.{behind}")
            if after is None:
                sources.pop(0)
            if not sources:
                return JobListing(tuple(found), None)
            place = after or ""
        return JobListing(tuple(found), f"{sources[0].name}.{place}")

    def _sources(self, stage: JobStage, queues: Iterable[str]) -> list[_Source]:
        """Return what is listed of a stage, in this order; the history is one for all groups."""
        return [_Source(stage, one) for one in (queues if stage is not JobStage.FINISHED else (self._queue.name,))]

    async def job(self, job: JobId) -> JobView | None:
        """Return a waiting or running job; None if it has ended or never existed."""
        return await self._queue.run(queries.job(self._queue.name, job))

    async def runs_of(self, job: JobId, *, limit: int) -> tuple[RunRecord, ...]:
        """Return up to `limit` finished runs of a job, newest first, from a bounded search of the history."""
        runs: list[RunRecord] = []
        before = ""
        for _ in range(MAX_PAGES):
            page = await self._queue.run(queries.history(self._queue.name, before=before))
            runs += [run for run in page.runs if run.id == job]
            if len(runs) >= limit or page.next_before is None:
                break
            before = page.next_before
        return tuple(runs[:limit])

    async def cancel(self, job: JobId) -> CancelOutcome:
        """Delete a waiting job, ask a running one to stop."""
        return await self._queue.run(commands.cancel(self._queue.name, job, nonce=uuid4().hex))

    async def _read(self, source: _Source, place: str) -> tuple[list[tuple[JobView | RunRecord, str]], str | None]:
        """Read one page: each entry with the position after it, and the position after the page (None: the last)."""
        if source.stage is JobStage.FINISHED:
            history = await self._queue.run(queries.history(self._queue.name, before=place))
            return [(run, run.entry_id) for run in history.runs], history.next_before
        offset = int(place or 0)
        page = await self._queue.run(
            queries.jobs(source.queue, JobState(source.stage.value), offset=offset, limit=MAX_JOBS_READ)
        )
        after = None if page.next_offset is None else str(page.next_offset)
        return [(job, str(offset + index)) for index, job in enumerate(page.jobs, 1)], after


def _parse(page_token: str) -> tuple[str, str]:
    """Return the name of the source that a cursor lies in, and the place there."""
    match = _PAGE_TOKEN.fullmatch(page_token)
    if match is None:
        raise InvalidInput(
            f"{page_token[:80]!r} is no cursor; use the one that the page before gave",
            field="page_token",
            allowed="the cursor of a page",
        )
    state, group, offset, finished, entry = match.groups()
    return finished or (f"{state}@{group}" if group else state), offset or entry or ""
