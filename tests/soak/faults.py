"""What is done to Lakewright while it works: kill -9, pauses at random and at labelled points, a full disk.

Services are replaced, too, by another version if there is one, and actors come and go.
"""

import errno
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.soak.disk import Balloon
from tests.soak.household import ACTORS, DELTALAKE_WRITERS, LEASE_S, START_S, Household
from tests.support.waiting import until

POINT_S = 25.0
"""How long a request waits for an actor to come by its point."""
FULL_S = 10.0
"""How long the disk stays full."""
TOP_UP_EVERY_S = 0.2
"""Between two checks whether someone freed something on the full disk."""


@dataclass(slots=True)
class Faults:
    """Harms the household, one fault after another, until asked to stop. `done`: how often, `not_shown`: why not."""

    home: Household
    random: Random
    balloon: Balloon | None
    done: Counter[str] = field(default_factory=Counter)
    not_shown: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    full: tuple[float, float] | None = None
    _round: list[Callable[[], None]] = field(default_factory=list)

    def run(self, pause_s: float) -> None:
        """Do faults in a random order, every kind before any comes again, with a pause of about `pause_s` between."""
        while not self.stop.wait(self.random.uniform(0.5, 1.5) * pause_s):
            if not self._round:
                self._round = self._kinds()
                self.random.shuffle(self._round)
            fault = self._round.pop()
            with self.home.lock:
                self._try(fault)

    def fill_disk(self) -> None:
        """Fill the tables' disk for a while, and give the room back."""
        if self.balloon is None:
            return
        try:
            for _ in range(round(FULL_S / TOP_UP_EVERY_S)):
                self.balloon.fill()
                if self.stop.wait(TOP_UP_EVERY_S):
                    break
        finally:
            self.balloon.release()
        self.done["disk filled"] += 1

    def _kinds(self) -> list[Callable[[], None]]:
        if not self.home.with_lakewright:
            return [self._kill_writer]
        return [
            self._kill_writer,
            self._kill_actor,
            lambda: self._kill_actor_at("files_written"),
            lambda: self._kill_actor_at("committed"),
            lambda: self._pause_actor_at("files_written"),
            self._freeze_actor,
            self._kill_decider,
            self._pause_decider,
            self._kill_redis,
            self._replace_decider,
            self._replace_actor,
            self._scale_actors,
        ]

    def _try(self, fault: Callable[[], None]) -> None:
        try:
            fault()
        except Exception as problem:  # noqa: BLE001 - a fault that cannot be done, or a service that does not come back
            self.failures.append(f"{type(problem).__name__}: {problem}"[:500])

    def _kill_writer(self) -> None:
        name = self.random.choice(DELTALAKE_WRITERS)
        self.home.kill(name)
        self.home.start_writer(name)
        self.done["writer killed"] += 1

    def _kill_actor(self) -> None:
        name = self.random.choice(self.home.actors())
        self.home.kill(name)
        self.home.start_actor(name)
        self.done["actor killed"] += 1

    def _kill_actor_at(self, point: str) -> None:
        if name := self._stopped_at(point):
            self.home.kill(name)
            self.home.start_actor(name)
            self.done[f"actor killed at {point}"] += 1

    def _pause_actor_at(self, point: str) -> None:
        """Beyond its lease: the other actor has the job by then, and what this one wrote must not be committed."""
        if name := self._stopped_at(point):
            self.stop.wait(LEASE_S + self.random.uniform(1, 6))
            self.home.signal(name, signal.SIGCONT)
            self.done[f"actor paused at {point}"] += 1

    def _freeze_actor(self) -> None:
        """With its JVM, wherever both are: even in the middle of a commit."""
        name = self.random.choice(self.home.actors())
        self.home.signal(name, signal.SIGSTOP)
        self.stop.wait(self.random.uniform(0.5, 2 * LEASE_S))
        self.home.signal(name, signal.SIGCONT)
        self.done["actor frozen"] += 1

    def _kill_decider(self) -> None:
        self.home.kill("decider")
        self.home.start_decider()
        self.done["decider killed"] += 1

    def _pause_decider(self) -> None:
        self.home.signal("decider", signal.SIGSTOP)
        self.stop.wait(self.random.uniform(1, 8))
        self.home.signal("decider", signal.SIGCONT)
        self.done["decider paused"] += 1

    def _kill_redis(self) -> None:
        redis = self.home.stack.redis
        redis.kill()
        self.stop.wait(self.random.uniform(0, 3))
        redis.start()
        self.done["redis killed"] += 1

    def _replace_decider(self) -> None:
        """As an upgrade or a rollback does it; events that are posted meanwhile are refused."""
        self.home.retire("decider")
        self.home.start_decider()
        self.done["decider replaced"] += 1

    def _replace_actor(self) -> None:
        """As an upgrade or a rollback does it: the new one takes jobs before the old one is asked to end."""
        new = self._absent()
        if new is None:
            return
        old = self.random.choice(self.home.actors())
        self.home.start_actor(new)
        until("the new actor takes jobs", lambda: self.home.is_ready(new), seconds=START_S)
        self.home.retire(old)
        self.done["actor replaced"] += 1

    def _scale_actors(self) -> None:
        """Add an actor, or retire one where there are several."""
        there, new = self.home.actors(), self._absent()
        if new is None or (len(there) > 1 and self.random.random() < 0.5):
            self.home.retire(self.random.choice(there))
            self.done["actor retired"] += 1
        else:
            self.home.start_actor(new)
            self.done["actor added"] += 1

    def _absent(self) -> str | None:
        return next((name for name in ACTORS if name not in self.home.running), None)

    def _stopped_at(self, point: str) -> str | None:
        """Return the actor that stands still at a point, None if none came by in time."""
        request = self.home.folder / f"halt-{point}"
        request.touch()
        for _ in range(round(POINT_S / 0.1)):
            if not request.exists() or self.stop.wait(0.1):
                break
        try:
            request.unlink()
        except FileNotFoundError:
            (taken,) = self.home.folder.glob(f"taken-{request.name}-*")
            name = taken.name.rpartition("-")[2].partition("_")[0]
            until("the actor stands still", lambda: self.home.is_stopped(name), seconds=10)
            taken.unlink()
            return name
        if not self.stop.is_set():
            self.not_shown.append(f"no actor came by {point} within {POINT_S:g} s")
        return None


def is_no_space(error: str) -> bool:
    """Whether an error tells of a full disk."""
    return os.strerror(errno.ENOSPC).lower() in error.lower()
