"""Foreign writers as processes of their own: they append, delete and merge, and note what the table accepted.

Rows are (id, day, value). Deletes and merges name ids that an appender has noted as committed, so the operations of
the one DML process commute with every append, and the expected table is a replay of the notes in any order of writers.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from services.demo.writer import notification
from tests.support.local_http import LOCAL
from tests.support.time_limits import scaled

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.string())])
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
CHANGED_DAY = DAYS[-1]
"""The day that deletes and merges work on. Appends go there, too, but seldom: delta-rs refuses a DELETE during which
anything was added to the partition, and refused operations prove nothing."""
Rows = dict[int, tuple[str, str]]
PAUSE_S = 0.3
"""Between operations of one writer: on a small machine writers at full speed leave no time to any other."""


def create(location: Path, **configuration: str) -> None:
    """Create the table, partitioned by day."""
    DeltaTable.create(
        str(location), SCHEMA, partition_by=["day"], configuration=configuration, raise_if_key_not_exists=False
    )


def batch(rng: random.Random, first_id: int, rows: int) -> pa.Table:
    day = CHANGED_DAY if rng.random() < 0.15 else rng.choice(DAYS[:-1])
    return pa.table(
        {
            "id": list(range(first_id, first_id + rows)),
            "day": [day] * rows,
            "value": [rng.randbytes(12).hex() for _ in range(rows)],
        },
        schema=SCHEMA,
    )


def append_small_files(location: Path, rng: random.Random, *, files: int, rows: int = 200) -> None:
    """Append files to one partition, a commit for each."""
    for number in range(files):
        appended = batch(rng, number * rows, rows).set_column(1, "day", [[DAYS[0]] * rows])
        write_deltalake(location, appended, mode="append")


def replay(appended: list[Path], changed: Path | None = None) -> Rows:
    """Return what the table must hold: all appended rows, with the DML's accepted operations applied in its order."""
    rows: Rows = {}
    for note in (note for file in appended for note in _notes(file)):
        for key, day, value in note["rows"]:
            assert key not in rows
            rows[key] = (day, value)
    for note in _notes(changed) if changed else ():
        for key in note.get("deleted", ()):
            del rows[key]
        for key, day, value in note.get("merged", ()):
            assert rows[key][0] == day
            rows[key] = (day, value)
    return rows


def found(location: Path) -> tuple[int, Rows]:
    """Return the number of rows in the table, and them by id."""
    table = DeltaTable(str(location)).to_pyarrow_table()
    columns = (table.column(name).to_pylist() for name in SCHEMA.names)
    return table.num_rows, {key: (day, value) for key, day, value in zip(*columns, strict=True)}


def _notes(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        # The last line may still be on its way to the file.
        yield from (json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n"))


class Writer:
    """What both kinds of writers share: a table, a seed, a file of notes, a place to post events to, a sign to stop."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.location: Path = options.location
        self.rng = random.Random(options.seed)
        self.stop: Path = options.stop
        self.first_id: int = options.first_id
        self._url: str = options.events_url
        self._notes = options.notes.open("a")

    def note(self, table: DeltaTable, **what: Any) -> None:
        self._notes.write(json.dumps(what) + "\n")
        self._notes.flush()
        try:
            httpx.post(self._url, json=notification(self.location.name, table.version()), timeout=scaled(5), **LOCAL)
        except httpx.HTTPError as lost:
            print(f"event lost: {lost}")

    def append(self) -> None:
        """Append small commits until asked to stop."""
        table, next_id = DeltaTable(str(self.location)), self.first_id
        while not self.stop.exists():
            rows = batch(self.rng, next_id, self.rng.randrange(5, 400))
            try:
                write_deltalake(table, rows, mode="append")
            except CommitFailedError as refused:
                # delta-rs refuses an append that a DELETE or MERGE overtook; the rows are written again.
                print(f"refused: {refused}")
                table = DeltaTable(str(self.location))
                continue
            next_id += rows.num_rows
            time.sleep(PAUSE_S)
            self.note(table, rows=list(zip(*(rows.column(name).to_pylist() for name in SCHEMA.names), strict=True)))

    def change(self, appended: list[Path]) -> None:
        """Delete and merge rows that others have committed, until asked to stop; refused operations are dropped."""
        alive: Rows = {}
        seen = dict.fromkeys(appended, 0)
        while not self.stop.exists():
            for file in appended:
                for note in islice(_notes(file), seen[file], None):
                    alive |= {key: (day, value) for key, day, value in note["rows"]}
                    seen[file] += 1
            time.sleep(PAUSE_S)
            candidates = sorted(key for key, (day, _) in alive.items() if day == CHANGED_DAY)
            if len(candidates) < 50:
                continue
            chosen = self.rng.sample(candidates, 5)
            table = DeltaTable(str(self.location))
            try:
                if self.rng.random() < 0.5:
                    self._delete(table, chosen, alive)
                else:
                    self._merge(table, chosen, alive)
            except (CommitFailedError, DeltaError) as refused:
                print(f"refused: {refused}")

    def _delete(self, table: DeltaTable, chosen: list[int], alive: Rows) -> None:
        table.delete(f"day = '{CHANGED_DAY}' and id in ({', '.join(map(str, chosen))})")
        for key in chosen:
            del alive[key]
        self.note(table, deleted=chosen)

    def _merge(self, table: DeltaTable, chosen: list[int], alive: Rows) -> None:
        new = [(key, alive[key][0], self.rng.randbytes(12).hex()) for key in chosen]
        columns = dict(zip(SCHEMA.names, map(list, zip(*new, strict=True)), strict=True))
        merger = table.merge(
            pa.table(columns, schema=SCHEMA),
            f"t.day = '{CHANGED_DAY}' and t.day = s.day and t.id = s.id",
            source_alias="s",
            target_alias="t",
        )
        merger.when_matched_update_all().execute()
        alive |= {key: (day, value) for key, day, value in new}
        self.note(table, merged=new)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["append", "change"])
    parser.add_argument("--location", type=Path, required=True)
    parser.add_argument("--notes", type=Path, required=True)
    parser.add_argument("--stop", type=Path, required=True)
    parser.add_argument("--events-url", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first-id", type=int, default=0)
    parser.add_argument("--appended", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    writer = Writer(options)
    if options.kind == "append":
        writer.append()
    else:
        writer.change(options.appended)


if __name__ == "__main__":
    main()
