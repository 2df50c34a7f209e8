"""`lakewright tables cells`: a picture of the cells of a table, read from its own log without a decider."""

from pathlib import Path
from typing import Annotated

import typer

from services.cli.cli_context import setting_of
from services.cli.client import CallFailed
from services.cli.decider_parts import local_formats
from services.cli.locations import location_of
from shared.layout.cells.picture import draw_cells


def cells(
    context: typer.Context,
    location: Annotated[str, typer.Argument(help="Path or URI of the table.")],
    svg: Annotated[Path, typer.Option(help="File to write the picture to.")],
) -> None:
    """Show in a picture the cells of a table, boxes of its clustering columns in files of their own."""
    import asyncio  # noqa: PLC0415 - for reading a log alone

    setting_of(context).prepare_logs()
    snapshot = asyncio.run(local_formats().open(location_of(location)).snapshot())
    picture = draw_cells(snapshot.files)
    if picture is None:
        raise CallFailed(f"no file of {location} lies in a cell")
    svg.write_text(picture)
    out = setting_of(context).output()
    if out.as_json:
        out.raw({"version": snapshot.version, "svg": str(svg)})
    else:
        out.line(f"The cells at version {snapshot.version} are in {svg}.")
