"""`lakewright queue …`: depth, the next jobs and why; weights, limits, budgets, pauses, settings and the audit.

The queue's settings as people read and write them: `aging=2min` is `aging_ms: 120000` of the REST API.

What is shown can be typed: each value is written so that `lakewright queue set` takes it back.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from services.cli.cli_context import name_values, print_answer, show_message
from services.cli.client import segment
from services.cli.render import Output, at, budget_use, counted, duration
from shared.policy.parsers import integer, parse_ms
from shared.queue.limits import MAX_FORESEEN
from shared.queue.settings import SETTINGS, QueueSetting, SettingUnit

app = typer.Typer(no_args_is_help=True, help="Show and administer the queue.")

OVERSOLD = 1.05
"""Share of a quota above which it counts as oversold: slot time that is measured by runs varies by less."""

PAUSED = "!"
"""Mark of a limit whose tenant or table is paused."""

ScopeArgument = Annotated[str, typer.Argument(help="Scope: queue, band, tenant or table.")]
NameArgument = Annotated[str, typer.Argument(help="Band 0 to 4, tenant, or table id.")]
GroupOption = Annotated[
    str | None, typer.Option("--group", help="Group of the queue. Default: the one with the queue's name.")
]


@app.command("show")
def show_queue(
    context: typer.Context,
    claims: Annotated[
        int, typer.Option("--next", min=1, max=MAX_FORESEEN, help="Number of upcoming jobs to show.")
    ] = MAX_FORESEEN,
    group: GroupOption = None,
) -> None:
    """Show queue depth and the next jobs to be dispatched."""

    def show(out: Output, answer: Any) -> None:
        _show_queue(out, answer)
        held = answer["depth"].get("queued", 0) - len(answer["next"])
        if held > 0 and len(answer["next"]) < claims:
            out.line(
                f"{counted(held, 'queued job')} cannot start now: paused, at a limit or quota, outside a window, or "
                "over budget."
            )

    print_answer(context, lambda api: api.get("/v1/queue", {"next_claims": claims, "group": group}), show)


@app.command("groups")
def show_groups(context: typer.Context) -> None:
    """Show the groups of the queue with their actors, jobs and quotas."""
    print_answer(context, lambda api: api.get("/v1/groups"), _show_groups)


@app.command("settings")
def show_settings(context: typer.Context, group: GroupOption = None) -> None:
    """Show queue settings with their value, default, range and description."""
    print_answer(context, lambda api: api.get("/v1/queue/settings", {"group": group}), _show_settings)


@app.command("set")
def change_settings(
    context: typer.Context,
    settings: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="Settings, such as aging=60s max-attempts=5.")
    ],
    group: GroupOption = None,
) -> None:
    """Change the named settings of the running queue. `lakewright queue settings` lists the names."""
    asked = changes(settings)
    print_answer(context, lambda api: api.patch(_of("/v1/queue/settings", group), asked), _show_settings)


@app.command("weight")
def set_weight(  # noqa: PLR0913, PLR0917 - each is an option of the command
    context: typer.Context,
    scope: Annotated[str, typer.Argument(help="Scope: band (weight only), tenant or table.")],
    name: NameArgument,
    weight: Annotated[float | None, typer.Option(help="Weight, 0.01 to 100; the default is 1.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of concurrent jobs; 0 removes the limit.")
    ] = None,
    quota: Annotated[int | None, typer.Option(min=1, max=100, help="Maximum share of all slots, in percent.")] = None,
    group: GroupOption = None,
) -> None:
    """Set the weight, the limit or the quota of a band, a tenant or a table."""
    body = {"scope": scope, "name": name, "weight": weight, "limit": limit, "quota_percent": quota}
    print_answer(context, lambda api: api.put(_of("/v1/queue/weights", group), body), show_message)


@app.command("budget")
def set_budget(
    context: typer.Context,
    amount: Annotated[str, typer.Argument(help="Amounts, such as '2 core-hours/day; 20 USD/month', or none.")],
    scope: Annotated[str, typer.Argument(help="Scope: queue, tenant or table.")] = "queue",
    name: NameArgument = "",
) -> None:
    """Set what the jobs of the queue, a tenant or a table may use in a day or a month."""
    body = {"scope": scope, "name": name, "budget": amount}
    print_answer(context, lambda api: api.put("/v1/queue/weights", body), show_message)


@app.command("pause")
def pause(
    context: typer.Context, scope: ScopeArgument = "queue", name: NameArgument = "", group: GroupOption = None
) -> None:
    """Stop dispatching jobs in this scope; running jobs continue."""
    _post(context, _of("/v1/queue/pause", group), {"scope": scope, "name": name})


@app.command("resume")
def resume(
    context: typer.Context, scope: ScopeArgument = "queue", name: NameArgument = "", group: GroupOption = None
) -> None:
    """Dispatch the jobs in this scope again."""
    _post(context, _of("/v1/queue/resume", group), {"scope": scope, "name": name})


@app.command("audit")
def audit(context: typer.Context) -> None:
    """Rebuild queue indexes and repair inconsistencies."""
    print_answer(context, lambda api: api.post("/v1/queue/audit", {}), _show_audit)


def _show_queue(out: Output, answer: Any) -> None:
    names = answer["table_names"]
    settings = answer["settings"]
    paused = {"paused": settings["paused"]} if "paused" in settings else {}
    out.pairs("Queue", {**answer["depth"], "oldest wait": duration(answer["oldest_wait_s"]), **paused})
    oldest, held = answer["oldest_waits_s"], answer["occupancy"]
    waiting = [
        (
            *(level, names.get(name, name), jobs),
            *(_wait(oldest[level].get(name)), _share(held.get(level, {}), name)),
        )
        for level in ("bands", "tenants", "tables")
        for name, jobs in answer[level].items()
    ]
    out.rows("Waiting", ("scope", "name", "jobs", "oldest wait", "slot share"), waiting)
    if shares := _shares(settings, answer["quota_occupation"], names):
        out.rows("Weights and limits", ("scope", "name", "weight", "limit", "of quota"), shares)
    if budgets := answer["budgets"]:
        out.rows(
            "Budgets", ("scope", "name", "budget"), [(one["scope"], one["name"], budget_use(one)) for one in budgets]
        )
    rows = [
        (
            names.get(one["table"], one["table"]),
            one["partition_label"],
            one["band"],
            one["tenant"],
            at(one["enqueued_at"]),
            one["message"].replace(one["table"], names.get(one["table"], one["table"])),
            one["id"],
        )
        for one in answer["next"]
    ]
    out.rows("Next jobs", ("table", "partition", "priority", "tenant", "enqueued at (UTC)", "reason", "job"), rows)


def _show_groups(out: Output, answer: Any) -> None:
    groups = answer["groups"]
    rows_of_groups = [
        (
            *(one["group"], _actors(one), one["slots"], one["running"], one["waiting"]),
            duration(one["oldest_wait_s"]),
            f"{100 * one['promised_ratio']:.0f}%" + (" oversold" if one["is_oversold"] else ""),
        )
        for one in groups
    ]
    columns = ("group", "actors", "slots", "running", "waiting", "oldest wait", "promised by quotas")
    out.rows("Groups", columns, rows_of_groups)
    quotas = [
        (one["group"], quota["table_name"], quota["quota"], _occupied(quota["occupation_ratio"]))
        for one in groups
        for quota in one["quotas"]
    ]
    if quotas:
        out.rows("Quotas of tables", ("group", "table", "quota", "of quota"), quotas)


def _actors(group: Any) -> str:
    wanted = group["wanted_actors"]
    return f"{group['actors']}" if wanted in (None, group["actors"]) else f"{group['actors']} of {wanted} wanted"


def _show_settings(out: Output, answer: Any) -> None:
    out.rows("Settings", COLUMNS, rows(answer))


def _show_audit(out: Output, answer: Any) -> None:
    out.line(f"{counted(answer['keys_checked'], 'key')} checked, {answer['repaired']:,} repaired")


def _shares(
    settings: dict[str, str], quotas: dict[str, dict[str, float]], names: dict[str, str]
) -> list[tuple[str, ...]]:
    """Return a row for each scope with a weight, a limit or a quota; one that is only paused is none."""
    scopes = {key.partition(":")[2] for key, value in settings.items() if key != "paused" and value != PAUSED}
    return [
        (
            *(scope, names.get(name, name), settings.get(f"weight:{scope}|{name}", "1")),
            settings.get(f"limit:{scope}|{name}", "none").removeprefix(PAUSED),
            _quota(quotas.get(f"{scope}s", {}), name),
        )
        for scope, _, name in (one.partition("|") for one in sorted(scopes))
    ]


def _wait(wait_s: float | None) -> str:
    return "" if wait_s is None else duration(wait_s)


def _share(shares: dict[str, float], name: str) -> str:
    return f"{100 * shares[name]:.1f}%" if name in shares else ""


def _quota(shares: dict[str, float], name: str) -> str:
    return _occupied(shares[name]) if name in shares else ""


def _occupied(share: float) -> str:
    return f"{100 * share:.1f}%" + (" oversold" if share > OVERSOLD else "")


def _of(path: str, group: str | None) -> str:
    """Return a path for a group of the queue."""
    return path if group is None else f"{path}?group={segment(group)}"


def _post(context: typer.Context, path: str, body: dict[str, str]) -> None:
    print_answer(context, lambda api: api.post(path, body), show_message)


COLUMNS = ("name", "value", "unit", "default", "from", "to", "meaning")

_SPANS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))

_HINT = "NAME=VALUE"


def rows(answer: dict[str, Any]) -> list[Sequence[str]]:
    """Return a row for each setting of the API's answer."""
    return [_row(one) for one in answer["settings"]]


