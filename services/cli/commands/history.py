"""`lakewright optimizations`: past rewrites.

A location is read directly, from the table's own log: its history needs no decider and no registration.
"""

from typing import Annotated, Any

import typer

from services.cli.cli_context import setting_of
from services.cli.client import segment
from services.cli.decider_parts import decider_parts, local_formats
from services.cli.locations import is_location, location_of
from services.cli.render import Output, at, duration, size


def optimizations(
    context: typer.Context,
    table: Annotated[
        str, typer.Argument(help="Name of a registered table; or path, URI or CATALOG.NAMESPACE.TABLE of any table.")
    ],
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of rows.")] = 20,
    before: Annotated[int | None, typer.Option(min=0, help="Only rewrites in versions below this one.")] = None,
    files: Annotated[bool, typer.Option("--files", help="List every file; needs --json.")] = False,  # noqa: FBT002
) -> None:
    """List the rewrites of a table from its own log, newest first."""
    out = setting_of(context).output()
    if files and not out.as_json:
        raise typer.BadParameter("--files needs --json: a rewrite may name thousands")
    if is_location(table):
        setting_of(context).prepare_logs()
        answer = _read(table, limit, before, files=files)
    else:
        asked = {"limit": limit, "before": before, "files": files or None}
        with setting_of(context).api() as api:
            answer = api.get(f"/v1/tables/{segment(table)}/optimizations", asked)
    return out.raw(answer) if out.as_json else _show(out, answer)


def _read(table: str, limit: int, before: int | None, *, files: bool) -> Any:
    import asyncio  # noqa: PLC0415 - for reading a log alone

    with decider_parts():
        from decider.api.routes.optimizations import RewriteList, event_view  # noqa: PLC0415 - optional
        from shared.paths.locations import table_id  # noqa: PLC0415
    location = location_of(table)
    page = asyncio.run(local_formats().rewrites(location).page(limit=limit, before=before))
    events = tuple(event_view(event, table_id(location), (), files=files) for event in page.events)
    return RewriteList(optimizations=events, before=page.before).model_dump(mode="json")


def _show(out: Output, answer: Any) -> None:
    rows = [
        (
            one["version"],
            at(one["finished_at"]),
            one["optimization_name"],
            "several" if one["partition_label"] is None else one["partition_label"],
            f"{one['input']['num_files']:,} to {one['output']['num_files']:,}",
            f"{size(one['input']['bytes'])} to {size(one['output']['bytes'])}",
            one["output"]["element_count"],
            None if one["process_time_ms"] is None else duration(one["process_time_ms"] / 1000),
        )
        for one in answer["optimizations"]
    ]
    out.rows("Rewrites", ("version", "at (UTC)", "kind", "partition", "files", "bytes", "rows", "took"), rows)
    if answer["before"] is not None:
        out.line(f"Older rewrites: --before {answer['before']}")
