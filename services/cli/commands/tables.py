"""`lakewright tables …`: register, list, show and unregister tables, and explain decisions."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any

import typer

from services.cli.cli_context import setting_of
from services.cli.client import CallFailed, segment
from services.cli.lazy_group import lazy_group
from services.cli.render import Output, at, counted, duration, measured_runs, shown, size

HISTORY = "services.cli.commands.history"

app = typer.Typer(
    cls=lazy_group({"optimizations": f"{HISTORY}:optimizations", "scheduled": f"{HISTORY}:scheduled"}, at_end=True),
    no_args_is_help=True,
    help="Register, list, show, pause and unregister tables; show their partitions and decisions.",
)

FIRST_READ_S = 20.0
"""Seconds that `tables add` waits for the first read of the table."""

CLOCK_SKEW = timedelta(minutes=1)
"""How far the clocks of this machine and of whoever names a moment may differ."""

BUSY_SHOWN = 5
"""Partitions under DML that fit into one line."""

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
    page_token: Annotated[str | None, typer.Option(help="Token that the previous page ended with.")] = None,
) -> None:
    """List registered tables by name, with the state of each."""
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        answer = api.get("/v1/tables", {"prefix": prefix, "limit": limit, "page_token": page_token})
    if out.as_json:
        return out.raw(answer)
    rows = [(table["name"], table["tenant"], table["location"], _state(table)) for table in answer["tables"]]
    out.rows("Tables", ("name", "tenant", "location", "state"), rows)
    if any(table["refusal"] or table["error"] for table in answer["tables"]):
        out.line("Why a table is not optimized: lakewright tables show NAME")
    if answer["next_page_token"]:
        out.line(f"More tables: --page-token {answer['next_page_token']}")
    return None


@app.command("add")
def add_table(
    context: typer.Context,
    location: Annotated[str, typer.Argument(help="Absolute path or URI of the table.")],
    name: Annotated[str | None, typer.Option(help="Display name.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant that owns the table.")] = None,
    set_: Properties = None,
    paused: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--paused", help="Queue rewrites, but run none until `tables resume`.")
    ] = False,
) -> None:
    """Register a table and start to optimize it. Its own properties set the policy; those of --set take precedence.

    Exit code 1: the table is not there (and is not registered), or cannot be read or rewritten.
    """
    out = setting_of(context).output()
    body = {
        "location": location, "name": name, "tenant": tenant, "properties": _pairs(set_) or None,
        "paused": paused or None, "wait_s": FIRST_READ_S,
    }  # fmt: skip
    with setting_of(context).api() as api:
        answer = api.post("/v1/tables", {key: value for key, value in body.items() if value is not None})
    if out.as_json:
        return out.raw(answer)
    out.line(f"{answer['name']} is registered: {answer['location']}")
    reading = answer["reading"]
    if reading is not None and (reading["version"] is None or reading["refusal"]):
        why = reading["refusal"]["reason"] if reading["refusal"] else reading["error"] or "it is still being read"
        raise CallFailed(f"{answer['name']} is not optimized: {why}; it is read again with every event and sweep")
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
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        body: dict[str, Any] = {"name": new_name, "tenant": tenant}
        if set_ or unset:
            said = api.get(f"/v1/tables/{segment(name)}")["properties"]
            dropped = _full(dict.fromkeys(unset or (), ""))
            body["properties"] = {key: value for key, value in said.items() if key not in dropped} | _pairs(set_)
        answer = api.patch(
            f"/v1/tables/{segment(name)}", {key: value for key, value in body.items() if value is not None}
        )
    if out.as_json:
        return out.raw(answer)
    overrides = shown(answer["properties"]) if answer["properties"] else "no overrides"
    return out.line(f"{answer['name']} of {answer['tenant']}: {overrides}")


@app.command("discover")
def discover(
    context: typer.Context,
    start: Annotated[bool, typer.Option("--start", help="Start discovery now.")] = False,  # noqa: FBT002
) -> None:
    """Show the progress of table discovery below the allowed roots, or start it."""
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        answer = api.post("/v1/discovery", {}) if start else api.get("/v1/discovery")
    if out.as_json:
        return out.raw(answer)
    rows = [
        (
            one["root"],
            " ".join(filter(None, (one["state"], one["error"]))),
            one["path"],
            one["folders"],
            one["tables"],
            one["new_tables"],
            one["unreadable_folders"],
            at(one["finished_at"]) if one["finished_at"] else "-",
        )
        for one in answer["roots"]
    ]
    heads = ("root", "state", "at", "folders", "tables", "new", "unreadable", "ended (UTC)")
    return out.rows("Discovery", heads, rows)


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
    out.pairs(answer["name"], _summary(answer))
    _layout(out, answer["layout"])
    policy = [(one["property"], one["value"], one["unit"], _origin(one)) for one in answer["policy"]["values"]]
    out.rows("Policy", ("property", "value", "unit", "from"), policy)
    issues = [(one["property"], one["value"], one["reason"]) for one in answer["policy"]["issues"]]
    if issues:
        out.rows("Invalid properties", ("property", "value", "reason"), issues)
    for note in answer["policy"]["notes"]:
        out.line(note)
    return None


@app.command("partitions")
def list_cells(context: typer.Context, name: Name, limit: Limit = 100) -> None:
    """List the partitions of a table with the decision that each would get now."""
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        answer = api.get(f"/v1/tables/{segment(name)}/partitions", {"limit": limit})
    if out.as_json:
        return out.raw(answer)
    rows = [
        (
            cell["partition_label"],
            cell["layout"]["files"],
            cell["layout"]["small_files"],
            size(cell["layout"]["bytes"]),
            f"{cell['layout']['rms_shortfall']:.0%}",
            cell["decision"],
            cell["reason"],
        )
        for cell in answer["partitions"]
    ]
    columns = ("partition", "files", "small", "bytes", "entropy", "decision", "reason")
    return out.rows(f"Partitions at version {answer['version']}", columns, rows)


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
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        answer = api.get(f"/v1/tables/{segment(name)}/decisions", {"partition": partition, "at": at_, "limit": limit})
    if out.as_json:
        return out.raw(answer)
    rows = [(at(one["at"]), one["decision"], one["message"]) for one in answer["decisions"]]
    return out.rows("Decisions", ("at (UTC)", "decision", "why"), rows)


@app.command("why")
def why(
    context: typer.Context,
    name: Name,
    at_: Annotated[
        str | None, typer.Option("--at", help="Time of interest: RFC 3339, or 14:03 for today in UTC. Default: now.")
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
    if not answer["decisions"]:
        return out.line(
            f"No decision about {name} from before {at(moment.isoformat())} UTC is kept here. "
            "Older ones are in the archive, if LAKEWRIGHT_ARCHIVE names one."
        )
    for one in answer["decisions"]:
        out.line(f"{at(one['at'])} UTC  {one['message']}")
    return None


def _moment(text: str | None) -> datetime:
    """Read a moment in the past; a bare time is today's in UTC, as the ledger is."""
    now = datetime.now(UTC)
    if text is None:
        return now
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text):
            return _past(datetime.combine(now.date(), time.fromisoformat(text.zfill(5)), UTC), now)
        found = datetime.fromisoformat(text)
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}; expected 14:03 or 2026-01-01T14:03:00Z", param_hint="--at") from problem
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    return _past(found, now)


