"""`lakewright`: one command for people and scripts; exit code 1 is a failure, 2 a wrong use."""

import sys
from functools import partial
from typing import Annotated

import typer

from services.cli.cli_context import CliContext
from services.cli.lazy_group import lazy_group
from services.process_exit import ProcessExit
from services.settings import DEFAULT_URL, URL
from services.visible_text import visible_lines
from shared.errors import LakewrightError

_COMMANDS = "services.cli.commands"

COMMANDS = {
    "status": f"{_COMMANDS}.status:status",
    "doctor": f"{_COMMANDS}.doctor:doctor",
    "tables": f"{_COMMANDS}.tables:app",
    "jobs": f"{_COMMANDS}.jobs:app",
    "queue": f"{_COMMANDS}.queue:app",
    "actors": f"{_COMMANDS}.actors:app",
    "events": f"{_COMMANDS}.events:app",
    "optimize": f"{_COMMANDS}.optimize:optimize",
    "sort": f"{_COMMANDS}.optimize:sort",
    "what-if": f"{_COMMANDS}.what_if:what_if",
    "advice": f"{_COMMANDS}.advice:app",
    "optimizations": f"{_COMMANDS}.history:optimizations",
    "watch": f"{_COMMANDS}.watch:watch",
    "mcp": f"{_COMMANDS}.mcp:mcp",
    "try": f"{_COMMANDS}.s3_to_try:app",
}
"""Commands by name, imported when they are called."""

ACTIONS = f"{_COMMANDS}.table_actions:COMMANDS"
"""Further commands by name: one for each request about a table."""

SERVICES = "Run services"
"""Heading of the last commands in `--help`."""

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Everything behind the name of a service is the service's own, `--help` included."""

app = typer.Typer(
    cls=lazy_group(COMMANDS, also=ACTIONS, panel="Optimize and maintain tables", within=("optimize", "sort")),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the form of a callback
    if wanted:
        from services.versions import installed  # noqa: PLC0415 - reading what is installed takes a while

        print(f"lakewright {installed('lakewright') or 'unreleased'}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    url: Annotated[str, typer.Option(envvar=URL, help="Address of the decider.")] = DEFAULT_URL,
    as_json: Annotated[bool, typer.Option("--json", help="Print the API's JSON.")] = False,  # noqa: FBT002 - a flag
    version: Annotated[  # noqa: ARG001, FBT002 - a flag; its callback has answered
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep lakehouse tables well laid out while they are being written."""
    if not isinstance(context.obj, CliContext):
        context.obj = (context.obj or CliContext)(url, as_json)


@app.command(context_settings=PASSED_ON, rich_help_panel=SERVICES)
def standalone(context: typer.Context) -> None:
    """Run Redis, a decider and an actor on this machine."""
    _become("standalone", context.args)


@app.command(context_settings=PASSED_ON, rich_help_panel=SERVICES)
def decider(context: typer.Context) -> None:
    """Run a decider; its settings are environment variables."""
    _become("decider", context.args)


@app.command(context_settings=PASSED_ON, rich_help_panel=SERVICES)
def actor(context: typer.Context) -> None:
    """Run an actor; its settings are environment variables."""
    _become("actor", context.args)


def _become(name: str, arguments: list[str]) -> None:
    from services.cli.commands.service import Service, become  # noqa: PLC0415 - for services alone

    become(Service(name), arguments)


def _configure_logs(level: str) -> None:
    from services.logs import configure_logs  # noqa: PLC0415 - a tenth of a second, which most commands never log in

    configure_logs(level)


def main() -> int:
    """Run the command; a failure is one line on standard error, like all logs: standard output is for the answer."""
    ended = ProcessExit()
    try:
        app(prog_name="lakewright", obj=partial(CliContext, configure_logs=_configure_logs))
    except LakewrightError as problem:
        print(f"lakewright: {visible_lines(str(problem))}", file=sys.stderr)
    except SystemExit as asked:
        ended.code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
        raise
    else:
        ended.code = 0
    return ended.code


if __name__ == "__main__":
    sys.exit(main())
