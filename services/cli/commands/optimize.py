"""`lakewright optimize`: a registered table by name, through the decider; any table by location, in this process."""

import sys
from typing import Annotated, Any

import typer

from services.cli.cli_context import CliContext, name_values, setting_of
from services.cli.client import CallFailed, segment
from services.cli.job_progress import follow, show_ended
from services.cli.locations import is_location
from services.cli.render import Output, compactness, counted, size

OUTCOMES = {
    "queued": "queued",
    "merged": "already queued: joined the waiting job",
    "rerun": "runs again after the current run",
}
"""Outcome of a request for each partition, for people: none of them means that anything was rewritten yet."""

PRIORITY, MODE = "urgent", "levels"
"""The defaults of the options that belong to one of the two ways only."""


def optimize(  # noqa: PLR0913, PLR0917 - the options of a command
    context: typer.Context,
    table: Annotated[
        str, typer.Argument(help="Name of a registered table; or path, URI or CATALOG.NAMESPACE.TABLE of any table.")
    ],
    partition: Annotated[
        list[str] | None, typer.Option(help="Only this partition, such as dt=2026-01-01; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")] = False,  # noqa: FBT002
    force: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--force",
            help="Ignore tolerance and enabled=false; also rewrite files with paths that engines spell differently.",
        ),
    ] = False,
    priority: Annotated[str, typer.Option(help="By name only: urgent, high, normal or low.")] = PRIORITY,
    mode: Annotated[
        str,
        typer.Option(
            help="levels (as after a commit), idle (merge all small files once), full (merge all files that are not "
            "full, and drop deleted rows); by name also minor (below the top level) or major."
        ),
    ] = MODE,
    target_file_size: Annotated[str | None, typer.Option(help="Target file size of this run, such as 128mb.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Policy property of this run, such as min-input-files=4; may be repeated."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="By name only: wait until the jobs have ended.")] = False,  # noqa: FBT002
    yes: Annotated[bool, typer.Option("--yes", "-y", help="By location only: skip the confirmation.")] = False,  # noqa: FBT002
) -> None:
    """Optimize a table now: by name through the decider's queue; by location in this process, after confirmation.

    Exit code 0: done, or nothing to do. 1: failed, or not confirmed. 3: other writers changed some of the files.
    130: stopped by Ctrl-C; finished groups are committed.
    """
    setting = setting_of(context)
    overrides = {**({"target-file-size": target_file_size} if target_file_size else {}), **name_values(set_)}
    if not is_location(table):
        if yes:
            raise typer.BadParameter("--yes needs a location, not a name")
        if wait and dry_run:
            raise typer.BadParameter("--dry-run has no jobs to --wait for")
        body = {"partitions": partition or [], "priority": priority, "dry_run": dry_run, "force": force}
        body |= {"mode": mode} if mode != MODE else {}
        body |= {"values": overrides} if overrides else {}
        return by_name(setting, table, body, wait=wait)
    if priority != PRIORITY or wait:
        raise typer.BadParameter(
            "--priority and --wait need the name of a registered table: a location is rewritten immediately"
        )
    if not (dry_run or yes) and (setting.as_json or not sys.stdin.isatty()):
        raise typer.BadParameter(
            "cannot ask for confirmation without a terminal: pass --yes, or --dry-run to see the plan"
        )
    from services.cli.local import optimize as alone  # noqa: PLC0415 - the parts of a decider are optional, and slow to import

    asked = alone.OptimizeArguments(
        table, mode, tuple(partition or ()), overrides, dry_run=dry_run, force=force, yes=yes
    )
    code = alone.optimize(asked, setting)
    if code:
        raise typer.Exit(code)
    return None


def by_name(setting: CliContext, table: str, body: dict[str, Any], *, wait: bool = False) -> None:
    """Request a rewrite of a registered table, or its plan, and print the answer; `wait` for the end of its jobs.

    Raises CallFailed if one of them did not succeed.
    """
    out = setting.output()
    with setting.api() as api:
        answer = api.post(f"/v1/tables/{segment(table)}/optimize", body)
        follows = wait and not answer["paused"]
        jobs = [*(job["id"] for job in answer["jobs"]), *answer["running_jobs"]] if follows else []
        if not out.as_json:
            _show_answer(out, answer, body)
            if jobs and not api.get("/v1/actors")["slots"]:
                out.line("No actor takes jobs now, so they wait; `lakewright actor` starts one. Ctrl-C ends the wait.")
        ended = follow(api, jobs) if follows else None
    if out.as_json:
        out.raw(answer if ended is None else {**answer, "ended": [one.describe() for one in ended]})
    if ended is not None:
        show_ended(out, ended)
    elif wait and answer["paused"]:
        how = f"tables resume {table}" if answer["paused"] == "table" else f"queue resume {answer['paused']}"
        raise CallFailed(f"not waiting: the {answer['paused']} is paused; `lakewright {how}` resumes it")


def _show_answer(out: Output, answer: dict[str, Any], body: dict[str, Any]) -> None:
    out.line(answer["message"])
    if body["dry_run"]:
        return _show_plan(out, answer["plans"]) if answer["plans"] else None
    rows = [
        (
            job["id"],
            job["action"],
            job["partition_label"],
            OUTCOMES.get(job["outcome"], job["outcome"]),
            size(job["predicted_bytes"]),
        )
        for job in answer["jobs"]
    ]
    return out.rows("Jobs", ("job", "action", "partition", "outcome", "to read"), rows) if rows else None


def _show_plan(out: Output, plans: list[dict[str, Any]]) -> None:
    rows = [
        (
            plan["partition_label"],
            plan["action"],
            plan["before"]["files"],
            plan["files_replaced"],
            len(plan["groups"]),
            plan["after"]["files"],
            size(plan["bytes"]),
            plan["after"]["files_needed"],
        )
        for plan in plans
    ]
    numbers = ("files", "replaced", "groups", "files after", "to rewrite", "would do")
    out.rows("Plan", ("partition", "action", *numbers), rows)
    before, after, needed = (
        sum(plan[side][figure] for plan in plans)
        for side, figure in (("before", "files"), ("after", "files"), ("after", "files_needed"))
    )
    out.line(
        f"In {counted(len(plans), 'partition')}: {counted(before, 'file')} would become {after:,}; then: "
        f"{compactness(after, needed)}."
    )


def sort(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Name of a registered table with sort-by or zorder-by.")],
    partition: Annotated[
        list[str] | None, typer.Option(help="Only this partition, such as dt=2026-01-01; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")] = False,  # noqa: FBT002
    priority: Annotated[str, typer.Option(help="urgent, high, normal or low.")] = PRIORITY,
) -> None:
    """Sort files whose ranges overlap more than `max-depth` allows."""
    body = {"partitions": partition or [], "actions": ["sort"], "priority": priority, "dry_run": dry_run}
    by_name(setting_of(context), table, body)
