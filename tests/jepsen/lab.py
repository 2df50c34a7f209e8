"""One run: writers and readers of Delta tables, and faults, while one compactor works beside them, or none.

Writers, model, readers and log are the soak's. Writers and workers are killed, workers are frozen. No writer compacts.
"""

import time
from collections import Counter
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random
from signal import SIGCONT, SIGSTOP

from deltalake import CommitProperties, DeltaTable

from tests.bench.machine import tree_cpu_s
from tests.jepsen.rival import TARGET_BYTES, Rival
from tests.soak.checker import Difference, broken_answers
from tests.soak.deltalake_writer import arrow
from tests.soak.household import DELTALAKE_WRITERS, SERVICES, SPARK_WRITER, START_S, Household
from tests.soak.journal import Journals
from tests.soak.log import Commit
from tests.soak.operations import Action
from tests.soak.tables import spec_of
from tests.soak.watch import Watch
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack
from tests.support.waiting import comes_true, until

SPECS = tuple(spec_of(name) for name in ("edges", "dates"))
"""Tables whose paths every engine spells alike: what they make of others is told by the soak and by `make interop`."""

CHECK_S = 1.0
FAULTS = 6
"""In one run."""
FROZEN_S = (0.5, 4.0)
WRITERS = DELTALAKE_WRITERS[:2]
WRITER_PAUSE_S = 0.5
"""So that a compactor that takes seconds does not lose each race."""
END_S = 60.0
LEAST_REWRITES, LONGEST = 8, 3
"""Fewer rewrites prove little: until then a run goes on, so many times as long as asked at most."""
POLICY = f"target-file-size={TARGET_BYTES // 1024}kb,min-input-files=2,fan-in=2,max-job-wait=off,dml-policy=always"
"""Ours: beside DELETE and MERGE is where rewriting is dangerous, and nearly every commit makes work."""
SAMPLES = 5
"""Findings whose text is kept."""


@dataclass(slots=True)
class Seen:
    """What one run has shown.

    lost, revived, doubled, changed: rows, for each table the most that any reader found at any version. unreadable:
    reads that failed. broken: commits that were lost, replaced, or are explained by no operation. aborted: statements
    that failed. Bytes are of data files: in commits of writers, and in commits of the compactor.
    """

    lost: int = 0
    revived: int = 0
    doubled: int = 0
    changed: int = 0
    unreadable: int = 0
    broken: int = 0
    statements: int = 0
    aborted: int = 0
    ingested_bytes: int = 0
    rewritten_bytes: int = 0
    rewrites: int = 0
    cpu_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)

    @property
    def harms(self) -> frozenset[str]:
        """Names of the columns of harm that are not 0."""
        return frozenset(name for name in HARMS if getattr(self, name))

    @property
    def figures(self) -> dict[str, object]:
        """What is kept."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


HARMS = ("lost", "revived", "doubled", "changed", "unreadable", "broken")


def is_rewrite(commit: Commit) -> bool:
    """Whether a commit is a compactor's: ours, or one that its engine calls OPTIMIZE."""
    return commit.ours or commit.info.get("operation") == "OPTIMIZE"


def rows_in(differences: list[Difference]) -> dict[str, int]:
    """Return the rows of each kind of harm: of each table the most that one read found."""
    kinds = {"lost": "missing", "revived": "unexpected", "doubled": "twice", "changed": "changed"}
    tables = {one.table for one in differences}
    return {
        harm: sum(max(getattr(one, name) for one in differences if one.table == table) for table in tables)
        for harm, name in kinds.items()
    }


