"""An actor of the stress: rewrites random groups of random partitions without a pause, until it is killed.

`python -m tests.iceberg_stress.actor FOLDER NAME TABLES OPTIONS SEED`. Each rewrite is a job of its own; before it, the
one that was under way when the last actor was killed is searched, as a worker does.
"""

import json
import sys
import time
from pathlib import Path
from random import Random

from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.ports import RewriteRequest
from shared.commit_metadata import CommitMetadata
from shared.errors import LakewrightError
from shared.layout.planner import FileGroup, RewriteMode
from shared.table import CommitOrigin, PartitionKey
from tests.iceberg_stress.operations import GROUPS
from tests.support.spark_session import start_spark

POINT_S = 0.2
"""How long the actor stays at each point of a rewrite: a kill shall meet it there as well."""


class Slow:
    """A control that permits everything, and stays at each point for a moment."""

    def may_commit(self) -> None:
        """Every commit is permitted."""

    def should_stop(self) -> bool:
        return False

    def reached(self, point: str) -> None:
        time.sleep(POINT_S if point else 0)


def partitions(random: Random) -> list[PartitionKey]:
    """Return the keys that partitions have under both specs, in random order."""
    found = [PartitionKey(f'{{"#spec":"1","g":"{g}"}}') for g in range(GROUPS)]
    found += [
        PartitionKey(f'{{"#spec":"2","g":"{g}","id_bucket":"{bucket}"}}') for g in range(GROUPS) for bucket in (0, 1)
    ]
    random.shuffle(found)
    return found


def main() -> None:
    folder, name, tables, options, seed = sys.argv[1:]
    (Path(folder) / name).mkdir()
    random, journal = Random(int(seed)), Path(folder) / "jobs.jsonl"
    engine = IcebergEngine(start_spark(Path(folder) / name), IcebergEngineSettings({"lake": json.loads(options)}))
    print("ready", flush=True)
    number = 0
    while True:
        number += 1
        job, table = f"{name}-{number}", random.choice(tables.split(","))
        groups: list[FileGroup] = []
        try:
            for partition in partitions(random)[:3]:
                files = [*engine.read_partition(table, partition).files]
                random.shuffle(files)
                least = 1 if any(file.dv_id for file in files) else 2
                if len(files) >= least:
                    groups.append(FileGroup(partition, tuple(files[: random.randrange(least, 9)]), RewriteMode.FULL))
            if not groups:
                continue
            mark = CommitMetadata(CommitOrigin(job, 1), partition="{}", round=1, mode="full", started_ms=1)
            outcome = engine.rewrite(RewriteRequest(table, tuple(groups), mark.encode()), Slow())
            line = {"job": job, "version": outcome.version, "groups": [str(one.status) for one in outcome.groups]}
        except LakewrightError as error:
            line = {"job": job, "error": f"{type(error).__name__}: {error}"[:400]}
        with journal.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
