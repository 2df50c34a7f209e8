"""`lakewright`: one command for people and scripts; exit code 1 is a failure, 2 a wrong use."""

import os
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from services.cli.cli_context import CliContext, setting_of
from services.cli.commands import actors, events, jobs, queue, tables
from services.cli.commands.history import optimizations, scheduled
from services.cli.commands.optimize import optimize
from services.cli.commands.service import Service, become
from services.cli.commands.watch import watch
from services.cli.commands.what_if import what_if
from services.cli.render import duration, size
from services.logs import configure_logs
from services.process_exit import ProcessExit
from services.settings import DEFAULT_URL, URL
from shared.errors import LakewrightError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(tables.app, name="tables")
app.add_typer(jobs.app, name="jobs")
app.add_typer(queue.app, name="queue")
app.add_typer(events.app, name="events")
app.add_typer(actors.app, name="actors")
app.command("what-if")(what_if)
app.command("optimize")(optimize)
app.command("watch")(watch)
app.command("optimizations")(optimizations)
app.command("scheduled")(scheduled)
tables.app.command("optimizations")(optimizations)
tables.app.command("scheduled")(scheduled)

LOG_LEVEL = "warning"
"""What a command says beside its answer: what is wrong, and not what it does. Services set up logs of their own."""

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Everything behind the name of a service is the service's own, `--help` included."""


@app.callback()
def options(
    context: typer.Context,
    url: Annotated[str, typer.Option(envvar=URL, help="Where the decider is.")] = DEFAULT_URL,
    as_json: Annotated[bool, typer.Option("--json", help="Print the API's JSON.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Keep lakehouse tables well laid out while they are being written."""
    context.obj = context.obj or CliContext(url, as_json)


@app.command(context_settings=PASSED_ON)
def standalone(context: typer.Context) -> None:
    """Run Redis, a decider and an actor on this machine."""
    become(Service.STANDALONE, context.args)


@app.command(context_settings=PASSED_ON)
def decider(context: typer.Context) -> None:
    """Run a decider; its settings are environment variables."""
    become(Service.DECIDER, context.args)


@app.command(context_settings=PASSED_ON)
def actor(context: typer.Context) -> None:
    """Run an actor; its settings are environment variables."""
    become(Service.ACTOR, context.args)


@app.command()
def status(context: typer.Context) -> None:
    """Show the service at a glance."""
    out = setting_of(context).output()
    with setting_of(context).api() as api:
        answer = api.get("/v1/status")
    if out.as_json:
        return out.raw(answer)
    out.pairs("Lakewright", _status(answer))
    return out.rows("Funnel", ("step", "count"), list(answer["funnel"].items()))


@app.command()
def doctor(
    context: typer.Context,
    table: Annotated[
        str | None, typer.Argument(help="Examine this table instead: a path, a URI, or a registered name.")
    ] = None,
) -> None:
    """Check what Lakewright needs on this machine, or whether a table was harmed. Exit code 1: something is wrong."""
    if table is not None:
        from services.cli.commands.doctor_table import doctor_table  # noqa: PLC0415 - it reads logs, which takes optional parts

        if code := doctor_table(table, setting_of(context)):
            raise typer.Exit(code)
        return
    from services.cli.commands import doctor as checks  # noqa: PLC0415 - it looks at the services' parts, which may be absent

    environment = {**os.environ, URL: setting_of(context).url}
    findings = checks.run_checks(checks.doctor_settings(environment))
    if setting_of(context).as_json:
        typer.echo(checks.to_json(findings))
    else:
        checks.show(findings, setting_of(context).output().console)
    if checks.failed(findings):
        raise typer.Exit(1)


def main() -> int:
    """Run the command; a failure is one line on standard error, like all logs: standard output is for the answer."""
    ended = ProcessExit()
    configure_logs(LOG_LEVEL)
    try:
        app(prog_name="lakewright")
    except LakewrightError as problem:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"lakewright: {problem}", markup=False)
    except SystemExit as asked:
        ended.code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
        raise
    else:
        ended.code = 0
    return ended.code


def _status(answer: dict[str, Any]) -> dict[str, object]:
    redis, backlog, queue, saved = answer["redis"], answer["backlog"], answer["queue"], answer["savings"]
    return {
        "version": answer["version"],
        "up for": duration(answer["uptime_s"]),
        "redis": f"{redis['name']} {redis['version']}" if redis["reachable"] else "does not answer",
        "redis issues": "; ".join(redis["issues"]) or "none",
        "tables": answer["tables"],
        "tables refused": answer["tables_refused"],
        "tables waiting": f"{backlog['tables_waiting']}, the oldest for {duration(backlog['oldest_wait_s'])}",
        "jobs": queue["depth"],
        "actors": answer["actors"] or "none",
        "oldest wait": duration(queue["oldest_wait_s"]),
        "files removed": saved["files_removed"],
        "bytes rewritten": size(saved["bytes_rewritten"]),
        "rewritten per byte added": saved["write_amplification"],
        "cells pruned": saved["partitions_pruned_ratio"],
    }


if __name__ == "__main__":
    sys.exit(main())
