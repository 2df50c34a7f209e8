"""Waits for jobs of the decider under a progress bar; Ctrl-C ends the wait, and the jobs go on."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from services.cli.client import ApiClient, CallFailed, segment
from services.cli.render import Output, at, counted
from services.visible_text import visible

if TYPE_CHECKING:
    from rich.progress import Progress

WAIT_S = 20
"""Seconds that one call waits for the end of a job: below the longest wait for an answer."""

AGAIN_S = 0.2
"""Pause between two calls about a job: a job that fails at once and is tried again must not cost a call each time."""

AWAY_S = 2.0
"""Pause after an answer that the decider cannot look now."""

FAILING_READ = 50
"""Jobs of a state that are read to find those that failed."""

DELAYED = "delayed"

QUARANTINED = "quarantined"

DONE = "done"

CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that is over: the result of its last run, or that it is quarantined, and what was measured."""

    id: str
    result: str
    error: str
    files_removed: int
    bytes: int

    @property
    def is_done(self) -> bool:
        """True if it succeeded."""
        return self.result == DONE

    def describe(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def failing_jobs(api: ApiClient, table: str | None = None) -> list[dict[str, Any]]:
    """Return the first jobs, of a table or of all, that failed and are tried again, after those that are not."""
    asked = ({"state": state, "table": table, "limit": FAILING_READ} for state in (QUARANTINED, DELAYED))
    found = [job for query in asked for job in api.get("/v1/jobs", query)["jobs"]]
    return [job for job in found if job["attempts"] and job["error"]]


def failure_text(job: dict[str, Any]) -> str:
    """Return how often a job failed, why, and when it is tried again."""
    again = f"`lakewright jobs requeue {job['id']}`"
    if job["retry_at"]:
        is_over = datetime.fromisoformat(job["retry_at"]) < datetime.now(UTC)
        again = "next try " + ("when an actor is free" if is_over else f"at {at(job['retry_at'])} UTC")
    return f"{job['partition_label']}: {counted(job['attempts'], 'failed attempt')}, {again}: {job['error']}"


def follow(api: ApiClient, jobs: Sequence[str]) -> list[EndedJob]:
    """Return the ends of these jobs in their order, one after another as they come."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from services.cli.visible_console import VisibleConsole  # noqa: PLC0415 - a tenth of a second, for those who wait

    columns = (TextColumn("{task.description:40.40}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=VisibleConsole(stderr=True), transient=True) as progress:
        progress.add_task("jobs", total=len(jobs))
        return [_wait(api, job, progress) for job in jobs]


def _wait(api: ApiClient, job: str, progress: "Progress") -> EndedJob:
    from rich.text import Text  # noqa: PLC0415 - as above

    task = progress.task_ids[0]
    failed = 0
    while True:
        try:
            view = api.get(f"/v1/jobs/{segment(job)}", {"wait_s": WAIT_S})["job"]
        except CallFailed as problem:
            if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
                # Redis is away for a moment; the job is where it was.
                time.sleep(AWAY_S)
                continue
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
            # It was cancelled before an actor had it, which leaves no run.
            progress.advance(task)
            return EndedJob(job, CANCELLED, "the job is gone", 0, 0)
        progress.update(task, description=f"{view['partition_label'] or job} {view['state']}")
        if view["state"] == DELAYED and view["attempts"] > failed:
            failed = view["attempts"]
            progress.console.print(Text(visible(f"Attempt {failed} failed, the next one follows: {view['error']}")))
        if view["state"] in ("finished", QUARANTINED):
            progress.advance(task)
            return _ended(job, view)
        time.sleep(AGAIN_S)


def _ended(job: str, view: dict[str, Any]) -> EndedJob:
    measured = view["measured"]
    result = QUARANTINED if view["state"] == QUARANTINED else view["result"]
    return EndedJob(job, result, view["error"], int(measured.get("files_removed", 0)), int(measured.get("bytes", 0)))


def show_ended(out: Output, ended: Sequence[EndedJob]) -> None:
    """Print how jobs ended; raises CallFailed if one of them did not succeed."""
    failed = [one for one in ended if not one.is_done]
    if not out.as_json:
        removed = sum(one.files_removed for one in ended)
        out.line(f"{counted(len(ended) - len(failed), 'job')} done; {counted(removed, 'file')} fewer.")
    if failed:
        first = failed[0]
        raise CallFailed(
            f"{counted(len(failed), 'job')} of {len(ended)} did not succeed; {first.id} {first.result}: {first.error}"
        )
