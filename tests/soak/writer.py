"""The loop of every writer: choose an operation, journal it, try it, journal the answer, tell the decider of it.

Events are dropped and doubled on purpose; what no event tells, the decider's sweep must find.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

import httpx

from tests.soak.journal import Journal
from tests.soak.operations import Action, Chooser, Operation, View
from tests.soak.tables import Partition, TableSpec
from tests.support.time_limits import scaled

DROPPED, DOUBLED = 0.25, 0.15
"""Shares of the events that are not sent, and that are sent twice."""
EVENT_TIMEOUT_S = 1.0
"""A decider that is stopped does not answer; the writer must not wait for it."""
ERROR_CHARS = 300
"""As much of an error as a journal keeps."""


class Engine(Protocol):
    """A library that writes Delta tables."""

    def tables(self) -> Sequence[TableSpec]:
        """Return the tables that it can write."""

    def partitions(self, spec: TableSpec) -> Sequence[Partition]:
        """Return the partitions that it may write."""

    def view(self, spec: TableSpec, action: Action) -> View:
        """Return the newest state of a table, as far as this action needs it; `run` works on just this state."""

    def run(self, spec: TableSpec, operation: Operation) -> int:
        """Carry an operation out, and return the table's version after it; raises whatever the library raises."""


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """What a writer is told. `events_url` empty: it tells no one; `only` empty: it writes to all tables."""

    name: str
    tables: Path
    folder: Path
    events_url: str
    seed: int
    first_id: int
    pause_s: float
    spark_writes_everywhere: bool
    only: Sequence[str]
    leave_out: Sequence[Action]
    spark_conf: Sequence[str]

    def writes_to(self, spec: TableSpec) -> bool:
        """Whether a table is to be written to."""
        return not self.only or spec.name in self.only


def parse_options() -> WriterOptions:
    """Read the command line of a writer's process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where journals lie and `stop` appears")
    parser.add_argument("--events-url", default="")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first-id", type=int, required=True)
    parser.add_argument("--pause-s", type=float, required=True, help="between two operations")
    parser.add_argument("--spark-writes-everywhere", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], help="names of the tables to write to")
    parser.add_argument("--leave-out", nargs="*", default=[], type=Action, help="operations that it never does")
    parser.add_argument("--spark-conf", nargs="*", default=[], help="NAME=VALUE for Spark's session")
    return WriterOptions(**vars(parser.parse_args()))


def write(engine: Engine, options: WriterOptions, between: Callable[[], None] = lambda: None) -> None:
    """Write until `stop` appears in the folder; `between` is called before each operation."""
    rng = Random(options.seed)
    chooser = Chooser(rng, f"{options.name}-{options.seed}", options.first_id, options.leave_out)
    tables = [spec for spec in engine.tables() if options.writes_to(spec)]
    journal = Journal(options.folder / f"{options.name}-{options.seed}.journal")
    stop = options.folder / "stop"
    while not stop.exists():
        between()
        time.sleep(rng.uniform(0.5, 1.5) * options.pause_s)
        spec, action = chooser.table(tables), chooser.action()
        try:
            operation = chooser.choose(spec, action, engine.view(spec, action), engine.partitions(spec))
        except Exception as problem:  # noqa: BLE001 - a table may be unreadable for a moment, on a full disk say
            print(f"{spec.name} cannot be read: {_line(problem)}", flush=True)
            continue
        if operation is None:
            continue
        journal.intend(operation)
        try:
            version = engine.run(spec, operation)
        except Exception as problem:  # noqa: BLE001 - the journal keeps it, and the report counts the kinds
            journal.refused(operation.nonce, _line(problem))
            continue
        journal.committed(operation.nonce, version)
        if options.events_url:
            _report(rng, options.events_url, options.tables / spec.place, version)
    journal.close()


def _report(rng: Random, url: str, table: Path, version: int) -> None:
    chance = rng.random()
    times = 0 if chance < DROPPED else 2 if chance > 1 - DOUBLED else 1
    for _ in range(times):
        try:
            httpx.post(url, json={"table": table.as_uri(), "version": version}, timeout=scaled(EVENT_TIMEOUT_S))
        except httpx.HTTPError as lost:
            print(f"event lost: {lost}", flush=True)


def _line(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {' '.join(lines[:2])}"[:ERROR_CHARS]
