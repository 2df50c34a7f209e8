"""Keeps the table of scheduled jobs: reads the queue, and replaces the table's rows where they changed."""

import structlog

from decider.archive.scheduled_jobs import ScheduledJobsTable, scheduled_row
from decider.background.runner import Schedule
from decider.store.queue.run_queries import JobStage, RunQueries
from shared.queue.limits import MAX_PAGE
from shared.queue.records import JobView

EVERY_S = 60.0
"""Seconds between two passes: the age of the table, at one small commit per pass while the queue changes."""

MAX_ROWS = 20_000
"""Jobs of one state in the table at most: some 20 MB in memory while it is written."""

LIVE = (JobStage.DELAYED, JobStage.QUEUED, JobStage.LEASED, JobStage.QUARANTINED)
"""States of jobs that wait or run, in the order in which a job takes them, so that one that moves on is seen."""

log = structlog.get_logger()


class ScheduledJobs:
    """Any number of deciders may run it: equal rows are written once."""

    def __init__(self, table: ScheduledJobsTable, runs: RunQueries) -> None:
        self.schedule = Schedule(EVERY_S, "scheduled_jobs_failed")
        self._table = table
        self._runs = runs

    async def run_once(self) -> int:
        """Replace the rows if they changed; return the number of jobs. A job that moves meanwhile is a row once."""
        found: dict[str, JobView] = {}
        for stage in LIVE:
            token: str | None = ""
            rows = 0
            while token is not None and rows < MAX_ROWS:
                page = await self._runs.page(limit=MAX_PAGE, stage=stage, page_token=token or None)
                found |= {job.id: job for job in page.entries if isinstance(job, JobView)}
                rows, token = rows + len(page.entries), page.next_page_token
            if token is not None:
                log.warning("scheduled_jobs_truncated", state=stage.value, rows=rows)
        if await self._table.replace(scheduled_row(job) for job in found.values()):
            log.info("scheduled_jobs_written", jobs=len(found))
        return len(found)
