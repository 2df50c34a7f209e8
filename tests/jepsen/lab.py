"""One run: writers and readers of tables, and faults, while one compactor works beside them, or none.

Compactors are killed and frozen. What tables, writers and readers are is said by a subclass for each format.
"""

import time
from collections.abc import Callable, Sequence
from random import Random
from signal import SIGCONT, SIGSTOP

from tests.bench.machine import tree_cpu_s
from tests.jepsen.rival import TARGET_BYTES, Place, Rival
from tests.jepsen.seen import LEAST_REWRITES, Seen

CHECK_S = 1.0
FAULTS = 6
"""In one run."""
FROZEN_S = (0.5, 4.0)
LEAST_STATEMENTS = 8
LONGEST = 5
"""So many times as long as asked a run goes on at most, until there are enough statements and rewrites."""
POLICY = f"target-file-size={TARGET_BYTES // 1024}kb,min-input-files=2,fan-in=2,max-job-wait=off,dml-policy=always"
"""Ours: beside DELETE and MERGE is where rewriting is dangerous, and nearly every commit makes work."""


class Lab:
    """Holds the parts of one run; `rival` None: the control."""

    def __init__(self, rival: Rival | None, place: Place, seed: int) -> None:
        self.rival, self.place, self.home = rival, place, place.home
        self.random, self._seed = Random(seed), seed
        self.seen = Seen()
        self.workers: list[str] = []
        self._begun_s: dict[str, float] = {}
        self._killed_at = 0

    def run(self, seconds: float) -> Seen:
        """Run everything; processes are ended whatever happens."""
        try:
            self.create()
            if self.rival is not None:
                self.workers = list(self.rival.begin(self.place, self._seed))
                self._begun_s = {name: self._used_s(name) for name in (*self.workers, *self.rival.services())}
            self.start_writers()
            self._work(seconds)
            for name in (*self.workers, *(self.rival.services() if self.rival else ())):
                self.seen.cpu_s += self._used_s(name) - self._begun_s.get(name, 0.0)
            for name in ("stop", "end"):
                (self.home.folder / name).touch()
            self.end_writers()
        finally:
            self.home.stack.close()
        self.judge()
        if self.rival is not None:
            for process in self.home.stack.processes:
                if process.name in self.workers:
                    self.seen.failures += self.rival.failures(process.log.read_text(errors="replace"))
        return self.seen

    def create(self) -> None:
        """Create the tables."""
        raise NotImplementedError

    def start_writers(self) -> None:
        """Start the writers, and wait until they write."""
        raise NotImplementedError

    def end_writers(self) -> None:
        """Wait for the writers, who see that `stop` is there."""
        raise NotImplementedError

    def look(self) -> None:
        """Compare one reader on one table at its newest version."""
        raise NotImplementedError

    def statements(self) -> int:
        """Return how many statements of writers were answered, as of the last look."""
        raise NotImplementedError

    def rewrites(self) -> int:
        """Return how many commits of a compactor there are, as of the last look."""
        raise NotImplementedError

    def faults_of_writers(self) -> Sequence[Callable[[], None]]:
        """Return what may be done to writers."""
        return ()

    def judge(self) -> None:
        """Compare all readers on all tables, when no one writes any more, and fill in what was seen."""
        raise NotImplementedError

    def _work(self, seconds: float) -> None:
        began = time.monotonic()
        due = [(number + self.random.random()) * seconds / FAULTS for number in range(FAULTS)]
        while (elapsed := time.monotonic() - began) < seconds or (self._is_idle and elapsed < LONGEST * seconds):
            self._start_again()
            self.look()
            if due and elapsed > due[0]:
                due.pop(0)
                self._harm()
            time.sleep(CHECK_S)

    def _start_again(self) -> None:
        """Start again what ended by itself."""
        self.home.start_again()
        for name in self.workers:
            if self.rival and not self.home.running[name].alive:
                self.rival.start_again(self.place, name)
                self.seen.faults["compactor ended by itself"] += 1

    @property
    def _is_idle(self) -> bool:
        rewrites = LEAST_REWRITES if self.rival and self.rival.rewrites else 0
        return self.statements() < LEAST_STATEMENTS or self.rewrites() < rewrites

    def _harm(self) -> None:
        """Harm a writer or a worker.

        Workers are left alone until all of them work, and are not killed again before a rewrite: they would only start.
        """
        kinds = [*self.faults_of_writers()]
        rival = self.rival
        if rival and self.workers and all(rival.is_ready(self.place, name) for name in self.workers):
            kinds += [self._freeze_worker]
            kinds += [self._kill_worker] if self.rewrites() > self._killed_at or not rival.rewrites else []
        if kinds:
            self.random.choice(kinds)()

    def _kill_worker(self) -> None:
        assert self.rival is not None
        name = self.random.choice(self.workers)
        self.seen.cpu_s += self._used_s(name) - self._begun_s.pop(name, 0.0)
        self._killed_at = self.rewrites()
        self.home.kill(name)
        self.rival.start_again(self.place, name)
        self.seen.faults["compactor killed"] += 1

    def _freeze_worker(self) -> None:
        name = self.random.choice(self.workers)
        self.home.signal(name, SIGSTOP)
        time.sleep(self.random.uniform(*FROZEN_S))
        self.home.signal(name, SIGCONT)
        self.seen.faults["compactor frozen"] += 1

    def _used_s(self, name: str) -> float:
        return tree_cpu_s(self.home.running[name].popen.pid)
