"""`lakewright watch`: decisions, jobs and the queue as they happen; a lost connection is resumed where it broke."""

import sys
import time
from typing import Annotated, Any

import typer

from services.cli.cli_context import setting_of
from services.cli.client import NoResponse, ServerSentEvent
from services.cli.render import Output, at, counted, shown
from services.visible_text import visible_lines

AGAIN_S = 2.0
"""Pause before a lost connection is tried again."""


def watch(
    context: typer.Context,
    table: Annotated[
        list[str] | None,
        typer.Option(help="Show decisions only about this table (name or id), and all jobs; may be repeated."),
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(
            help="Kind of events: decisions, jobs, queue or tables; may be repeated. Default: all but tables."
        ),
    ] = None,
    since: Annotated[str | None, typer.Option(help="Resume after the event with this id.")] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Exit after this many events. Default: run until Ctrl-C.")
    ] = None,
) -> None:
    """Stream decisions, jobs and the queue as they happen; with --json one event per line."""
    setting = setting_of(context)
    out = setting.output()
    left, last_id, was_connected = count, since, False
    while left is None or left > 0:
        try:
            with setting.api() as api:
                for event in api.events("/v1/stream", {"table": table, "about": about}, last_id):
                    was_connected, last_id = True, event.id or last_id
                    _show(out, event)
                    left = None if left is None else left - 1
                    if left == 0:
                        return
        except NoResponse as problem:
            if not was_connected:
                raise
            print(f"lakewright: {visible_lines(str(problem))}; trying again", file=sys.stderr)
        except KeyboardInterrupt:
            return
        time.sleep(AGAIN_S)


def _show(out: Output, event: ServerSentEvent) -> None:
    if out.as_json:
        return out.one_line({"event": event.event, "id": event.id, "data": event.data})
    return out.line(_line(event.event, event.data))


def _line(event: str, data: Any) -> str:
    match event:
        case "connected":
            more = "" if data["all_tables"] else "; there are more: select some with --table"
            return f"Watching {counted(data['tables'], 'table')}{more}."
        case "decision":
            return f"{at(data['at'])}  {data['table']}  {data['message']}"
        case "job":
            detail = "  ".join(part for part in (data["actor"], data["detail"]) if part)
            return f"{at(data['at'])}  job {data['job']} {data['event']}  {detail}".rstrip()
        case "queue":
            return f"queue: {shown(data['depth'])}"
        case _:
            return f"{event}: {shown(data)}"
