"""One soak from beginning to end: processes, faults, continuous checks, quiet, final checks, verdict."""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from deltalake import CommitProperties, DeltaTable

from tests.soak.checker import is_at_rest, state_differences
from tests.soak.deltalake_writer import arrow
from tests.soak.disk import Balloon, mount_small
from tests.soak.faults import Faults
from tests.soak.household import DELTALAKE_WRITERS, SERVICES, SPARK_WRITER, START_S, Household
from tests.soak.journal import Journals
from tests.soak.log import Orphans, orphans_of
from tests.soak.tables import TABLES
from tests.soak.verdict import Memory, Verdict, progress
from tests.soak.watch import LATEST, Watch
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack
from tests.support.waiting import until

CHECK_S = 2.0
"""Between two comparisons of one reader on one table."""
PROGRESS_S = 10.0
FAULTS_AT_LEAST_S, FAULTS_PER_RUN = 4.0, 60
"""A restarted JVM needs a core for half a minute on a small machine: faults must leave time to work."""
FINDINGS_AT_ONCE = 3
"""Shown as they come in; the verdict has the others."""
FULL_AT = 0.45
"""Share of the run after which the disk is filled."""
REST_S = 90.0
"""Within which all work is done once no one writes any more."""
WRITERS_END_S = 60.0


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """What a soak is told; `writer_options` go to every writer as they are."""

    seconds: float
    seed: int
    folder: Path
    with_lakewright: bool
    with_faults: bool
    no_namespace: str
    writer_options: tuple[str, ...]
    older: Path | None = None


