"""Ten recorded histories, seeded, whose best setting is known; each goes on with as many commits of the same process.

The best setting of each is found by replaying every combination of the values that advice considers
(`tests/bench/advice.py`); the settings in effect were chosen to differ from it, or to be it.
"""

import json
import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from decider.whatif.comparison import FAN_INS, MIN_INPUTS, TARGETS_BYTES, TOLERANCES
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace
from shared.policy.policy import KIB, MIB, Policy, apply
from shared.policy.properties import read_settings
from shared.table import Commit, DataFile, PartitionKey, RemovedFile, TableMetadata
from tests.support.delta_tables import PLAIN, metadata_of

MINUTE_MS = 60_000
COMMITS = 300
"""Commits of the recorded part, and of what follows."""


class Process(NamedTuple):
    """What writes a table: files a commit, their median size and spread, minutes between commits, commits a partition.

    kept: partitions that stay; older ones are dropped. Late: share of the commits that also write to an older one.
    """

    files: int
    median_bytes: int
    sigma: float
    every_minutes: int
    partition_commits: int
    kept: int
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class AdvisedHistory:
    """A process with its seed, and the settings in effect."""

    name: str
    seed: int
    process: Process
    present: Mapping[str, str] = field(default_factory=dict)

    @property
    def policy(self) -> Policy:
        """The policy in effect."""
        return apply(Policy(), read_settings(self.present))

    @property
    def recorded(self) -> CommitTrace:
        """The commits that are known when advice is given."""
        return CommitTrace((), self._commits()[:COMMITS])

    @property
    def following(self) -> CommitTrace:
        """The commits after it, as if the table began there."""
        return CommitTrace((), self._commits()[COMMITS:])

    @property
    def trace(self) -> TableTrace:
        """The recorded part as it is read from a log."""
        return TableTrace(f"memory:///{self.name}", 0, COMMITS - 1, TableMetadata("t", (), {}), self.recorded, 0, 0, 0)

    def _commits(self) -> tuple[Commit, ...]:
        return write(self.process, self.seed, 2 * COMMITS)


def write(process: Process, seed: int, commits: int) -> tuple[Commit, ...]:
    """Return so many commits of a process."""
    dice = random.Random(seed)
    live: dict[int, list[DataFile]] = {}
    made = []
    for version in range(commits):
        today = version // process.partition_commits
        added = [_file(dice, process, version, n, today) for n in range(process.files)]
        if today and dice.random() < process.late:
            added.append(
                _file(dice, process, version, process.files, max(0, today - dice.randint(1, process.kept - 1)))
            )
        for file, day in ((file, int(file.partition[8:13])) for file in added):
            live.setdefault(day, []).append(file)
        expired = [file for day in sorted(live) if day <= today - process.kept for file in live.pop(day)]
        gone = tuple(RemovedFile(file.path, None, file.size_bytes, file.partition) for file in expired)
        added = [file for file in added if file not in expired]
        made.append(Commit(version, version * process.every_minutes * MINUTE_MS, "WRITE", tuple(added), gone))
    return tuple(made)


def _file(dice: random.Random, process: Process, version: int, number: int, day: int) -> DataFile:
    size = max(16 * KIB, int(process.median_bytes * dice.lognormvariate(0, process.sigma)))
    return DataFile(f"{version:06d}-{number}", size, PartitionKey(f'{{"day":"{day:05d}"}}'))


EVENTS = Process(8, 256 * KIB, 0.4, 5, 48, 5)
ORDERS = Process(4, 4 * MIB, 0.8, 15, 48, 6)
LOADS = Process(4, 180 * MIB, 0.1, 60, 24, 4)

HISTORIES: tuple[AdvisedHistory, ...] = (
    AdvisedHistory("events", 1, EVENTS),
    AdvisedHistory("events_few_inputs", 2, EVENTS, {"min-input-files": "16"}),
    AdvisedHistory("events_at_best", 1, EVENTS, {"target-file-size": "256MiB", "fan-in": "4", "min-input-files": "4"}),
    AdvisedHistory("orders_small_target", 3, ORDERS, {"target-file-size": "32MiB"}),
    AdvisedHistory("orders_disabled", 4, ORDERS, {"enabled": "false"}),
    AdvisedHistory("late", 5, Process(3, MIB, 1.2, 10, 40, 6, 0.5), {"fan-in": "16", "tolerance": "0.05"}),
    AdvisedHistory("loads", 6, LOADS),
    AdvisedHistory("loads_at_best", 6, LOADS, {"target-file-size": "1GiB"}),
    AdvisedHistory("staging", 7, Process(2, 64 * MIB, 0.3, 30, 4, 2)),
    AdvisedHistory("dust", 8, Process(10, 60 * KIB, 0.5, 10, 60, 4), {"fan-in": "16"}),
)


