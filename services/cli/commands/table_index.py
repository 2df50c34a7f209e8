"""`lakewright tables index`: the index of a table on several columns, and which files the next rewrite takes.

A location is read directly, from the table's own log: its index needs no decider and no registration.
"""

from typing import Annotated, Any

import typer

from services.cli.cli_context import setting_of
from services.cli.client import CallFailed, segment
from services.cli.decider_parts import decider_parts, local_formats
from services.cli.locations import is_location, location_of
from services.cli.render import Output, counted, size
from shared.index.status import IndexQuery


def index(  # noqa: PLR0913, PLR0917 - the options of a command
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Name of a registered table; or path or URI of any table.")],
    revision_id: Annotated[
        int | None, typer.Option(min=0, help="Revision to optimize; default: as in the table's properties.")
    ] = None,
    bytes_per_iter: Annotated[
        int | None, typer.Option(min=0, help="Bytes of one iteration, 0 for its first group.")
    ] = None,
    sample: Annotated[
        float | None, typer.Option(min=0, max=1, help="Also show what a query reads that samples this fraction.")
    ] = None,
    what_if: Annotated[  # noqa: FBT002
        bool, typer.Option("--what-if", help="Also estimate the iterations to come under several selections.")
    ] = False,
    verify: Annotated[  # noqa: FBT002
        bool, typer.Option("--verify", help="By location only: read all rows, and compare them with their blocks.")
    ] = False,
) -> None:
    """Show a Qbeast index: its revisions, their fragmentation, and the files of the next rewrite. Changes nothing.

    Exit code 1 with --verify: a block has other rows than its tags name.
    """
    out = setting_of(context).output()
    if verify:
        return _verify(context, table, revision_id)
    if is_location(table):
        setting_of(context).prepare_logs()
        answer = _read(table, IndexQuery(revision_id, bytes_per_iter, sample, is_forecast=what_if))
    else:
        with setting_of(context).api() as api:
            asked = {"revision": revision_id, "bytes_per_iter": bytes_per_iter, "sample": sample}
            asked |= {"what_if": True} if what_if else {}
            answer = api.get(f"/v1/tables/{segment(table)}/index", asked)
    return out.raw(answer) if out.as_json else _show(out, answer)


def _verify(context: typer.Context, table: str, revision: int | None) -> None:
    if not is_location(table):
        raise typer.BadParameter("--verify reads rows, and needs a location, not a name")
    setting_of(context).prepare_logs()
    with decider_parts(extra="standalone"):
        from services.cli.local.verify_index import verify_index  # noqa: PLC0415 - optional
    if code := verify_index(table, revision, setting_of(context)):
        raise typer.Exit(code)


def _read(table: str, query: IndexQuery) -> Any:
    import asyncio  # noqa: PLC0415 - for reading a log alone

    with decider_parts():
        from decider.api.routes.table_index import TableIndexResponse  # noqa: PLC0415 - optional
        from shared.formats.registry import support_of  # noqa: PLC0415
    snapshot = asyncio.run(local_formats().open(location_of(table)).snapshot())
    read = support_of(snapshot.metadata.format).index_status
    found = read(snapshot, query)
    if found is None:
        raise CallFailed(f"{table} has no index")
    return TableIndexResponse.of(found).model_dump(mode="json")


def _show(out: Output, answer: Any) -> None:
    rows = [
        (
            one["id"],
            ", ".join(one["columns"]),
            f"{one['rows']:,}",
            size(one["bytes"]),
            one["files"],
            one["cubes"],
            one["blocks"],
            f"{one['fragmentation']:.2f}",
            f"{one['height']} ({one['min_height']})",
            f"{one['offset_rows']:,}",
            size(one["eligible_bytes"]),
        )
        for one in answer["revisions"]
    ]
    heads = ("revision", "columns", "rows", "bytes", "files", "cubes", "blocks", "fragmentation", "height", "offsets")
    out.rows(f"Index at version {answer['version']}", (*heads, "eligible"), rows)
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in answer["files_by_class"].items())
    out.line(f"Files: {counts}. Not indexed: {size(answer['unindexed_bytes'])}.")
    if hidden := sum(one["hidden_blocks"] for one in answer["revisions"]):
        out.line(f"Samples may miss rows of {counted(hidden, 'block')}: `lakewright index --revision-rewrite true`.")
    for problem in (answer["first_problem"], *answer["ignored_properties"]):
        if problem:
            out.line(problem)
    if answer["refusal"]:
        out.line(f"Not to be optimized: {answer['refusal']}")
    elif answer["next"] is None:
        out.line("Nothing is eligible for a rewrite.")
    else:
        following = answer["next"]
        files = counted(len(following["files"]), "file")
        out.line(f"Next: {files} ({size(following['bytes'])}), chosen as {following['strategy']}; --json lists them.")
    if answer["forecasts"]:
        out.rows("Iterations to come, estimated", _FORECAST, [_forecast(one) for one in answer["forecasts"]])
    if answer["sample"] is not None:
        reads = answer["sample"]
        lower = f"a rewrite of {counted(reads['rewrite_files'], 'file')} ({size(reads['rewrite_bytes'])}) lowers that"
        out.line(
            f"A sample of {reads['fraction']:.0%} opens {counted(reads['files'], 'file')} ({size(reads['bytes'])}); "
            f"{lower if reads['rewrite_files'] else 'no rewrite lowers that'}."
        )


_FORECAST = ("selection", "bytes per iteration", "iterations", "bytes", "fragmentation after each")

_SHOWN_STEPS = 8
"""Iterations whose fragmentation is printed; --json has all."""


def _forecast(one: Any) -> tuple[str, ...]:
    budget = one["budget_bytes"]
    per_iteration = "all files" if budget is None else "first group" if budget == 0 else size(budget)
    after = [f"{step['fragmentation']:.2f}" for step in one["steps"]]
    shown = after if len(after) <= _SHOWN_STEPS else [*after[: _SHOWN_STEPS - 1], "...", after[-1]]
    count = f"{len(after)}{'' if one['complete'] else ' or more'}"
    return one["selection"], per_iteration, count, size(one["bytes"]), " ".join(shown)
