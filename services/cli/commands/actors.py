"""`lakewright actors …`: list the actors, and drain one before it is stopped."""

from typing import Annotated, Any

import typer

from services.cli.cli_context import print_answer, show_message
from services.cli.client import segment
from services.cli.render import Output, at, duration, shown

app = typer.Typer(no_args_is_help=True, help="List and drain actors.")


@app.command("list")
def list_actors(context: typer.Context) -> None:
    """List the actors with their slots, jobs and versions."""
    print_answer(context, lambda api: api.get("/v1/actors"), _show_actors)


@app.command("drain")
def drain_actor(context: typer.Context, actor: Annotated[str, typer.Argument(help="Name of the actor.")]) -> None:
    """Let an actor finish its jobs and take no new ones, so that stopping it loses no work."""
    print_answer(context, lambda api: api.post(f"/v1/actors/{segment(actor)}/drain", {}), show_message)


def _show_actors(out: Output, answer: Any) -> None:
    rows = [
        (
            one["id"],
            one["state"],
            one["group"],
            f"{one['busy_slots']} of {one['slots']}",
            ", ".join(one["jobs"]) or "-",
            f"{duration(one['heartbeat_age_s'])} ago",
            at(one["started_at"]),
            ", ".join(one["abilities"]) or "any",
            shown(one["versions"]),
            one["error"] or "-",
        )
        for one in answer["actors"]
    ]
    out.rows(
        f"Actors: {answer['busy_slots']} of {answer['slots']} slots busy",
        ("actor", "state", "group", "slots", "jobs", "heartbeat", "since (UTC)", "can run", "versions", "error"),
        rows,
    )
    for one in answer["unserved"]:
        out.line(f"No actor can run {one['ability']}: {one['jobs']:,} jobs wait for one that can")
