"""`lakewright what-if`: a table's own history under other rules, and the policy that would have cost least.

A location is read directly, so that it works on any Delta table, before anything is installed or registered; a name is
asked of the decider.
"""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from services.cli.client import CallFailed, segment
from services.cli.context import Setting, setting_of
from services.cli.curves import draw
from services.cli.output import Output, duration, size
from services.settings import store_options
from shared.policy import Policy

DEFAULT_QUERIES = 10.0


def what_if(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Path or URI of any Delta table, or the name of a registered one.")],
    queries_per_hour: Annotated[
        float, typer.Option(min=0, help="Queries an hour that read the table: what its files are worth.")
    ] = DEFAULT_QUERIES,
    max_commits: Annotated[int, typer.Option(min=1, max=20_000, help="Newest commits to replay.")] = 20_000,
    svg: Annotated[Path | None, typer.Option(help="Draw the curves into this file.")] = None,
) -> None:
    """Replay a table's own history: left alone, under Lakewright, under others' rules. Changes nothing."""
    setting = setting_of(context)
    out = setting.output()
    if "/" in table or table in (".", ".."):
        answer = _examine(table, queries_per_hour, max_commits)
    else:
        body = {"queries_per_hour": queries_per_hour, "max_commits": min(max_commits, 2_000)}
        answer = _ask(setting, table, body)
    if svg is not None:
        _write(svg, draw(answer))
    if out.as_json:
        return out.raw(answer)
    _show(out, answer)
    if svg is not None:
        out.line(f"The curves are in {svg}.")
    return None


def _ask(setting: Setting, table: str, body: dict[str, Any]) -> dict[str, Any]:
    with setting.api() as api:
        answer: dict[str, Any] = api.post(f"/v1/tables/{segment(table)}/what-if", body)
    return answer


def _examine(table: str, queries_per_hour: float, max_commits: int) -> dict[str, Any]:
    try:
        from decider import what_if as parts  # noqa: PLC0415 - the parts of the decider are optional
        from decider.decide.whatif import STEPS_OF_COMPARISON, STEPS_OF_RECOMMENDATION, Prices  # noqa: PLC0415
        from decider.observe.delta_log import open_log  # noqa: PLC0415
        from decider.observe.object_reads import ReadMeter  # noqa: PLC0415
        from decider.observe.stores import Stores  # noqa: PLC0415
    except ImportError as missing:
        raise CallFailed(
            f"reading a table's log needs the decider's parts ({missing.name} is missing): "
            "pip install 'lakewright[decider]'"
        ) from missing
    location = table if "://" in table else str(Path(table).resolve())
    columns = (TextColumn("{task.description:44}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        reading = progress.add_task("reading the log", total=None)
        log = open_log(location, meter=ReadMeter(), stores=Stores(store_options()))
        history = asyncio.run(
            parts.read_history(
                log,
                max_commits=max_commits,
                read=lambda done, all_: progress.update(reading, completed=done, total=all_),
            )
        )
        progress.remove_task(reading)
        replaying = progress.add_task("replaying", total=STEPS_OF_COMPARISON + STEPS_OF_RECOMMENDATION)

        def tick(step: str) -> None:
            progress.update(replaying, advance=1, description=f"replaying: {step}")

        prices = Prices(queries_per_hour=queries_per_hour)
        return parts.describe(parts.examine(history, Policy(), prices, tick))


def _show(out: Output, answer: dict[str, Any]) -> None:
    first, last = answer["versions"]
    so_far, advice = answer["so_far"], answer["recommendation"]
    out.line(
        f"{answer['location']}: versions {first} to {last}. In {duration(answer['span_s'])} writers added "
        f"{answer['files_added']:,} files, {size(answer['bytes_added'])}, in {answer['commits']:,} commits."
    )
    out.line(
        f"So far {so_far['rewrites']:,} compactions rewrote {size(so_far['bytes_rewritten'])}; "
        f"the table has {so_far['files_now']:,} files now."
    )
    out.line("")
    rules = sorted(answer["rules"], key=lambda rule: rule["cost_s"])
    least = rules[0]["cost_s"]
    rows = [
        (
            rule["title"],
            f"{rule['files_mean']:,.0f}",
            f"{rule['files_at_end']:,}",
            f"{rule['jobs']:,}",
            size(rule["bytes_rewritten"]),
            f"{rule['write_amplification']:.2f}",
            duration(rule["stale_s"]),
            duration(rule["cost_s"]),
            _times(rule["cost_s"], least),
        )
        for rule in rules
    ]
    columns = (
        "rule",
        "files, mean",
        "at the end",
        "jobs",
        "rewritten",
        "per byte",
        "file is small for",
        "core time",
        "",
    )
    prices = answer["prices"]
    out.rows(f"The same history under each rule, target {size(answer['policy']['target_bytes'])}", columns, rows)
    out.line(
        f"Core time: rewriting at {prices['write_s_per_gib']:g} s/GiB, and {prices['queries_per_hour']:g} queries an "
        f"hour that spend {prices['open_s']:g} s on each file, for {prices['tail_hours']:g} more hours after the end."
    )
    out.line("")
    chosen = advice["policy"]["target_bytes"]
    curve = [
        (
            size(option["target_bytes"]) + (" <" if option["target_bytes"] == chosen else ""),
            f"{option['files_mean']:,.0f}",
            size(option["bytes_rewritten"]),
            duration(option["cost_s"]),
            _bar(option["cost_s"], max(one["cost_s"] for one in advice["curve"])),
        )
        for option in advice["curve"]
    ]
    out.rows("Lakewright by target size", ("target", "files, mean", "rewritten", "core time", ""), curve)
    out.line("")
    out.line(advice["sentence"])


def _times(cost_s: float, least_s: float) -> str:
    return "" if least_s <= 0 or cost_s == least_s else f"{cost_s / least_s:.1f} x"


def _bar(value: float, most: float) -> str:
    return "#" * max(1, round(30 * value / most)) if most > 0 else ""


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as problem:
        raise CallFailed(f"the file {file} cannot be written: {problem.strerror}") from problem
