"""`lakewright events post`: post a commit event to the decider, as a store or a writer does."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from services.cli.cli_context import setting_of
from services.cli.client import CallFailed, segment

app = typer.Typer(no_args_is_help=True, help="Post commit events.")


@app.callback()
def group() -> None:
    """Post commit events."""


@app.command("post")
def post_event(
    context: typer.Context,
    file: Annotated[
        str | None, typer.Argument(help="File with an event in any supported format; '-' is standard input.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Name or location of a table, instead of a file.")] = None,
    version: Annotated[int | None, typer.Option(min=0, help="Committed version.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Format that the file must have, such as s3, sns or azure.")
    ] = None,
) -> None:
    """Post an event from a file, or for a table that may have changed."""
    if (file is None) == (table is None):
        raise typer.BadParameter("give either a file ('-' for standard input) or --table")
    if version is not None and table is None:
        raise typer.BadParameter("--version belongs to --table")
    path = "/v1/events" if source is None else f"/v1/events/{segment(source)}"
    setting = setting_of(context)
    with setting.api() as api:
        if table is not None:
            answer = api.post(path, {"table": table} | ({} if version is None else {"version": version}))
        else:
            answer = api.post_raw(path, _read(str(file)))
    out = setting.output()
    if out.as_json:
        return out.raw(answer)
    if "validationResponse" in answer:
        return out.line("Subscription handshake answered; it held no commit event.")
    ignored = ", ".join(f"{one['count']} {one['reason']}" for one in answer["ignored"])
    return out.line(f"{answer['accepted']} accepted" + (f"; ignored: {ignored}" if ignored else ""))


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        raise CallFailed(f"the file {file} cannot be read: {problem.strerror}") from problem
