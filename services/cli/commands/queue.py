"""`lakewright queue …`: queue depth, the next jobs and why; weights, limits, pauses, settings and the audit."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from services.cli.charts.queue_chart import picture
from services.cli.charts.simulation import ArrivalLoad, arrivals, fair, fifo, outcome
from services.cli.cli_context import print_answer, setting_of, show_message
from services.cli.commands.queue_settings import COLUMNS, changes, rows
from services.cli.render import Output, at, counted, duration
from shared.queue.limits import MAX_FORESEEN

app = typer.Typer(no_args_is_help=True, help="Show and administer the queue.")

OVERSOLD = 1.05
"""Share of a quota above which it counts as oversold: slot time that is measured by runs varies by less."""

ScopeArgument = Annotated[str, typer.Argument(help="Scope: queue, band, tenant or table.")]
NameArgument = Annotated[str, typer.Argument(help="Band 0 to 4, tenant, or table id.")]


@app.command("show")
def show_queue(
    context: typer.Context,
    claims: Annotated[
        int, typer.Option("--next", min=1, max=MAX_FORESEEN, help="Number of upcoming jobs to show.")
    ] = MAX_FORESEEN,
) -> None:
    """Show queue depth and the next jobs to be dispatched."""
    print_answer(context, lambda api: api.get("/v1/queue", {"next_claims": claims}), _show_queue)


@app.command("settings")
def show_settings(context: typer.Context) -> None:
    """Show queue settings with their value, default, range and description."""
    print_answer(context, lambda api: api.get("/v1/queue/settings"), _show_settings)


@app.command("set")
def change_settings(
    context: typer.Context,
    settings: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="Settings, such as aging=60s max-attempts=5.")
    ],
) -> None:
    """Change the named settings of the running queue. `lakewright queue settings` lists the names."""
    asked = changes(settings)
    print_answer(context, lambda api: api.patch("/v1/queue/settings", asked), _show_settings)


@app.command("weight")
def set_weight(
    context: typer.Context,
    scope: Annotated[str, typer.Argument(help="Scope: band (weight only), tenant or table.")],
    name: NameArgument,
    weight: Annotated[float | None, typer.Option(help="Weight, 0.01 to 100; the default is 1.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of concurrent jobs; 0 removes the limit.")
    ] = None,
    quota: Annotated[int | None, typer.Option(min=1, max=100, help="Maximum share of all slots, in percent.")] = None,
) -> None:
    """Set the weight, the limit or the quota of a band, a tenant or a table."""
    body = {"scope": scope, "name": name, "weight": weight, "limit": limit, "quota_percent": quota}
    print_answer(context, lambda api: api.put("/v1/queue/weights", body), show_message)


@app.command("pause")
def pause(context: typer.Context, scope: ScopeArgument = "queue", name: NameArgument = "") -> None:
    """Stop dispatching jobs in this scope; running jobs continue."""
    _post(context, "/v1/queue/pause", {"scope": scope, "name": name})


@app.command("resume")
def resume(context: typer.Context, scope: ScopeArgument = "queue", name: NameArgument = "") -> None:
    """Dispatch the jobs in this scope again."""
    _post(context, "/v1/queue/resume", {"scope": scope, "name": name})


@app.command("audit")
def audit(context: typer.Context) -> None:
    """Rebuild queue indexes and repair inconsistencies."""
    print_answer(context, lambda api: api.post("/v1/queue/audit", {}), _show_audit)


@app.command("sim")
def simulate(
    context: typer.Context,
    tenants: Annotated[int, typer.Option(min=2, max=50, help="Number of tenants; the first has the most jobs.")] = 8,
    jobs: Annotated[int, typer.Option(min=100, max=200_000, help="Number of jobs.")] = 4_000,
    slots: Annotated[int, typer.Option(min=1, max=1_000, help="Number of slots.")] = 4,
    load: Annotated[float, typer.Option(min=0.1, max=2.0, help="Target utilization.")] = 0.95,
    svg: Annotated[Path | None, typer.Option(help="Write a chart to this file, as SVG.")] = None,
) -> None:
    """Simulate sojourn time for Zipf-distributed tenants, under fair queueing and first come, first served."""
    out = setting_of(context).output()
    setting = ArrivalLoad(tenants=tenants, jobs=jobs, slots=slots, load=load)
    drawn = arrivals(setting)
    first, shared = outcome(setting, drawn, fifo), outcome(setting, drawn, fair)
    if svg is not None:
        svg.write_text(picture(setting, first, shared), encoding="utf-8")
    if out.as_json:
        return out.raw({"fifo": asdict(first), "fair": asdict(shared)})
    dwells = [
        (number + 1, a.jobs, *(f"{one:.1f}" for one in (a.p50_s, a.p95_s, b.p50_s, b.p95_s)))
        for number, (a, b) in enumerate(zip(first.dwell, shared.dwell, strict=True))
    ]
    columns = ("tenant", "jobs", "fifo p50", "fifo p95", "fair p50", "fair p95")
    out.rows("Sojourn time (arrival to end), seconds", columns, dwells)
    return out.line(f"Jain's fairness index under full backlog: first come {first.jain:.3f}, fair {shared.jain:.3f}")


def _show_queue(out: Output, answer: Any) -> None:
    names = answer["table_names"]
    out.pairs("Queue", {**answer["depth"], "oldest wait": duration(answer["oldest_wait_s"]), **answer["settings"]})
    oldest, held = answer["oldest_waits_s"], answer["occupancy"]
    quotas = answer["quota_occupation"]
    waiting = [
        (
            *(level, names.get(name, name), jobs, _wait(oldest[level].get(name))),
            *(_share(held.get(level, {}), name), _quota(quotas.get(level, {}), name)),
        )
        for level in ("bands", "tenants", "tables")
        for name, jobs in answer[level].items()
    ]
    out.rows("Waiting", ("scope", "name", "jobs", "oldest wait", "slot share", "of quota"), waiting)
    oversold = [
        f"{names.get(name, name)} ({_share(quotas[level], name)})"
        for level in ("tenants", "tables")
        for name, share in quotas[level].items()
        if share > OVERSOLD
    ]
    if oversold:
        out.line(f"Oversold, above their quota: {', '.join(oversold)}")
    rows = [
        (
            names.get(one["table"], one["table"]),
            one["band"],
            one["tenant"],
            at(one["enqueued_at"]),
            one["message"].replace(one["table"], names.get(one["table"], one["table"])),
            one["id"],
        )
        for one in answer["next"]
    ]
    out.rows("Next jobs", ("table", "priority", "tenant", "enqueued at (UTC)", "reason", "job"), rows)


def _show_settings(out: Output, answer: Any) -> None:
    out.rows("Settings", COLUMNS, rows(answer))


def _show_audit(out: Output, answer: Any) -> None:
    out.line(f"{counted(answer['keys_checked'], 'key')} checked, {answer['repaired']:,} repaired")


def _wait(wait_s: float | None) -> str:
    return "" if wait_s is None else duration(wait_s)


def _share(shares: dict[str, float], name: str) -> str:
    return f"{100 * shares[name]:.1f}%" if name in shares else ""


def _quota(shares: dict[str, float], name: str) -> str:
    return _share(shares, name) + (" oversold" if shares.get(name, 0.0) > OVERSOLD else "")


def _post(context: typer.Context, path: str, body: dict[str, str]) -> None:
    print_answer(context, lambda api: api.post(path, body), show_message)
