"""Copies of the tables that Qbeast's library wrote, in the session of a test."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from actor.engines import EngineSet
from actor.ports import TableJob, TableJobOutcome
from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from shared.jobs.options import IndexJobOptions
from shared.jobs.payload import INDEX
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import live
from tests.support.local_vacuum import Control
from tests.support.qbeast_data import qbeast_data

TABLES = qbeast_data() / "qbeast_tables"

FIRST = ("hashes", "revisions", "seven", "zone")
"""Those that no other test rewrites."""
NAMES = (*FIRST, *sorted({one.name for one in TABLES.iterdir() if one.is_dir()} - {*FIRST}))

FileBlocks = list[tuple[str, tuple[tuple[str, int, int, int], ...]]]
"""Revision and blocks of each file, in an order of their own."""


class IndexTable:
    """A copy of one of the tables."""

    def __init__(self, lab: DeltaLab, name: str, at: str = "") -> None:
        """With `at`: the place of a table that the test makes."""
        self.lab = lab
        self.path: Path = lab.directory / at if at else shutil.copytree(TABLES / name, lab.directory / name)
        self.name = f"delta.`{self.path}`"
        self._runs = 0

    def run(
        self, control: Control | None = None, *, budget_bytes: int | None = None, zone: str = ""
    ) -> TableJobOutcome:
        self._runs += 1
        policy = Policy(index=True, index_zone=zone).with_traits(is_indexed=True)
        options = IndexJobOptions(budget_bytes=budget_bytes).encode()
        job = TableJob(INDEX, str(self.path), policy, CommitOrigin("job", self._runs), options=options)
        return self.lab.engine.run_table_job(job, control or Control())

    def rows(self) -> list[str]:
        frame = self.lab.spark.read.format("delta").load(str(self.path))
        return sorted(frame.toJSON().collect())

    def blocks(self) -> FileBlocks:
        return blocks_of(live(self.path).values())


def optimized(name: str) -> FileBlocks:
    """The files that the library's own `optimize` wrote of a table."""
    lines = (TABLES / f"{name}.optimized.json").read_text().splitlines()
    return blocks_of(action["add"] for action in map(json.loads, lines) if "add" in action)


def blocks_of(adds: Iterable[Mapping[str, Any]]) -> FileBlocks:
    return sorted(
        (
            add["tags"]["revision"],
            tuple(
                sorted(
                    (one["cubeId"], one["minWeight"], one["maxWeight"], one["elementCount"])
                    for one in json.loads(add["tags"]["blocks"])
                )
            ),
        )
        for add in adds
    )


def verify(table: IndexTable, *options: str) -> tuple[int, Any]:
    """Run `tables index --verify` on the engine of the session."""

    @contextmanager
    def opened(_say: object) -> Iterator[object]:
        yield EngineSet([table.lab.engine])

    setting = CliContext("http://127.0.0.1:9", as_json=True, engine=opened)
    done = CliRunner().invoke(app, ["tables", "index", str(table.path), "--verify", *options], obj=setting)
    assert isinstance(done.exception, SystemExit | None), (done.output, done.exception)
    return done.exit_code, json.loads(done.stdout)