def _past(moment: datetime, now: datetime) -> datetime:
    """Return a moment that is not in the future, where nothing has been decided yet; clocks may differ a little."""
    if moment > now + CLOCK_SKEW:
        raise typer.BadParameter(
            f"{moment:%Y-%m-%d %H:%M:%S %Z} is in the future; a time without a date is today's in UTC, where it is "
            f"{now:%H:%M}",
            param_hint="--at",
        )
    return moment


@app.command("pause")
def pause_table(context: typer.Context, name: Name) -> None:
    """Stop dispatching jobs of a table; running jobs continue."""
    _steer(context, name, "pause")


@app.command("resume")
def resume_table(context: typer.Context, name: Name) -> None:
    """Dispatch the jobs of a paused table again."""
    _steer(context, name, "resume")


def _added(name: str, *, paused: bool) -> str:
    preview = f"`lakewright optimize {name} --dry-run` shows what would be rewritten now"
    if paused:
        return f"It is paused: {preview}, and `lakewright tables resume {name}` starts it."
    return f"Its small files are rewritten from now on: {preview}, and `lakewright tables pause {name}` stops it."


def _state(table: dict[str, Any]) -> str:
    if table["refusal"]:
        return _listed(table["refusal"])
    if table["version"] is None:
        return "cannot be read" if table["error"] else "not read yet"
    return f"version {table['version']}"


