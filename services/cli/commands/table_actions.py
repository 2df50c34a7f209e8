"""`lakewright vacuum TABLE` and all other actions on whole tables: one command for each request that the API takes.

The options of a command are the fields of its request (`decider.requests`), so that a new request has a command, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

import typer

from decider.requests.registry import REQUESTS
from decider.requests.table_request import TableRequest
from services.cli.cli_context import CliContext, setting_of
from services.cli.client import segment
from services.cli.commands.optimize import OUTCOMES
from services.cli.locations import location_of
from services.cli.render import figure
from shared.paths.locations import table_id

SHOWN_ROWS = 50
"""Rows of a dry run that are printed, such as files; --json has all."""

Table = Annotated[str, typer.Argument(help="Name of a registered table.")]


def index(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Name of a registered table; or none, with --table-location.")] = "",
    table_location: Annotated[
        str, typer.Option("--table-location", help="Path or URI of the registered table, instead of its name.")
    ] = "",
    revision_id: Annotated[
        int | None, typer.Option("--revision-id", min=1, help="Revision to optimize; default: the table's.")
    ] = None,
    bytes_per_iter: Annotated[
        int | None, typer.Option("--bytes-per-iter", min=0, help="Bytes of one iteration, 0 for its first group.")
    ] = None,
    revision_rewrite: Annotated[
        str, typer.Option("--revision-rewrite", help="true: rewrite all its files at once; default: the table's.")
    ] = "",
) -> None:
    """Optimize the index of a table; `tables index` shows what that would rewrite."""
    if bool(table) == bool(table_location):
        raise typer.BadParameter("name the table, or its location with --table-location")
    whole = {"": None, "true": True, "false": False}.get(revision_rewrite.strip().lower(), revision_rewrite)
    if isinstance(whole, str):
        raise typer.BadParameter(f"--revision-rewrite is true or false, not {whole}")
    body = {"revision": revision_id, "bytes_per_iter": bytes_per_iter, "revision_rewrite": whole}
    _request(setting_of(context), table or table_id(location_of(table_location)), "index", body)


def _command_of(kind: type[TableRequest]) -> Callable[..., None]:
    """Return the command of a request as Typer reads it: a function with a parameter for each option."""

    def run(context: typer.Context, table: str, **options: Any) -> None:
        _request(setting_of(context), table, kind.name, options)

    types = get_type_hints(kind)
    given = [
        Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context),
        Parameter("table", Parameter.KEYWORD_ONLY, annotation=Table),
        *(
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=_option(types[one.name], one))
            for one in fields(kind)
        ),
    ]
    run.__signature__ = Signature(given)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in given}
    run.__doc__ = kind.text
    return run


def _option(type_: Any, one: Field[Any]) -> Any:
    known = one.metadata
    flag = f"--{one.name.replace('_', '-')}"
    return Annotated[type_, typer.Option(flag, help=known["description"], min=known.get("ge"), max=known.get("le"))]


COMMANDS: Mapping[str, Callable[..., None]] = {name: _command_of(kind) for name, kind in REQUESTS.items()} | {
    "index": index
}
"""Commands by name; `index` has the options of Qbeast's own command."""


def _request(setting: CliContext, table: str, name: str, body: Mapping[str, Any]) -> None:
    """Request an action, and print its jobs or the result of its dry run."""
    with setting.api() as api:
        answer = api.post(f"/v1/tables/{segment(table)}/actions/{name}", body)
    out = setting.output()
    if out.as_json:
        return out.raw(answer)
    due = (
        f" An automatic run is {'due' if answer['due'] else 'not due'}: {answer['reason']}." if "due" in answer else ""
    )
    out.line(f"{answer['message']}{due}")
    for title, rows in answer.items():
        if isinstance(rows, list) and rows:
            lines = [[_shown(column, value) for column, value in row.items()] for row in rows[:SHOWN_ROWS]]
            out.rows(title.capitalize(), tuple(rows[0]), lines)
            if len(rows) > SHOWN_ROWS:
                out.line(f"{len(rows) - SHOWN_ROWS:,} more; --json lists them.")
    return None


def _shown(column: str, value: object) -> str:
    return OUTCOMES.get(str(value), str(value)) if column == "outcome" else figure(column, value)