class Soak:
    """Holds all parts of one run; `say` prints."""

    def __init__(self, options: SoakOptions, redis: RedisServer, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say
        self._random = Random(options.seed)
        self._stack = Stack(options.folder, redis, SERVICES)
        self._stack.tables.mkdir()
        self._not_small = options.no_namespace or mount_small(self._stack.tables, seconds=options.seconds)
        self._home = Household(
            self._stack, options.seed, options.with_lakewright, options.writer_options, options.older
        )
        balloon = None if self._not_small else Balloon(self._stack.tables)
        self._faults = Faults(self._home, Random(options.seed + 1), balloon)
        self._watch = Watch(self._stack.tables, options.folder, Journals(options.folder))
        self._reported = 0
        self._memory = Memory(self._home)
        self.verdict = Verdict(
            options.seed, options.with_lakewright, self._watch, self._faults, self._home, self._memory
        )

    def run(self) -> Verdict:
        """Run everything; processes are ended whatever happens."""
        try:
            self._begin()
            self._soak()
            self._quiet()
            self._final_checks()
        finally:
            self._faults.stop.set()
            (self._options.folder / "end").touch()
            self._stack.close()
            if not self._not_small:
                # The small disk goes with this process; whoever looks into a difference needs the tables.
                shutil.copytree(self._stack.tables, self._options.folder / "tables-kept", symlinks=True)
        return self.verdict

    def _begin(self) -> None:
        self._say(f"tables on {'the ordinary disk: ' + self._not_small if self._not_small else 'a small disk'}")
        for spec in TABLES:
            if spec.deltalake:
                DeltaTable.create(
                    (self._stack.tables / spec.place).as_uri(),
                    arrow(spec, ()).schema,
                    partition_by=list(spec.by),
                    configuration=spec.configuration,
                    raise_if_key_not_exists=False,
                    commit_properties=CommitProperties(custom_metadata={"soak": "create"}),
                )
        self._home.start_writer(SPARK_WRITER)
        ready = self._options.folder / f"{SPARK_WRITER}.ready"
        until(
            "Spark has made its table",
            lambda: ready.exists() or self._home.raise_if_ended(SPARK_WRITER),
            seconds=START_S,
        )
        self._home.start_services()
        for name in DELTALAKE_WRITERS:
            self._home.start_writer(name)

    def _soak(self) -> None:
        """Let them write, and harm and check them meanwhile."""
        began = time.monotonic()
        seconds = self._options.seconds
        harm = threading.Thread(target=self._faults.run, args=[max(FAULTS_AT_LEAST_S, seconds / FAULTS_PER_RUN)])
        if self._options.with_faults:
            harm.start()
        shown = filled = False
        while (elapsed := time.monotonic() - began) < seconds:
            self._home.start_again()
            self._watch.take_answers()
            self._watch.check_one(self._random)
            if self._options.with_faults and not filled and elapsed > FULL_AT * seconds:
                filled = True
                self._fill_disk()
            if shown != int(elapsed / PROGRESS_S):
                shown = int(elapsed / PROGRESS_S)
                self._show(elapsed)
            time.sleep(CHECK_S)
        self._faults.stop.set()
        if self._options.with_faults:
            harm.join()

    def _fill_disk(self) -> None:
        self._say("the disk is full")
        self._faults.fill_disk()
        self._refresh_all()
        self.verdict.note_disk_released()
        self._say("the disk has room again")

    def _refresh_all(self) -> None:
        for spec in TABLES:
            self._watch.refresh(spec)

    def _show(self, elapsed: float) -> None:
        self._refresh_all()
        self._say(progress(elapsed, self.verdict))
        if self._options.with_lakewright:
            self._memory.sample(elapsed)
        found = [*map(str, self._watch.differences), *self._watch.unreadable]
        for finding in found[self._reported : self._reported + FINDINGS_AT_ONCE]:
            self._say(f"    {finding}")
        self._reported = len(found)

    def _quiet(self) -> None:
        """Stop the writers, and wait until all of our work is done."""
        self._home.start_again()
        (self._options.folder / "stop").touch()
        self._await("the writers ended", self._home.writers_ended, WRITERS_END_S)
        if not self._options.with_lakewright:
            return
        began = time.monotonic()
        for spec in TABLES:
            left_s = max(1.0, REST_S - (time.monotonic() - began))
            self._await(
                f"all work on {spec.name} done",
                partial(is_at_rest, self._stack, spec),
                left_s,
            )
        self._say(f"at rest {time.monotonic() - began:.0f} s after the last write")

    def _final_checks(self) -> None:
        self._check_all("at rest", vacuum=False)
        if self._options.with_lakewright:
            for spec in TABLES:
                self.verdict.problems += state_differences(self._stack, spec, self._watch.logs[spec.name])
            self.verdict.note_jobs()
        for name in ("decider", *self._home.actors()):
            if name in self._home.running:
                self._home.kill(name)
        self.verdict.orphans = self._orphans()
        self._check_all("after a VACUUM of everything that is not live", vacuum=True)
        self.verdict.orphans_after_vacuum = self._orphans()
        self.verdict.conclude()

    def _check_all(self, when: str, *, vacuum: bool) -> None:
        """Compare every table by every reader; with `vacuum`, Spark removes first what is not live."""
        for spec in TABLES:
            version = self._watch.refresh(spec)
            for since in (None, LATEST):
                self._watch.ask_spark(spec, version, since, fresh=True, vacuum=vacuum and since is None)
        self._await(f"Spark has read all tables {when}", self._has_answered, REST_S)
        for spec in TABLES:
            self._watch.check_all(spec)

    def _has_answered(self) -> bool:
        self._home.raise_if_ended(SPARK_WRITER)
        return self._watch.take_answers() == 0

    def _await(self, what: str, condition: Callable[[], bool], seconds: float) -> None:
        """Wait; what does not come is a problem, and the rest is checked all the same."""
        try:
            until(what, condition, seconds=seconds)
        except (AssertionError, RuntimeError) as problem:
            self.verdict.problems.append(str(problem)[:500])

    def _orphans(self) -> dict[str, Orphans]:
        return {name: orphans_of(log.folder, log.known_paths()) for name, log in self._watch.logs.items()}
