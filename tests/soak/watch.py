"""Reads logs and journals as they grow, and has readers compared with the model at the newest version."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any

from tests.soak.checker import Difference, Reader, compare, readers_of
from tests.soak.journal import Journals
from tests.soak.log import Commit, TableLog
from tests.soak.model import Model
from tests.soak.tables import EDGES, TABLES, TableSpec
from tests.soak.values import Row

LATEST = max(EDGES)
"""Rows at the last edge: a reader that takes the year 9999 for another finds none of them."""


ERROR_CHARS = 400
"""As much of a reader's error as is kept."""


@dataclass(slots=True)
class Watch:
    """What is known of all tables. `checks`: comparisons made, by reader; `differences`: those that found something.

    `has_spark`: whether Spark's process answers, too.
    """

    tables: Path
    folder: Path
    journals: Journals
    specs: Sequence[TableSpec] = TABLES
    is_rewrite: Callable[[Commit], bool] = attrgetter("ours")
    has_spark: bool = True
    logs: dict[str, TableLog] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    checks: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    _asked: dict[Path, tuple[str, int, int | None]] = field(default_factory=dict)
    _requests: int = 0

    def __post_init__(self) -> None:
        (self.folder / "requests").mkdir()
        for spec in self.specs:
            self.logs[spec.name] = TableLog(self.tables / spec.place)
            self.models[spec.name] = Model(spec.name, self.is_rewrite)

    def refresh(self, spec: TableSpec) -> int:
        """Replay a table up to its newest version, and return that."""
        log = self.logs[spec.name]
        newest = log.newest()
        self.journals.refresh()  # After the listing: whatever is committed has been journaled before.
        self.models[spec.name].replay(log.read_to(newest), self.journals.operations)
        return newest

    def check_one(self, random: Random) -> None:
        """Compare one reader on one table at its newest version, perhaps with a filter."""
        spec = random.choice(self.specs)
        since = LATEST if random.random() < 0.3 else None
        version = self.refresh(spec)
        readers = readers_of(spec)
        name = random.choice([*readers, *(["Spark"] if self.has_spark else [])])
        if name == "Spark":
            self.ask_spark(spec, version, since)
        else:
            self._read(spec, name, readers[name], since)

    def check_all(self, spec: TableSpec) -> None:
        """Compare every reader but Spark, with and without a filter."""
        self.refresh(spec)
        for name, reader in readers_of(spec).items():
            for since in (None, LATEST):
                self._read(spec, name, reader, since)

    def ask_spark(
        self, spec: TableSpec, version: int, since: int | None, *, fresh: bool = False, vacuum: bool = False
    ) -> None:
        """Ask the process that has Spark; its answer is compared when it comes."""
        request = self.folder / "requests" / f"{self._requests:06d}.json"
        self._requests += 1
        asked = {"table": spec.name, "version": version, "since": since, "fresh": fresh, "vacuum": vacuum}
        half = request.with_suffix(".part")
        half.write_text(json.dumps(asked))
        self._asked[request.with_suffix(".answer")] = (spec.name, version, since)
        half.rename(request)

    def take_answers(self) -> int:
        """Compare what Spark has answered; return how many answers are still to come."""
        for answer, (name, version, since) in list(self._asked.items()):
            if answer.exists():
                stated: dict[str, Any] = json.loads(answer.read_text())
                self._judge(name, version, "Spark", stated.get("rows", stated.get("error", "")), since)
                del self._asked[answer]
                answer.unlink()
        return len(self._asked)

    def _read(self, spec: TableSpec, name: str, reader: Reader, since: int | None) -> None:
        log = self.logs[spec.name]
        try:
            found: list[Row] | str = reader(spec, log, since)
        except Exception as problem:  # noqa: BLE001 - a table that cannot be read is a finding
            found = f"{type(problem).__name__}: {problem}"[:500]
        self._judge(spec.name, log.version, name, found, since)

    def _judge(self, table: str, version: int, reader: str, found: list[Row] | str, since: int | None) -> None:
        self.checks[reader] += 1
        shown = reader if since is None else f"{reader} with a filter"
        if isinstance(found, str):
            self.unreadable.append(f"{table} version {version} by {shown}: {' '.join(found.split())[:ERROR_CHARS]}")
            return
        rows = self.models[table].rows_at(version)
        expected = {key: row for key, row in rows.items() if since is None or _at(row) >= since}
        if difference := compare((table, version, shown), expected, found):
            self.differences.append(difference)

    def rewrites(self) -> int:
        """Count our commits."""
        return sum(commit.ours for log in self.logs.values() for commit in log.commits)

    def commits_by(self) -> Counter[str]:
        """Count commits by writer, as far as they were read."""
        nonces: Iterable[str] = (nonce for model in self.models.values() for nonce in model.found)
        return Counter(nonce.rpartition("-")[0].rpartition("-")[0] for nonce in nonces)


def _at(row: Row) -> int:
    at = row["at"]
    assert isinstance(at, int)
    return at
