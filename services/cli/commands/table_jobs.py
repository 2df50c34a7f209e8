"""`lakewright vacuum` and other jobs on whole tables, by the decider."""

from typing import Annotated, Any

import typer

from services.cli.cli_context import CliContext, setting_of
from services.cli.client import segment
from services.cli.commands.optimize import OUTCOMES
from services.cli.locations import location_of
from services.cli.render import counted, size
from shared.locations import table_id

SHOWN_FILES = 50
"""Files that a dry run prints; --json has all."""

Table = Annotated[str, typer.Argument(help="Name of a registered table.")]
RetainHours = Annotated[int | None, typer.Option(help="Hours of history to keep; default: the table's retention.")]


def vacuum(
    context: typer.Context,
    table: Table,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the files and change nothing.")] = False,  # noqa: FBT002
    orphans: Annotated[bool, typer.Option("--orphans", help="Also search for files that no commit names.")] = False,  # noqa: FBT002
    retain_hours: RetainHours = None,
    force: Annotated[bool, typer.Option("--force", help="Allow --retain-hours below the table's retention.")] = False,  # noqa: FBT002
) -> None:
    """Delete files that no version inside the retention needs."""
    setting = setting_of(context)
    body = {"dry_run": dry_run, "orphans": orphans, "retain_hours": retain_hours, "force": force}
    answer = _call(setting, table, "vacuum", body)
    if setting.as_json or not dry_run:
        return _show_jobs(setting, answer)
    out = setting.output()
    files = counted(answer["files"], "file")
    out.line(f"{files} ({size(answer['bytes'])}) would be deleted; {answer['orphan_files']} of them in no commit.")
    rows = [(one["name"], size(one["bytes"]), "orphan" if one["orphan"] else "removed") for one in answer["deletions"]]
    if rows:
        out.rows("Files", ("name", "size", "why"), rows[:SHOWN_FILES])
    if len(rows) > SHOWN_FILES:
        out.line(f"{len(rows) - SHOWN_FILES:,} more; --json lists them.")
    return None


def checkpoint(context: typer.Context, table: Table) -> None:
    """Write a checkpoint of a table, and clean up its log by the format's own rules."""
    setting = setting_of(context)
    _show_jobs(setting, _call(setting, table, "checkpoint", {}))


def reclaim(
    context: typer.Context,
    table: Table,
    confirm: Annotated[str, typer.Option(help="The table's name again: what is deleted cannot be restored.")] = "",
    retain_hours: Annotated[
        int | None,
        typer.Option(
            help="Hours of history to keep, even below the table's retention; default: the table's whole retention."
        ),
    ] = None,
) -> None:
    """Delete all history of a table outside the retention, immediately and permanently."""
    setting = setting_of(context)
    _show_jobs(setting, _call(setting, table, "reclaim", {"confirm": confirm, "retain_hours": retain_hours}))


def deduplicate(
    context: typer.Context,
    table: Table,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows in a job that changes nothing.")] = False,  # noqa: FBT002
) -> None:
    """Delete rows for which a newer row of the same primary key exists."""
    setting = setting_of(context)
    _show_jobs(setting, _call(setting, table, "deduplicate", {"dry_run": dry_run}))


def cluster(
    context: typer.Context,
    table: Table,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the bytes and change nothing.")] = False,  # noqa: FBT002
) -> None:
    """Run the format's own OPTIMIZE on a table with CLUSTER BY, which clusters its files."""
    setting = setting_of(context)
    answer = _call(setting, table, "cluster", {"dry_run": dry_run})
    if setting.as_json or not dry_run:
        return _show_jobs(setting, answer)
    due = "due" if answer["due"] else "not due"
    return setting.output().line(f"{answer['message']} An automatic run is {due}: {answer['reason']}.")


def index(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Name of a registered table; or none, with --table-location.")] = "",
    table_location: Annotated[
        str, typer.Option("--table-location", help="Path or URI of the registered table, instead of its name.")
    ] = "",
    revision_id: Annotated[
        int | None, typer.Option("--revision-id", min=1, help="Revision to optimize; default: the table's.")
    ] = None,
    bytes_per_iter: Annotated[
        int | None, typer.Option("--bytes-per-iter", min=0, help="Bytes of one iteration, 0 for its first group.")
    ] = None,
    revision_rewrite: Annotated[
        str, typer.Option("--revision-rewrite", help="Only false: whole revisions are never rewritten.")
    ] = "false",
) -> None:
    """Optimize the index of a table by Qbeast's library; `tables index` shows what that would rewrite."""
    if bool(table) == bool(table_location):
        raise typer.BadParameter("name the table, or its location with --table-location")
    if revision_rewrite.strip().lower() not in ("true", "false"):
        raise typer.BadParameter(f"--revision-rewrite is true or false, not {revision_rewrite}")
    setting = setting_of(context)
    body = {"revision": revision_id, "bytes_per_iter": bytes_per_iter}
    body |= {"revision_rewrite": True} if revision_rewrite.strip().lower() == "true" else {}
    _show_jobs(setting, _call(setting, table or table_id(location_of(table_location)), "index", body))


def rewrite_manifests(
    context: typer.Context,
    table: Table,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the manifests and change nothing.")] = False,  # noqa: FBT002
) -> None:
    """Write the manifests of an Iceberg table again, as few as their bytes need."""
    setting = setting_of(context)
    answer = _call(setting, table, "rewrite-manifests", {"dry_run": dry_run})
    if setting.as_json or not dry_run:
        return _show_jobs(setting, answer)
    due = "due" if answer["due"] else "not due"
    return setting.output().line(f"{answer['message']} An automatic rewrite is {due}: {answer['reason']}.")


def _call(setting: CliContext, table: str, what: str, body: dict[str, Any]) -> dict[str, Any]:
    with setting.api() as api:
        answer: dict[str, Any] = api.post(f"/v1/tables/{segment(table)}/{what}", body)
    return answer


def _show_jobs(setting: CliContext, answer: dict[str, Any]) -> None:
    out = setting.output()
    if out.as_json:
        return out.raw(answer)
    out.line(answer["message"])
    rows = [(job["id"], job["action"], OUTCOMES.get(job["outcome"], job["outcome"])) for job in answer["jobs"]]
    return out.rows("Jobs", ("job", "action", "outcome"), rows) if rows else None
