"""`lakewright what-if`: a table's own history under other rules, and the policy that would have cost least.

A location is read directly, so that it works on any Delta table, before anything is installed or registered; a name is
asked of the decider.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from services.cli.cli_context import CliContext, name_values, setting_of
from services.cli.client import CallFailed, segment
from services.cli.decider_parts import decider_parts, local_formats
from services.cli.locations import is_location, location_of
from services.cli.render import Output, counted, mean, size, time_span
from services.cli.visible_console import VisibleConsole
from services.visible_text import visible
from shared.policy.policy import Policy
from shared.prices import Prices, parse_prices

BAR_CELLS = 18
"""Width of a bar in characters: the table still fits into 100 columns."""

_PRICES = "Cost model (assumptions: set your own)"

QueriesPerHour = Annotated[
    float,
    typer.Option(min=0, max=1_000_000, help="Queries per hour, each reading the whole table.", rich_help_panel=_PRICES),
]
OpenS = Annotated[
    float,
    typer.Option(min=0, max=3_600, help="Core-seconds that a query needs to open one file.", rich_help_panel=_PRICES),
]
WriteSPerGib = Annotated[
    float,
    typer.Option(min=0, max=1_000_000, help="Core-seconds that rewriting 1 GiB takes.", rich_help_panel=_PRICES),
]
TailHours = Annotated[
    float,
    typer.Option(
        min=0, max=8_760, help="Hours that the replay continues after the last commit.", rich_help_panel=_PRICES
    ),
]


def what_if(  # noqa: PLR0913, PLR0917 - a command has as many options as questions
    context: typer.Context,
    table: Annotated[
        str, typer.Argument(help="Name of a registered table; or path, URI or CATALOG.NAMESPACE.TABLE of any table.")
    ],
    queries_per_hour: QueriesPerHour = 10.0,
    open_s: OpenS = 0.05,
    write_s_per_gib: WriteSPerGib = 20.0,
    tail_hours: TailHours = 24.0,
    max_commits: Annotated[
        int,
        typer.Option(min=1, max=20_000, help="Replay at most this many of the newest commits; by name 2,000 at most."),
    ] = 20_000,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Also replay with this policy property, such as target-file-size=64MiB; may be repeated."
        ),
    ] = None,
    sort_key: Annotated[
        list[str] | None,
        typer.Option(help="Also compare what ranges of this column read, now and sorted; may be repeated."),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            help="Also show costs in money at these prices: a preset such as aws-2024-12, or JSON as in "
            "LAKEWRIGHT_PRICES. Default: the service's, none for a location."
        ),
    ] = None,
    filters: Annotated[
        Path | None,
        typer.Option(
            help="Advise a column to sort by from the filters in this file: Iceberg's scan reports, or lines such as "
            '{"filter": {"type": "eq", "term": "id", "value": 7}, "times": 30}; for a location.'
        ),
    ] = None,
) -> None:
    """Replay a table's history under no compaction, Lakewright's rules, and the rules of other tools; read-only."""
    setting = setting_of(context)
    out = setting.output()
    model = {
        "queries_per_hour": queries_per_hour,
        "open_s": open_s,
        "write_s_per_gib": write_s_per_gib,
        "tail_hours": tail_hours,
    }
    if not all(map(math.isfinite, model.values())):
        raise typer.BadParameter("costs must be finite numbers")
    overrides = name_values(set_)
    if is_location(table):
        setting.prepare_logs()
        answer = _examine(
            table, model, max_commits, _Options(overrides, sort_key or [], _read_filters(filters), _parsed(prices))
        )
    elif filters is not None:
        raise typer.BadParameter("--filters is for a location: name the table by its path or URI")
    else:
        more = {"properties": overrides, "sort_keys": sort_key, "prices": prices}
        body = {**model, "max_commits": min(max_commits, 2_000)}
        answer = _ask(setting, table, body | {name: given for name, given in more.items() if given})
    return out.raw(answer) if out.as_json else _show(out, answer)


def _parsed(prices: str | None) -> Prices | None:
    try:
        return None if prices is None else parse_prices(prices)
    except ValueError as problem:
        raise typer.BadParameter(f"--prices: {problem}") from problem


def _read_filters(file: Path | None) -> str | None:
    try:
        return None if file is None else file.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise CallFailed(f"the file {file} cannot be read: {problem}") from problem


def _ask(setting: CliContext, table: str, body: dict[str, Any]) -> dict[str, Any]:
    try:
        with setting.api() as api:
            answer: dict[str, Any] = api.post(f"/v1/tables/{segment(table)}/what-if", body)
    except CallFailed as problem:
        if not Path(table).is_dir():
            raise
        raise CallFailed(
            f"{problem}. A name is asked of the decider; to read the directory: lakewright what-if ./{table}"
        ) from problem
    return answer


@dataclass(frozen=True, slots=True)
class _Options:
    """Options besides the cost model: settings, columns to sort by, filters, and the prices of costs in money."""

    overrides: dict[str, str]
    sort_keys: list[str]
    filters: str | None
    money: Prices | None


def _examine(table: str, model: dict[str, float], max_commits: int, asked: _Options) -> dict[str, Any]:
    import asyncio  # noqa: PLC0415 - for reading a log alone

    with decider_parts():
        from decider.api.routes.what_if import what_if_view  # noqa: PLC0415 - optional
        from decider.state.effective_policy import resolve_unregistered  # noqa: PLC0415
        from decider.whatif import examination as parts  # noqa: PLC0415
        from decider.whatif.comparison import STEPS_OF_COMPARISON, STEPS_OF_RECOMMENDATION, CostModel  # noqa: PLC0415
        from decider.whatif.recorded_filters import parse_filters  # noqa: PLC0415
        from decider.whatif.spread_rows import advise_order_by_log  # noqa: PLC0415
        from decider.whatif.trace_reader import TableTrace, read_history, with_ranges  # noqa: PLC0415
    recorded = parse_filters(asked.filters or "")
    parts.lay_over(Policy(), asked.overrides)  # What cannot be used is refused before anything is read.
    location = location_of(table)
    columns = (TextColumn("{task.description:56}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=VisibleConsole(stderr=True), transient=True) as progress:
        reading = progress.add_task("reading the log", total=None)
        log = local_formats().open(location)

        async def read() -> TableTrace:
            found = await read_history(
                log,
                max_commits=max_commits,
                read=lambda done, all_: progress.update(reading, completed=done, total=all_),
            )
            return await with_ranges(log, found, asked.sort_keys)

        history = asyncio.run(read())
        progress.remove_task(reading)
        steps = STEPS_OF_COMPARISON + STEPS_OF_RECOMMENDATION
        replaying = progress.add_task(
            "replaying",
            total=steps + bool(asked.overrides) + len(history.keyed) + bool(recorded),
        )

        def tick(step: str) -> None:
            progress.update(replaying, advance=1, description=f"replaying: {step}")

        in_force = resolve_unregistered(Policy(), history.metadata.configuration, {}, history.metadata.format)
        report, order = parts.examine(history, in_force, CostModel(**model), asked.overrides, tick), None
        if asked.filters is not None:
            tick("sorted by what is filtered")
            order = asyncio.run(advise_order_by_log(log, history, recorded, in_force.policy.target_bytes))
    return what_if_view(report, order=order, money=asked.money).model_dump(mode="json")


def _show(out: Output, answer: dict[str, Any]) -> None:
    first, last = answer["versions"]
    so_far, advice, prices = answer["actual"], answer["recommendation"], answer["cost_model"]
    out.line(
        f"{answer['location']}, versions {first} to {last}: {counted(answer['commits'], 'commit')} "
        f"in {time_span(answer['span_s'])} added {counted(answer['files_added'], 'file')}, "
        f"{size(answer['bytes_added'])}."
    )
    out.line(
        f"In that time {counted(so_far['rewrites'], 'compaction')} rewrote {size(so_far['bytes_rewritten'])}; "
        f"the table has {counted(so_far['files_now'], 'file')} now."
    )
    out.line("")
    out.console.print(_rules(out, answer))
    out.line("")
    out.console.print(_targets(out, answer))
    out.line("")
    out.line(
        f"Core time is {prices['write_s_per_gib']:g} s for each GiB rewritten, and {prices['queries_per_hour']:g} "
        f"queries an hour that take {prices['open_s']:g} s for each file. Costs are added up and files averaged until "
        f"{prices['tail_hours']:g} h after the last commit. "
        "These prices are assumptions: --write-s-per-gib, --queries-per-hour, --open-s, --tail-hours."
    )
    _show_storage(out, answer["storage"])
    for one in answer["sort_keys"]:
        out.line("")
        out.console.print(_sort_key(one))
        if unknown := one["files_without_range"]:
            out.line(f"Every range reads {counted(unknown, 'file')} without minimum and maximum.")
    if answer.get("sort_advice"):
        _show_order(out, answer["sort_advice"])
    for note in answer["notes"]:
        out.line(note)
    if answer["custom"] is not None:
        out.line(_yours(answer["custom"], advice["current_cost_s"]))
    out.line("")
    out.console.print(Text("Recommendation ", style="bold").append(visible(advice["message"]), style="not bold"))
    if advice["properties"]:
        pairs = ", ".join(f"'{name}' = '{value}'" for name, value in advice["properties"].items())
        out.console.print(Text(f"  ALTER TABLE ... SET TBLPROPERTIES ({pairs});", style="cyan"))


def _show_storage(out: Output, storage: list[dict[str, Any]]) -> None:
    held = [f"{size(one['mean_bytes'])} (at the end {size(one['end_bytes'])})" for one in storage]
    if len(set(held)) == 1:
        return out.line(f"Mean bytes in the store under every retention of removed files: {held[0]}.")
    spans = [time_span(one["retention_s"]) if one["retention_s"] else "none" for one in storage]
    by_span = "; ".join(f"{span}: {bytes_}" for span, bytes_ in zip(spans, held, strict=True))
    return out.line(f"Mean bytes in the store by retention of removed files, if a vacuum runs when it may: {by_span}.")


def _yours(yours: dict[str, Any], current_s: float) -> str:
    overrides = ", ".join(f"{name}={value}" for name, value in yours["properties"].items())
    return (
        f"With your settings ({overrides}) it would have taken {time_span(yours['cost_s'])} of core time, "
        f"as it is set now {time_span(current_s)}."
    )


def _rules(out: Output, answer: dict[str, Any]) -> Table:
    """Return the rules, cheapest first; bars are as long as the most expensive rule that rewrites at all."""
    rules = sorted(answer["rules"], key=lambda rule: rule["cost_s"])
    policy = answer["policy"]
    title = (
        f"The same history under each rule: target {size(policy['target_bytes'])}, "
        f"fan-in {policy['fan_in']}, tolerance {policy['tolerance']:g}"
    )
    money = answer["prices"]
    costs = [f"{kind} {money['currency']}" for kind in ("writing", "reading")] if money else []
    heads = ("files", "at end", "jobs", "rewritten", "per byte", "small for", "core time", *costs)
    made = _table(title, heads, "rule")
    most = max((rule["cost_s"] for rule in rules if rule["name"] != "no_compaction"), default=0.0)
    for rule in rules:
        made.add_row(
            rule["title"],
            mean(rule["files_mean"]),
            f"{rule['files_at_end']:,}",
            f"{rule['jobs']:,}",
            size(rule["bytes_rewritten"]),
            f"{rule['write_amplification']:.2f}",
            time_span(rule["mean_time_small_s"]),
            time_span(rule["cost_s"]),
            *([f"{Decimal(rule['write_cost']):.4f}", f"{Decimal(rule['read_cost']):.4f}"] if money else []),
            _bar(out, rule, most),
            style={"lakewright": "bold", "custom": "bold", "no_compaction": "dim"}.get(rule["name"], ""),
        )
    return made


def _targets(out: Output, answer: dict[str, Any]) -> Table:
    advice = answer["recommendation"]
    made = _table("Lakewright by target size", ("files", "rewritten", "core time"), "target")
    most = max((option["cost_s"] for option in advice["curve"]), default=0.0)
    for option in advice["curve"]:
        is_best = advice["policy"]["enabled"] and option["target_bytes"] == advice["policy"]["target_bytes"]
        made.add_row(
            size(option["target_bytes"]) + (" <" if is_best else ""),
            mean(option["files_mean"]),
            size(option["bytes_rewritten"]),
            time_span(option["cost_s"]),
            _bar(out, option, most),
            style="bold" if is_best else "",
        )
    return made


def _sort_key(reads: dict[str, Any]) -> Table:
    """Return the share of the bytes that ranges of a column read, by the share of the rows that they hold."""
    made = _table(f"Ranges of {reads['column']}", ("bytes read now", "read sorted"), "rows")
    for one in reads["ranges"]:
        made.add_row(f"{one['share']:.1%}", f"{one['share_read_now']:.1%}", f"{one['share_read_sorted']:.1%}")
    return made


def _show_order(out: Output, advice: dict[str, Any]) -> None:
    """Show what the recorded filters read in each order, and which one they argue for."""
    made = _table("Bytes read", ("share",), "sorted by")
    made.add_row("(as it is)", f"{advice['share_read_now']:.1%}")
    for one in advice["candidates"]:
        is_best = one["column"] == advice["column"]
        made.add_row(one["column"], f"{one['share_read']:.1%}", style="bold" if is_best else "")
    out.line("")
    out.console.print(made)
    rows = counted(advice["rows"], "row")
    out.line(f"By {counted(advice['filters'], 'different filter')} and {rows} that the bounds in the log imply.")
    if advice["left_out"]:
        named = ", ".join(advice["left_out"])
        out.line(f"Not compared, as files have no bounds of them or are partitioned by them: {named}.")
    if advice["column"] is None:
        out.line("No order would save a tenth of the bytes that these filters read.")
    else:
        setting = ", ".join(f"{name}={value}" for name, value in advice["properties"].items())
        out.line(f"To sort by {advice['column']}, set {setting}.")


def _table(title: str, numbers: tuple[str, ...], first: str) -> Table:
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    made.add_column(first, no_wrap=True)
    for name in numbers:
        made.add_column(name, justify="right")
    made.add_column("", no_wrap=True)
    return made


def _bar(out: Output, costs: dict[str, Any], most_s: float) -> Text:
    """Return a bar of the core time: rewriting in full, reading in half tone; cut where it exceeds the longest."""
    if most_s <= 0:
        return Text("")
    full, half, more = ("█", "░", "▸") if out.console.encoding.startswith("utf") else ("#", "-", ">")
    written = round(BAR_CELLS * costs["write_cost_s"] / most_s)
    cells = round(BAR_CELLS * costs["cost_s"] / most_s)
    bar = (full * written + half * (cells - written))[:BAR_CELLS]
    return Text(bar + (more if cells > BAR_CELLS else ""))