def every_policy(policy: Policy) -> list[Policy]:
    """Return every combination of the values that advice considers, laid over a policy, and the policy switched off."""
    combined = product(
        sorted({*TARGETS_BYTES, policy.target_bytes}),
        sorted({*FAN_INS, policy.fan_in}),
        sorted({*TOLERANCES, policy.tolerance}),
        sorted({*MIN_INPUTS, policy.min_input_files}),
    )
    on = replace(policy, enabled=True)
    return [
        replace(policy, enabled=False),
        *(
            replace(
                on,
                target_bytes=target,
                fan_in=fan_in,
                fits_levels=policy.fits_levels and fan_in == policy.fan_in,
                tolerance=tolerance,
                min_input_files=inputs,
            )
            for target, fan_in, tolerance, inputs in combined
        ),
    ]


@dataclass(slots=True)
class AdvisedLog:
    """A log below a folder; commits are written with their times moved by `shift_ms`.

    bounds: least and greatest value of the columns `v` and `w` in each file that is written; None: no statistics.
    has_files: the files are there, of their size and age, and the log's files have the age of their commits.
    is_partitioned: by the day.
    """

    path: Path
    shift_ms: int = 0
    version: int = -1
    bounds: tuple[str, str] | None = None
    has_files: bool = False
    is_partitioned: bool = True

    def __post_init__(self) -> None:
        (self.path / "_delta_log").mkdir(parents=True)
        self._write(0, "CREATE TABLE", [{"protocol": PLAIN}, self._metadata({})])

    def alter(self, properties: Mapping[str, str], at_ms: int) -> int:
        """Replace all properties, as `ALTER TABLE` on a table without any does; return the newest version."""
        self._write(at_ms, "SET TBLPROPERTIES", [self._metadata(properties)])
        return self.version

    def cluster(self, properties: Mapping[str, str], at_ms: int) -> None:
        """Upgrade the protocol as `CLUSTER BY` does, and replace all properties."""
        features = ["appendOnly", "invariants", "domainMetadata", "clustering"]
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
        self._write(at_ms, "CLUSTER BY", [{"protocol": protocol}, self._metadata(properties)])

    def write(self, commits: Iterable[Commit]) -> int:
        """Append commits; return the newest version."""
        for commit in commits:
            removed = [
                {
                    "remove": {
                        "path": _path(gone.path, gone.partition or "{}"),
                        "partitionValues": self._partition(gone.partition or "{}"),
                        "size": gone.size_bytes,
                        "deletionTimestamp": commit.timestamp_ms,
                        "extendedFileMetadata": True,
                        "dataChange": True,
                    }
                }
                for gone in commit.removed
            ]
            added = [
                {
                    "add": {
                        "path": _path(file.path, file.partition),
                        "partitionValues": self._partition(file.partition),
                        "size": file.size_bytes,
                        "modificationTime": commit.timestamp_ms,
                        "dataChange": commit.data_change,
                        **self._statistics(),
                    }
                }
                for file in commit.added
            ]
            for file in commit.added if self.has_files else ():
                self._put(_path(file.path, file.partition), file.size_bytes, commit.timestamp_ms)
            self._write(commit.timestamp_ms, commit.operation, [*removed, *added])
        return self.version

    def _put(self, name: str, size_bytes: int, at_ms: int) -> None:
        """Make a file without content, which takes no space on the disk."""
        path = self.path / unquote(name)
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size_bytes)
        self._age(path, at_ms)

    def _age(self, path: Path, at_ms: int) -> None:
        at_s = (self.shift_ms + at_ms) / 1000
        os.utime(path, (at_s, at_s))

    def _statistics(self) -> dict[str, str]:
        if self.bounds is None:
            return {}
        low, high = self.bounds
        return {
            "stats": json.dumps(
                {"numRecords": 100, "minValues": dict.fromkeys("vw", low), "maxValues": dict.fromkeys("vw", high)}
            )
        }

    def _metadata(self, properties: Mapping[str, str]) -> dict[str, object]:
        columns, by = dict.fromkeys(("day", "v", "w"), "string"), ["day"] if self.is_partitioned else []
        return {"metaData": metadata_of(columns, by, configuration=dict(properties))}

    def _partition(self, key: str) -> dict[str, str]:
        return json.loads(key) if self.is_partitioned else {}

    def _write(self, at_ms: int, operation: str, actions: list[dict[str, object]]) -> None:
        self.version += 1
        lines = [{"commitInfo": {"timestamp": self.shift_ms + at_ms, "operation": operation}}, *actions]
        text = "\n".join(json.dumps(line) for line in lines)
        path = self.path / "_delta_log" / f"{self.version:020d}.json"
        path.write_text(text)
        if self.has_files:
            self._age(path, at_ms)


def _path(name: str, partition: str) -> str:
    return f"day={quote(json.loads(partition)['day'])}/{name}.parquet"
