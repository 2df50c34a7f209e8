"""A table with a Qbeast index under real services: its properties, its decider, and the actor of such tables."""

from pathlib import Path

from tests.support.outside import is_at_rest
from tests.support.qbeast_process import PYTHON, QbeastProcess
from tests.support.qbeast_table import newest_index
from tests.support.stack import Process, Stack

NAME = "db.indexed"
PROPERTIES = {"lakewright.index-every": "0 s", "lakewright.max-bytes-per-job": "16 GiB"}


def actor(stack: Stack) -> Process:
    return stack.start("qbeast-actor", ["-m", "services.actor.qbeast"], python=str(PYTHON))


def actors(stack: Stack) -> set[str]:
    return {one["id"] for one in stack.get("/v1/actors")["actors"]}


def set_properties(qbeast: QbeastProcess, table: Path, **more: str) -> None:
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in {**PROPERTIES, **more}.items())
    qbeast.sql(text=f"ALTER TABLE delta.`{table.as_uri()}` SET TBLPROPERTIES ({listed})")


def unset(qbeast: QbeastProcess, table: Path, name: str) -> None:
    qbeast.sql(text=f"ALTER TABLE delta.`{table.as_uri()}` UNSET TBLPROPERTIES ('{name}')")


def begin(stack: Stack, table: Path) -> None:
    stack.decider(LAKEWRIGHT_SWEEP_S="1")
    stack.post("/v1/tables", {"location": table.as_uri(), "name": NAME}).raise_for_status()


def is_done(stack: Stack, table: Path) -> bool:
    return newest_index(table).is_done and is_at_rest(stack, NAME, table)


def decisions(stack: Stack) -> list[dict[str, str]]:
    found: list[dict[str, str]] = stack.get(f"/v1/tables/{NAME}/decisions", limit=500)["decisions"]
    return found