def _steer(context: typer.Context, name: str, how: str) -> None:
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        answer = api.post(f"/v1/tables/{segment(name)}/{how}", {})
    return out.raw(answer) if out.as_json else out.line(answer["message"])


def _summary(answer: dict[str, Any]) -> dict[str, object]:
    cursor, decision, job = answer["state"], answer["last_decision"], answer["last_job"]
    return {
        "location": answer["location"],
        "tenant": answer["tenant"],
        "refused": _refusal(answer["refusal"]) if answer["refusal"] else "no",
        "version": cursor["version"] if cursor else "not yet read",
        "applied at (UTC)": at(cursor["applied_at"]) if cursor else "-",
        "lag": duration(cursor["lag_s"]) if cursor else "-",
        "rebuilds": cursor["rebuilds"] if cursor else 0,
        "partitions": f"{answer['partitions']}, {answer['eligible_partitions']} of them eligible",
        "last decision": decision["message"] if decision else "-",
        "last job": f"{job['id']} {job['state']} {job['result']}" if job else "-",
        "manual run": answer["manual_run"]["message"] if answer["manual_run"] else "-",
        "MERGE, UPDATE, DELETE": _contention(answer["write_contention"]),
        "predicted and measured": _calibration(answer["calibration"]),
        "counters": shown(answer["counters"]),
    }


def _contention(cells: list[dict[str, Any]]) -> str:
    busiest = (f"{cell['partition_label']} {cell['busy_ratio']:.0%}" for cell in cells[:BUSY_SHOWN])
    more = f" and {len(cells) - BUSY_SHOWN} more" if len(cells) > BUSY_SHOWN else ""
    return ", ".join(busiest) + more + " of the last hour" if cells else "no DML in the last hour"


def _calibration(learned: dict[str, Any]) -> str:
    if not learned["runs"]:
        return "no rewrites yet"
    groups = learned["groups_not_promoted"] + learned["groups_promoted"]
    return (
        f"{measured_runs(learned)}; outputs are {learned['shrink']:.0%} of their inputs; "
        f"{learned['groups_not_promoted']} of {counted(groups, 'group')} stayed below their target level"
    )


def _listed(refusal: dict[str, Any]) -> str:
    return "missing" if refusal["missing"] else str(refusal["code"] or "unreadable")


def _refusal(refusal: dict[str, Any]) -> str:
    return f"{'missing' if refusal['missing'] else 'yes'}, since {at(refusal['since'])} UTC: {refusal['reason']}"


def _pairs(said: Sequence[str] | None) -> dict[str, str]:
    pairs = [one.partition("=") for one in said or ()]
    for name, equals, _ in pairs:
        if not equals:
            raise typer.BadParameter(f"expected name=value, found {name!r}", param_hint="--set")
    return _full({name.strip(): value.strip() for name, _, value in pairs})


def _full(settings: dict[str, str]) -> dict[str, str]:
    from shared.properties import as_properties  # noqa: PLC0415 - for settings alone

    return as_properties(settings)


def _origin(value: dict[str, Any]) -> str:
    return str(value["set_by"]) if value["source"] == "default" else f"{value['source']}: {value['set_by']}"


def _layout(out: Output, layout: dict[str, Any]) -> None:
    title = (
        f"Layout: {counted(layout['files'], 'file')}, {size(layout['bytes'])}, {layout['small_files']} small; "
        f"entropy {layout['rms_shortfall']:.0%} of the target (root of MSE)"
    )
    rows = [
        (
            "full" if level["below_bytes"] is None else level["level"],
            size(level["from_bytes"]),
            "" if level["below_bytes"] is None else size(level["below_bytes"]),
            level["files"],
            size(level["bytes"]),
        )
        for level in layout["levels"]
    ]
    out.rows(title, ("level", "from", "below", "files", "bytes"), rows)
