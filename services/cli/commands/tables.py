"""`lakewright tables …`: register, list, show and unregister tables, and explain decisions."""

import re
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any

import typer

from services.cli import tables_view
from services.cli.cli_context import name_values, print_answer, setting_of, show_message
from services.cli.client import ApiClient, CallFailed, segment
from services.cli.job_progress import failing_jobs, failure_text
from services.cli.lazy_group import lazy_group
from services.cli.locations import absolute
from services.cli.render import at

app = typer.Typer(
    cls=lazy_group(
        {
            "cells": "services.cli.commands.table_cells:cells",
            "index": "services.cli.commands.table_index:index",
        },
        at_end=True,
    ),
    no_args_is_help=True,
    help="Register, list, show, pause and unregister tables; show their partitions and decisions.",
)

FIGURE_TRIES = 60
"""Requests for a list whose figures are being read: each waits up to half a second, and a long list takes 30 s."""

FIRST_READ_S = 20.0
"""Seconds that `tables add` waits for the first read of the table."""

CLOCK_SKEW = timedelta(minutes=1)
"""Maximum difference between the clocks of this machine and of a person who names a time."""

Name = Annotated[str, typer.Argument(help="Table name or id.")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--set", help="Property that overrides the table's own, such as fan-in=4; may be repeated."),
]
Limit = Annotated[int, typer.Option(min=1, max=500, help="Maximum number of rows.")]


@app.command("list")
def list_tables(
    context: typer.Context,
    prefix: Annotated[str, typer.Option(help="Name prefix.")] = "",
    limit: Limit = 100,
    page_token: Annotated[str | None, typer.Option(help="Token at the end of the previous page.")] = None,
    state: Annotated[
        str | None, typer.Option(help="Only tables in this state, such as paused, failing or compact.")
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="The same as --state paused.")] = False,  # noqa: FBT002
) -> None:
    """List registered tables by name, with the state of each and what can still be gained."""
    wanted = "paused" if paused else state
    if wanted is not None:
        query = {"condition": wanted.replace("-", "_"), "limit": limit, "search": prefix}
        return print_answer(context, lambda api: _all_figures(api, query), tables_view.show_table_rows)
    return print_answer(
        context,
        lambda api: api.get("/v1/tables", {"prefix": prefix, "limit": limit, "page_token": page_token}),
        tables_view.show_tables,
    )


def _all_figures(api: ApiClient, query: dict[str, Any]) -> Any:
    """Return the rows of a query once the decider has read all figures, or after some tries."""
    answer = api.get("/v1/table-rows", query)
    for _ in range(FIGURE_TRIES):
        if answer["complete"]:
            break
        answer = api.get("/v1/table-rows", query)
    return answer


@app.command("add")
def add_table(
    context: typer.Context,
    location: Annotated[str, typer.Argument(help="Path or URI of the table.")],
    name: Annotated[str | None, typer.Option(help="Display name. Default: the id.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant that owns the table.")] = None,
    set_: Properties = None,
    paused: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--paused", help="Queue rewrites, but run none until `tables resume`.")
    ] = False,
) -> None:
    """Register a table and start to optimize it. Its own properties set the policy; --set takes precedence.

    Exit code 1: there is no table at the location (nothing is registered), or it cannot be read or rewritten.
    """
    out = setting_of(context).output()
    body = {
        "location": absolute(location), "name": name, "tenant": tenant, "properties": _full(name_values(set_)) or None,
        "paused": paused or None, "wait_s": FIRST_READ_S,
    }  # fmt: skip
    with setting_of(context).api() as api:
        answer = api.post("/v1/tables", {key: value for key, value in body.items() if value is not None})
    if out.as_json:
        return out.raw(answer)
    out.line(f"{answer['name']} is registered: {answer['location']}")
    reading = answer["reading"]
    for issue in reading["issues"] if reading is not None else ():
        out.line(
            f"The property {issue['property']} = {issue['value']} cannot be used: {issue['reason']}."
            + (" Until it is fixed, the last valid properties apply, or the defaults." if issue["blocking"] else "")
        )
    if reading is not None and (reading["version"] is None or reading["refusal"]):
        why = reading["refusal"]["reason"] if reading["refusal"] else reading["error"] or "it is still being read"
        raise CallFailed(
            f"{answer['name']} is not optimized: {why.rstrip('.')}. It is read again with every event and sweep."
        )
    if reading is not None and not reading["enabled"]:
        return out.line(f"It is switched off: `lakewright tables show {answer['name']}` shows by which property.")
    return out.line(_added(answer["name"], paused=paused))


