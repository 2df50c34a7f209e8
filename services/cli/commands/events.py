"""`lakewright events …`: post a commit event, as a store or a writer does, and list messages that were set aside."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from services.cli.cli_context import print_answer, setting_of
from services.cli.client import CallFailed, segment
from services.cli.render import Output, at

app = typer.Typer(no_args_is_help=True, help="Post commit events, and list messages that could not be used.")


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


@app.command("rejected")
def list_rejected(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of messages to list.")] = 20,
) -> None:
    """List the newest messages of event queues that could not be used, with the reason."""
    print_answer(context, lambda api: api.get("/v1/rejected-events", {"limit": limit}), _show_rejected)


def _show_rejected(out: Output, answer: Any) -> None:
    rows = [(at(one["at"]), one["source"], one["reason"], one["body"]) for one in answer["rejected"]]
    out.rows("Messages that could not be used", ("at (UTC)", "queue", "reason", "begins with"), rows)


MAX_BODY_BYTES = 64 * 1_048_576
"""Read of a file or pipe at most: far more than a decider takes, and not what an endless one has."""


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(MAX_BODY_BYTES)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(MAX_BODY_BYTES)
    except OSError as problem:
        raise CallFailed(f"the file {file} cannot be read: {problem.strerror}") from problem
