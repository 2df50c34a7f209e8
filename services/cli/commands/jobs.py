"""`lakewright jobs …`: list and show running, waiting and finished jobs; cancel, expedite and requeue them."""

from typing import Annotated, Any

import typer

from services.cli.cli_context import print_answer, show_message
from services.cli.client import segment
from services.cli.render import Output, at, shown, used

app = typer.Typer(no_args_is_help=True, help="List, show, cancel, expedite and requeue jobs.")

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Job id.")]


@app.command("list")
def list_jobs(
    context: typer.Context,
    state: Annotated[
        str | None, typer.Option(help="leased (running), queued, delayed, quarantined or finished. Default: all.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Only jobs of this table.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of rows.")] = 50,
    group: Annotated[str | None, typer.Option(help="Only jobs of this group of the queue.")] = None,
) -> None:
    """List jobs: running, queued, delayed and quarantined ones, then finished runs."""
    query = {"state": state, "table": table, "group": group, "limit": limit}
    print_answer(context, lambda api: api.get("/v1/jobs", query), _show_jobs)


@app.command("show")
def show_job(context: typer.Context, job: JobArgument) -> None:
    """Show a job: its timeline, and what was predicted and measured."""
    print_answer(context, lambda api: api.get(f"/v1/jobs/{segment(job)}"), _show_job)


@app.command("cancel")
def cancel_job(context: typer.Context, job: JobArgument) -> None:
    """Cancel a job: delete it if it waits, stop it if it runs."""
    print_answer(context, lambda api: api.delete(f"/v1/jobs/{segment(job)}"), show_message)


@app.command("expedite")
def expedite_job(context: typer.Context, job: JobArgument) -> None:
    """Move a waiting job to the head of the queue."""
    _move(context, job, "expedite")


@app.command("requeue")
def requeue_job(context: typer.Context, job: JobArgument) -> None:
    """Make a delayed or quarantined job ready now, and reset its failures."""
    _move(context, job, "requeue")


def _show_jobs(out: Output, answer: Any) -> None:
    rows = [
        (
            job["id"],
            job["state"],
            job["result"],
            job["table_name"],
            job["partition_label"],
            job["band"],
            at(job["enqueued_at"]),
            at(job["finished_at"] or job["retry_at"] or job["may_start_at"]),
        )
        for job in answer["jobs"]
    ]
    times = ("enqueued at (UTC)", "ended, or tried next")
    out.rows("Jobs", ("id", "state", "result", "table", "partition", "band", *times), rows)


def _show_job(out: Output, answer: Any) -> None:
    out.pairs(answer["job"]["id"], _summary(answer["job"]))
    moments = [(at(one["at"]), one["event"], one["detail"]) for one in answer["timeline"]]
    out.rows("Timeline", ("at (UTC)", "event", "detail"), moments)


def _move(context: typer.Context, job: str, how: str) -> None:
    print_answer(context, lambda api: api.post(f"/v1/jobs/{segment(job)}/{how}", {}), show_message)


def _summary(job: dict[str, Any]) -> dict[str, object]:
    return {
        "state": job["state"],
        "result": job["result"] or "-",
        "table": job["table_name"],
        "partition": job["partition_label"],
        "band": job["band"],
        "attempts": job["attempts"],
        "engine crashes": "-" if job["engine_crashes"] is None else job["engine_crashes"],
        "actor": job["actor"] or "-",
        "error": job["error"] or "-",
        "note": job["note"] or "-",
        "may start at (UTC)": at(job["may_start_at"]) if job["may_start_at"] else "-",
        "waits for": job["waits_for"] or "-",
        "predicted": shown(job["predicted"]),
        "measured": shown(job["measured"]),
        "used": used(job["usage"]) if job["usage"] else "-",
    }