def changes(pairs: Iterable[str]) -> dict[str, int]:
    """Read `aging=60s max-attempts=5` into the API's names and units. Raises BadParameter, naming what is known."""
    return dict(_change(name, value) for name, value in name_values(pairs, _HINT).items())


def _row(one: dict[str, Any]) -> Sequence[str]:
    value, default, low, high = (
        _spelled(one[name], one["unit"]) for name in ("value", "default", "minimum", "maximum")
    )
    unit = "time" if one["unit"] == SettingUnit.MS else str(one["unit"])
    return (_short(one["name"]), value, unit, default, low, high, one["description"])


def _change(name: str, text: str) -> tuple[str, int]:
    known = {_short(full): full for full, setting in SETTINGS.items() if not setting.is_set_by_decider}
    asked = _short(name)
    if asked not in known:
        why = f"{name!r} is set by the decider" if _is_set_by_decider(asked) else f"{name!r} is no setting"
        raise typer.BadParameter(f"{why}; NAME is one of {', '.join(known)}", param_hint=_HINT)
    try:
        return known[asked], _value(text, SETTINGS[known[asked]])
    except ValueError as problem:
        raise typer.BadParameter(f"{asked}: {problem}, found {text!r}", param_hint=_HINT) from problem


def _value(text: str, setting: QueueSetting) -> int:
    if setting.unit is not SettingUnit.MS:
        return int(integer(setting.low, setting.high)(text))
    found = parse_ms(text)
    if not setting.low <= found <= setting.high:
        raise ValueError(
            f"expected {_spelled(setting.low, SettingUnit.MS)} to {_spelled(setting.high, SettingUnit.MS)}"
        )
    return found


def _is_set_by_decider(short: str) -> bool:
    return any(setting.is_set_by_decider and _short(name) == short for name, setting in SETTINGS.items())


def _short(name: str) -> str:
    """Return a name as options are written: without the unit, which is part of the value."""
    return name.replace("_", "-").removesuffix("-ms")


def _spelled(value: int, unit: str) -> str:
    """Return a value as it may be typed; a time in the largest unit that leaves nothing over."""
    if unit != SettingUnit.MS:
        return str(value)
    if value == 0:
        return "0s"
    span_ms, name = next(span for span in _SPANS_MS if value % span[0] == 0)
    return f"{value // span_ms}{name}"
