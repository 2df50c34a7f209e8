"""`lakewright sort`: sort a registered table's overlapping files again now, as far as its depth requires."""

from typing import Annotated

import typer

from services.cli.cli_context import setting_of
from services.cli.commands.optimize import PRIORITY, by_name


def sort(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Name of a registered table with sort-by or zorder-by.")],
    partition: Annotated[
        list[str] | None, typer.Option(help="Only this partition, such as dt=2026-01-01; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")] = False,  # noqa: FBT002
    priority: Annotated[str, typer.Option(help="urgent, high, normal or low.")] = PRIORITY,
) -> None:
    """Sort files whose ranges overlap more than `max-depth` allows."""
    body = {"partitions": partition or [], "actions": ["sort"], "priority": priority, "dry_run": dry_run}
    by_name(setting_of(context), table, body)
