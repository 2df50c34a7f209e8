"""One trace for every rule: the very same data files in the very same commits, made before anything is measured.

Each commit adds six files to the day of its time, as six writing tasks leave them; three commits in ten bring late
data for earlier days, too. Now and then a MERGE works on one of the last days for as long as six commits take; nothing
is appended to that day meanwhile, as Delta would abort a MERGE for that alone.
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PARTITIONS = 24
FILES_PER_COMMIT = 6
LATE_SHARE = 0.3
MEDIAN_ROWS, SIGMA = 500, 0.7
MERGE_EVERY, MERGE_COMMITS, MERGE_DAYS = 12, 6, 6
COLUMNS = {"id": "long", "account": "long", "amount": "long", "name": "string", "day": "string"}
_FIRST_DAY = date(2026, 1, 1)


@dataclass(frozen=True, slots=True)
class TraceCommit:
    """The `add` actions of one commit; `merge_day` is the partition of a MERGE that begins before it."""

    adds: tuple[Mapping[str, Any], ...]
    merge_day: str | None


@dataclass(frozen=True, slots=True)
class Trace:
    """All commits, the folder that their files lie in, and the rows that a table must hold in the end."""

    commits: tuple[TraceCommit, ...]
    folder: Path
    rows: int

    @property
    def bytes(self) -> int:
        """Bytes that the trace adds."""
        return sum(add["size"] for commit in self.commits for add in commit.adds)

    @property
    def files(self) -> int:
        """Files that the trace adds."""
        return sum(len(commit.adds) for commit in self.commits)


def days() -> list[str]:
    """Return the partitions, oldest first."""
    return [(_FIRST_DAY + timedelta(number)).isoformat() for number in range(PARTITIONS)]


def make_trace(
    folder: Path, *, commits: int, seed: int, for_iceberg: bool = False, merge_every: int = MERGE_EVERY
) -> Trace:
    """Write the data files of a trace below `folder`, and return its commits.

    for_iceberg: files are as Iceberg's writers leave them, with ids of columns, the partition column, and zstd.
    merge_every: commits from the beginning of a MERGE to that of the next one; no two are on one day at a time.
    """
    dice, names = random.Random(seed), days()
    today = [number * PARTITIONS // commits for number in range(commits)]
    touched = [list(_touched(dice, names, day)) for day in today]
    made: list[TraceCommit] = []
    merged: dict[str, int] = {}
    rows = 0
    for number in range(commits):
        adds = []
        for day in touched[number]:
            count = max(20, int(MEDIAN_ROWS * dice.lognormvariate(0, SIGMA)))
            adds.append(_file(folder, dice, day, rows, count, for_iceberg=for_iceberg))
            rows += count
        recent = names[max(0, today[number] - MERGE_DAYS) : today[number]]
        busy = {day for later in touched[number : number + MERGE_COMMITS] for day in later}
        quiet = [day for day in recent if day not in busy and merged.get(day, 0) <= number]
        merging = number % merge_every == merge_every // 2 and number + MERGE_COMMITS <= commits and quiet
        made.append(TraceCommit(tuple(adds), dice.choice(quiet) if merging else None))
        merged[made[-1].merge_day or ""] = number + MERGE_COMMITS
    return Trace(tuple(made), folder, rows)


def _touched(dice: random.Random, names: list[str], today: int) -> Iterator[str]:
    yield from [names[today]] * FILES_PER_COMMIT
    if today and dice.random() < LATE_SHARE:
        yield from (names[dice.randrange(today)] for _ in range(dice.choice((1, 2))))


def _file(
    folder: Path, dice: random.Random, day: str, first_id: int, rows: int, *, for_iceberg: bool
) -> dict[str, Any]:
    """Write one data file, and return the fields of its `add`."""
    ids = range(first_id, first_id + rows)
    values = {
        "id": pa.array(ids, pa.int64()),
        "account": pa.array([dice.getrandbits(62) for _ in ids], pa.int64()),
        "amount": pa.array([dice.getrandbits(40) for _ in ids], pa.int64()),
        "name": pa.array([dice.randbytes(12).hex() for _ in ids], pa.utf8()),
    }
    if for_iceberg:
        values["day"] = pa.array([day] * rows, pa.utf8())
    codec = "zstd" if for_iceberg else "snappy"
    name = f"day={day}/part-{first_id:010d}-{dice.randbytes(8).hex()}.c000.{codec}.parquet"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(values, _schema(values, for_iceberg=for_iceberg)), folder / name, compression=codec)
    stats = {
        "numRecords": rows,
        "minValues": {"id": ids[0]},
        "maxValues": {"id": ids[-1]},
        "nullCount": dict.fromkeys(values, 0),
    }
    return {
        "path": name,
        "partitionValues": {"day": day},
        "size": (folder / name).stat().st_size,
        "modificationTime": 1_767_225_600_000,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


def _schema(values: Mapping[str, pa.Array], *, for_iceberg: bool) -> pa.Schema:
    columns = [pa.field(name, column.type) for name, column in values.items()]
    if for_iceberg:
        columns = [one.with_metadata({"PARQUET:field_id": str(number)}) for number, one in enumerate(columns, 1)]
    return pa.schema(columns)
