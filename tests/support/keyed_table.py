"""Tables with a primary key for tests of the removal of older rows, and the replay that they must equal."""

import random
from pathlib import Path
from typing import Any

from actor.ports import TableJob, TableJobOutcome
from shared.jobs.options import DeduplicateOptions
from shared.jobs.payload import DEDUPLICATE
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

Row = tuple[int | None, int | None, str, bool | None]
"""Key, sequence, value, and the mark of a deletion."""

MARKED = Policy(primary_key="id", sequence_by="ts", delete_marker="gone")


class KeyedTable:
    """A Delta table of the columns id, ts, v and gone; `more` follows them in CREATE TABLE."""

    def __init__(self, lab: DeltaLab, name: str, more: str = "", columns: str = "") -> None:
        self.lab = lab
        self.path: Path = lab.directory / name
        self.name = f"delta.`{self.path}`"
        lab.sql(f"CREATE TABLE {self.name} (id BIGINT, ts BIGINT, v STRING, gone BOOLEAN{columns}) USING delta {more}")

    def append(self, *rows: Row, extra: str = "", value: str = "") -> None:
        """Append rows; `extra` and `value` name a further column and its value."""
        written = ", ".join(f"({', '.join(map(_literal, row))}{value})" for row in rows)
        self.lab.sql(f"INSERT INTO {self.name} (id, ts, v, gone{extra}) VALUES {written}")

    def run(
        self, policy: Policy = MARKED, control: Control | None = None, options: DeduplicateOptions | None = None
    ) -> TableJobOutcome:
        given = (options or DeduplicateOptions()).encode()
        job = TableJob(DEDUPLICATE, str(self.path), policy, CommitOrigin("job", 7), options=given)
        return self.lab.engine.run_table_job(job, control or Control())

    def rows(self, columns: str = "id, ts, v") -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.lab.sql(f"SELECT {columns} FROM {self.name}")), key=repr)

    def count(self, version: int | None = None) -> int:
        at = "" if version is None else f" VERSION AS OF {version}"
        return int(self.lab.sql(f"SELECT count(*) FROM {self.name}{at}")[0][0])

    def history(self, commits: int) -> list[Any]:
        """The newest commits, newest first."""
        return self.lab.sql(f"DESCRIBE HISTORY {self.name} LIMIT {commits}")


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def newest(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Replay: the row of each key with the greatest sequence; nothing of a key whose newest row is marked."""
    latest: dict[int | None, tuple[int, Row]] = {}
    for row in rows:
        sequence = row[1] or 0
        if row[0] not in latest or sequence > latest[row[0]][0]:
            latest[row[0]] = sequence, row
    return sorted((row[:3] for _, row in latest.values() if not row[3]), key=repr)


def cdc(dice: random.Random, commits: int, size: int) -> list[list[Row]]:
    """Appends as a change feed makes them: of five rows one is an update or, more rarely, a deletion."""
    batches: list[list[Row]] = []
    keys = 0
    for commit in range(commits):
        batch: list[Row] = []
        for place in range(size):
            is_update = keys > 0 and dice.random() < 0.2
            key = dice.randrange(keys) if is_update else keys
            keys += not is_update
            batch.append((key, commit * size + place, f"v{commit}.{place}", is_update and dice.random() < 0.2))
        batches.append(batch)
    return batches
