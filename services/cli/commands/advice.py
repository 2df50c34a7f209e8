"""`lakewright advice …`: changes of policies that would have served tables better; apply or dismiss them."""

from typing import Annotated, Any

import typer

from services.cli.cli_context import print_answer
from services.cli.client import segment
from services.cli.render import Output, at, counted, mean, size, time_span

app = typer.Typer(no_args_is_help=True, help="List, show, apply and dismiss advice about policies.")

Table = Annotated[str, typer.Argument(help="Name of a registered table.")]
AdviceId = Annotated[str, typer.Argument(metavar="ADVICE", help="Id of the advice, as listed.")]
STATES = "open, applying, dismissed, applied or judged"


@app.command("list")
def list_advice(
    context: typer.Context,
    status: Annotated[list[str] | None, typer.Option(help=f"{STATES}; may be repeated. Default: open.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of rows.")] = 50,
) -> None:
    """List advice for all tables, largest saving first."""
    print_answer(context, lambda api: api.get("/v1/advice", {"status": status or None, "limit": limit}), _show_list)


@app.command("show")
def show_advice(context: typer.Context, table: Table) -> None:
    """Show the advice for a table: the change, its proof, and what became of it."""
    print_answer(context, lambda api: api.get(f"/v1/tables/{segment(table)}/advice"), _show_one)


@app.command("apply")
def apply_advice(
    context: typer.Context,
    table: Table,
    advice: AdviceId,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the ALTER TABLE and change nothing.")] = False,  # noqa: FBT002
    override: Annotated[bool, typer.Option("--override", help="Set overrides of the registration instead.")] = False,  # noqa: FBT002
) -> None:
    """Set the advised properties on a table by one ALTER TABLE."""
    path = f"/v1/tables/{segment(table)}/advice/{advice}/apply"
    body = {"dry_run": dry_run, "override": override}
    print_answer(context, lambda api: api.post(path, body), _show_statement if dry_run else _show_decided)


@app.command("dismiss")
def dismiss_advice(context: typer.Context, table: Table, advice: AdviceId) -> None:
    """Stop advising this change for a table."""
    path = f"/v1/tables/{segment(table)}/advice/{advice}/dismiss"
    print_answer(context, lambda api: api.post(path, {}), _show_decided)


def _show_statement(out: Output, answer: Any) -> None:
    out.line(answer["statement"] or f"no SQL names this table: {_properties(answer['change'])}")


def _show_decided(out: Output, answer: Any) -> None:
    job = f" by the job {answer['job']}" if answer["status"] == "applying" else ""
    out.line(f"{answer['table']}: {_settings(answer['change'])} {answer['status']}{job}.")


def _show_list(out: Output, answer: Any) -> None:
    analyzed = counted(answer["tables_analyzed"], "table")
    failed = f", {answer['tables_failed']:,} of them failed" if answer["tables_failed"] else ""
    if not answer["advice"]:
        out.line(
            f"No advice; {analyzed} analyzed{failed}. It needs a history of a day; `lakewright what-if NAME` tries a "
            "policy at once."
        )
    else:
        rows = [
            (
                one["table"],
                "not known" if one["saved_share"] is None else f"{time_span(one['saved_s_per_day'])}/day",
                "" if one["saved_share"] is None else f"{one['saved_share']:.0%}",
                one["status"],
                one["id"],
                _settings(one["change"]),
            )
            for one in answer["advice"]
        ]
        out.rows(
            f"Advice; {analyzed} analyzed{failed}", ("table", "saves", "share", "status", "advice", "change"), rows
        )
    for table, problem in answer["failed"].items():
        out.line(f"{table} failed: {problem}")
    if answer["judged"]:
        out.line(
            f"{counted(answer['judged'], 'applied change')} saved {answer['saved_share']:.0%} of the cost on average, "
            f"{answer['predicted_share']:.0%} predicted."
        )


def _show_one(out: Output, answer: Any) -> None:
    advice = answer["advice"]
    if answer["problem"]:
        out.line(f"The last analysis failed: {answer['problem']}")
    if advice is None:
        last = answer["analyzed_at"]
        out.line("No advice." if last is None else f"No advice at the last analysis, {at(last)}.")
        return
    proof = advice["proof"]
    shown = ("before", "after") if proof["bounds"] is None else ("before",)
    out.line(f"{advice['message']} ({advice['status']})")
    out.rows(
        f"{counted(proof['commits'], 'commit')} over {time_span(proof['hours'] * 3600)}",
        ("", "core time", "rewriting", "reading", "storage", "files", "rewritten"),
        [_cost(name, proof[name]) for name in shown],
    )
    if advice["judgement"] is not None:
        judged = advice["judgement"]
        predicted = "" if advice["saved_share"] is None else f", {judged['predicted_share']:.0%} predicted"
        out.line(
            f"Judged over {counted(judged['commits'], 'commit')}: saved {judged['saved_share']:.0%} of the cost"
            f"{predicted}."
        )
    sets = f"sets {_properties(advice['change'])}"
    if advice["status"] == "open" and advice["needs_owner"]:
        out.line(f"Run `{advice['statement']}`" if advice["statement"] else f"Its owner {sets}")
    elif advice["status"] == "open":
        command = f"lakewright advice apply {advice['table']} {advice['id']}"
        runs = f"runs: {advice['statement']}" if advice["statement"] else sets
        out.line(f"`{command}` {runs}")
    if advice["problem"]:
        out.line(f"The last attempt to alter the table failed: {advice['problem']}")


def _cost(name: str, cost: Any) -> tuple[str, ...]:
    times = (time_span(cost[part]) for part in ("cost_s", "write_cost_s", "read_cost_s", "storage_cost_s"))
    return (name, *times, mean(cost["files_mean"]), size(cost["bytes_rewritten"]))


def _properties(change: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in change.items())


def _settings(change: dict[str, str]) -> str:
    return ", ".join(f"{name.removeprefix('lakewright.')}={value}" for name, value in change.items())