@app.command("change")
def change_table(
    context: typer.Context,
    name: Name,
    new_name: Annotated[str | None, typer.Option("--name", help="New display name.")] = None,
    tenant: Annotated[str | None, typer.Option(help="New tenant.")] = None,
    set_: Properties = None,
    unset: Annotated[list[str] | None, typer.Option(help="Property override to remove; may be repeated.")] = None,
) -> None:
    """Rename a table, or change its tenant or its property overrides."""
    path, given = f"/v1/tables/{segment(name)}", _full(name_values(set_))

    def call(api: ApiClient) -> Any:
        body: dict[str, Any] = {"name": new_name, "tenant": tenant}
        if given or unset:
            overrides = api.get(path)["properties"]
            dropped = _full(dict.fromkeys(unset or (), ""))
            body["properties"] = {key: value for key, value in overrides.items() if key not in dropped} | given
        return api.patch(path, {key: value for key, value in body.items() if value is not None})

    print_answer(context, call, tables_view.show_change)


@app.command("discover")
def discover(
    context: typer.Context,
    start: Annotated[bool, typer.Option("--start", help="Start discovery now.")] = False,  # noqa: FBT002
) -> None:
    """Show the progress of table discovery below the allowed roots, or start it."""
    print_answer(
        context,
        lambda api: api.post("/v1/discovery", {}) if start else api.get("/v1/discovery"),
        tables_view.show_discovery,
    )


@app.command("remove")
def remove_table(context: typer.Context, name: Name) -> None:
    """Unregister a table and cancel its jobs; the data of the table stays untouched."""
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        api.delete(f"/v1/tables/{segment(name)}")
    if out.as_json:
        return out.raw({"removed": name})
    return out.line(f"{name} unregistered; table data untouched.")


@app.command("show")
def show_table(context: typer.Context, name: Name) -> None:
    """Show a table: its policy and the source of each value, its layout, last decision and last job."""
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        answer = api.get(f"/v1/tables/{segment(name)}")
        if out.as_json:
            return out.raw(answer)
        worth = api.get(f"/v1/tables/{segment(name)}/history", {"hours": 1})["worth"]
        failing = failing_jobs(api, name)
    tables_view.show_table(out, answer)
    out.line(f"Worth of the rewrites: {worth['text']}")
    return out.lines(map(failure_text, failing))


@app.command("refused")
def list_refused(context: typer.Context, limit: Limit = 100) -> None:
    """List files that actors refused, of all tables, with the reason and what to do."""
    print_answer(context, lambda api: api.get("/v1/refused-files", {"limit": limit}), tables_view.show_refused)


@app.command("partitions")
def list_partitions(context: typer.Context, name: Name, limit: Limit = 100) -> None:
    """List the partitions of a table with the decision that each would get now."""
    print_answer(
        context,
        lambda api: api.get(f"/v1/tables/{segment(name)}/partitions", {"limit": limit}),
        tables_view.show_partitions,
    )


@app.command("reads")
def show_reads(context: typer.Context, name: Name) -> None:
    """Show how often a table is read, as engines reported, and with which filters; --json is read by what-if."""
    print_answer(context, lambda api: api.get(f"/v1/tables/{segment(name)}/reads"), tables_view.show_reads)


@app.command("decisions")
def list_decisions(
    context: typer.Context,
    name: Name,
    partition: Annotated[str | None, typer.Option(help="Only this partition, such as dt=2026-01-01.")] = None,
    at_: Annotated[
        str | None, typer.Option("--at", help="Show the decisions effective at this time (RFC 3339).")
    ] = None,
    limit: Limit = 20,
) -> None:
    """List the decisions about a table, skips included, newest first."""
    print_answer(
        context,
        lambda api: api.get(
            f"/v1/tables/{segment(name)}/decisions", {"partition": partition, "at": at_, "limit": limit}
        ),
        tables_view.show_decisions,
    )