class Lab:
    """Holds the parts of one run; `rival` None: the control."""

    def __init__(self, rival: Rival | None, redis: RedisServer, folder: Path, seed: int, *, by_spark: bool) -> None:
        options = ["--pause-s", str(WRITER_PAUSE_S), "--only", *(spec.name for spec in SPECS)]
        options += ["--leave-out", Action.OPTIMIZE, "--spark-conf", *(rival.spark_conf if rival else ())]
        self._rival, self._seed, self._random = rival, seed, Random(seed)
        self._writers = (SPARK_WRITER,) if by_spark else WRITERS
        self._home = Household(
            Stack(folder, redis, {**SERVICES, "LAKEWRIGHT_POLICY": POLICY}),
            seed,
            rival is not None and rival.is_ours,
            tuple(options),
            specs=SPECS,
        )
        self._home.stack.tables.mkdir()
        self._watch = Watch(
            self._home.stack.tables, folder, Journals(folder), SPECS, is_rewrite=is_rewrite, has_spark=False
        )
        self._workers: list[str] = []
        self._begun_s: dict[str, float] = {}
        self._seen = Seen()

    def run(self, seconds: float) -> Seen:
        """Run everything; processes are ended whatever happens."""
        try:
            self._begin()
            self._work(seconds)
            self._quiet()
            self._judge()
        finally:
            self._home.stack.close()
        return self._seen

    def _begin(self) -> None:
        for spec in SPECS:
            DeltaTable.create(
                (self._home.stack.tables / spec.place).as_uri(),
                arrow(spec, ()).schema,
                partition_by=list(spec.by),
                configuration=spec.configuration,
                raise_if_key_not_exists=False,
                commit_properties=CommitProperties(custom_metadata={"soak": "create"}),
            )
        if self._rival is not None:
            self._workers = list(self._rival.begin(self._home, self._seed))
            self._begun_s = {name: self._used_s(name) for name in (*self._workers, *self._rival.services())}
        for name in self._writers:
            self._home.start_writer(name)
        if SPARK_WRITER in self._writers:
            ready = self._home.folder / f"{SPARK_WRITER}.ready"
            until("Spark is ready", lambda: ready.exists() or self._home.raise_if_ended(SPARK_WRITER), seconds=START_S)

    def _work(self, seconds: float) -> None:
        began = time.monotonic()
        due = [(number + self._random.random()) * seconds / FAULTS for number in range(FAULTS)]
        while (elapsed := time.monotonic() - began) < seconds or (self._is_idle and elapsed < LONGEST * seconds):
            self._home.start_again()
            self._watch.check_one(self._random)
            if due and elapsed > due[0]:
                due.pop(0)
                self._harm()
            time.sleep(CHECK_S)

    @property
    def _is_idle(self) -> bool:
        commits = (commit for log in self._watch.logs.values() for commit in log.commits)
        return self._rival is not None and sum(map(is_rewrite, commits)) < LEAST_REWRITES

    def _harm(self) -> None:
        """Kill a writer or a worker, or freeze a worker.

        Spark as the writer is left alone, and so are workers until all of them work: they would only start.
        """
        kinds = [] if SPARK_WRITER in self._writers else [self._kill_writer]
        rival = self._rival
        if rival and self._workers and all(rival.is_ready(self._home, name) for name in self._workers):
            kinds += [self._kill_worker, self._freeze_worker]
        if kinds:
            self._random.choice(kinds)()

    def _kill_writer(self) -> None:
        name = self._random.choice(self._writers)
        self._home.kill(name)
        self._home.start_writer(name)
        self._seen.faults["writer killed"] += 1

    def _kill_worker(self) -> None:
        assert self._rival is not None
        name = self._random.choice(self._workers)
        self._seen.cpu_s += self._used_s(name) - self._begun_s.pop(name, 0.0)
        self._home.kill(name)
        self._rival.start_again(self._home, name)
        self._seen.faults["compactor killed"] += 1

    def _freeze_worker(self) -> None:
        name = self._random.choice(self._workers)
        self._home.signal(name, SIGSTOP)
        time.sleep(self._random.uniform(*FROZEN_S))
        self._home.signal(name, SIGCONT)
        self._seen.faults["compactor frozen"] += 1

    def _quiet(self) -> None:
        """Measure, and have writers and workers end."""
        for name in (*self._workers, *(self._rival.services() if self._rival else ())):
            self._seen.cpu_s += self._used_s(name) - self._begun_s.get(name, 0.0)
        for name in ("stop", "end"):
            (self._home.folder / name).touch()
        running = [self._home.running[name] for name in (*self._writers, *self._workers)]
        comes_true(lambda: not any(one.alive for one in running), seconds=END_S if not self._is_ours else 0)
        self._home.stack.close()

    def _judge(self) -> None:
        watch, seen = self._watch, self._seen
        for spec in SPECS:
            watch.check_all(spec)
        broken = [problem for model in watch.models.values() for problem in model.problems]
        broken += broken_answers(watch.journals, watch.models)
        broken += [
            f"{name}: version {one} was replaced" for name, log in watch.logs.items() for one in log.changed_commits()
        ]
        broken += [f"{name}: {problem}" for name, log in watch.logs.items() for problem in log.broken]
        for name, rows in rows_in(watch.differences).items():
            setattr(seen, name, rows)
        seen.unreadable, seen.broken = len(watch.unreadable), len(broken)
        seen.samples = [*map(str, watch.differences), *watch.unreadable, *broken][:SAMPLES]
        answers = watch.journals.answers.values()
        seen.statements, seen.aborted = len(answers), sum(one.version is None for one in answers)
        for commit in (commit for log in watch.logs.values() for commit in log.commits):
            size = sum(add["size"] for add in commit.files("add"))
            if is_rewrite(commit):
                seen.rewrites, seen.rewritten_bytes = seen.rewrites + 1, seen.rewritten_bytes + size
            else:
                seen.ingested_bytes += size
        if self._rival is not None:
            for process in self._home.stack.processes:
                if process.name in self._workers:
                    seen.failures += self._rival.failures(process.log.read_text(errors="replace"))

    @property
    def _is_ours(self) -> bool:
        return self._rival is not None and self._rival.is_ours

    def _used_s(self, name: str) -> float:
        return tree_cpu_s(self._home.running[name].popen.pid)