@app.command("why")
def why(
    context: typer.Context,
    name: Name,
    at_: Annotated[
        str | None, typer.Option("--at", help="Time of interest: RFC 3339, or the last 14:03 in UTC. Default: now.")
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Only this partition, such as dt=2026-01-01.")] = None,
    limit: Limit = 20,
) -> None:
    """Explain why each partition of a table was, or was not, optimized at a given time."""
    out = setting_of(context).output()
    moment = _moment(at_)
    with setting_of(context).api() as api:
        asked = {"partition": partition, "at": moment.isoformat(), "limit": limit}
        answer = api.get(f"/v1/tables/{segment(name)}/decisions", asked)
        if out.as_json:
            return out.raw(answer)
        table = api.get(f"/v1/tables/{segment(name)}") if at_ is None else None
        failing = failing_jobs(api, name) if at_ is None else []
    if not answer["decisions"]:
        out.line(
            f"No decision about {name} from before {at(moment.isoformat())} UTC is kept here. "
            "Older ones are in the archive, if LAKEWRIGHT_ARCHIVE names one."
        )
    for one in answer["decisions"]:
        out.line(f"{at(one['at'])} UTC  {one['action']}  {one['message']}")
    if table is not None and not table["refusal"]:
        out.line(f"Now: {tables_view.state_text(table)}.")
    out.lines(map(failure_text, failing))
    return tables_view.show_refusals(out, answer)


def _moment(text: str | None) -> datetime:
    """Read a moment in the past; a bare time is the last such one in UTC, as the ledger is: today's, or yesterday's."""
    now = datetime.now(UTC)
    if text is None:
        return now
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text):
            today = datetime.combine(now.date(), time.fromisoformat(text.zfill(5)), UTC)
            found = today if today <= now + CLOCK_SKEW else today - timedelta(days=1)
            # A minute is asked about as a whole: a decision of 14:03:07 is one of 14:03.
            return found if text.count(":") > 1 else min(found + timedelta(seconds=59.999), max(found, now))
        found = datetime.fromisoformat(text)
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}; expected 14:03 or 2026-01-01T14:03:00Z", param_hint="--at") from problem
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    return _past(found, now)


def _past(moment: datetime, now: datetime) -> datetime:
    """Return a moment that is not in the future, where nothing has been decided yet; clocks may differ a little."""
    if moment > now + CLOCK_SKEW:
        raise typer.BadParameter(
            f"{moment:%Y-%m-%d %H:%M:%S %Z} is in the future; in UTC it is {now:%Y-%m-%d %H:%M} now",
            param_hint="--at",
        )
    return moment


@app.command("pause")
def pause_table(context: typer.Context, name: Name) -> None:
    """Stop dispatching jobs of a table; running jobs continue."""
    _steer(context, name, "pause")


@app.command("resume")
def resume_table(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Table name or id.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every paused table.")] = False,  # noqa: FBT002
) -> None:
    """Dispatch the jobs of a paused table again, or of all paused tables."""
    if all_ == (name is not None):
        raise typer.BadParameter("name the table, or all paused ones with --all")
    if name is not None:
        return _steer(context, name, "resume")
    return print_answer(context, lambda api: api.post("/v1/tables/resume", {}), show_message)


def _added(name: str, *, paused: bool) -> str:
    preview = f"`lakewright optimize {name} --dry-run` shows what would be rewritten now"
    if paused:
        return f"It is paused: {preview}, and `lakewright tables resume {name}` starts it."
    return f"Its small files are rewritten from now on: {preview}, and `lakewright tables pause {name}` stops it."


def _steer(context: typer.Context, name: str, how: str) -> None:
    print_answer(context, lambda api: api.post(f"/v1/tables/{segment(name)}/{how}", {}), show_message)


def _full(settings: dict[str, str]) -> dict[str, str]:
    from shared.policy.properties import as_properties  # noqa: PLC0415 - for settings alone

    return as_properties(settings)
