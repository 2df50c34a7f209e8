"""What the services of a soak use of memory over its time, as figures and as a picture."""

from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

import psutil
from redis import RedisError

from tests.soak.household import Household
from tests.support.line_chart import Line, draw

MIB = 1 << 20
DECIDER, ACTOR, REDIS = "decider", "largest actor, with its JVM", "Redis, data"


@dataclass(slots=True)
class Memory:
    """Resident MiB by service: a process with all that it started; of Redis what its data takes."""

    home: Household
    samples: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def sample(self, elapsed_s: float) -> None:
        """Note what is used now; a service that is away is left out."""
        running = dict(self.home.running)
        found = {DECIDER: [running["decider"].popen.pid] if "decider" in running else []}
        found[ACTOR] = [running[name].popen.pid for name in self.home.actors()]
        for what, pids in found.items():
            sizes = [size for pid in pids if (size := _resident_bytes(pid))]
            if sizes:
                self._note(what, elapsed_s, max(sizes))
        with suppress(RedisError), self.home.stack.redis.client() as client:
            self._note(REDIS, elapsed_s, int(client.info("memory")["used_memory"]))

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the medians of the second and of the last quarter of the run in MiB, and the most."""
        return {what: _trend(samples) for what, samples in self.samples.items() if samples}

    def picture(self) -> str:
        """Return the curves as SVG text."""
        lines = [Line(what, samples) for what, samples in self.samples.items()]
        return draw("Memory of Lakewright in a soak", lines, unit="MiB")

    def _note(self, what: str, elapsed_s: float, size: int) -> None:
        self.samples.setdefault(what, []).append((round(elapsed_s, 1), round(size / MIB, 1)))


def _resident_bytes(pid: int) -> int:
    """Return what a process and its descendants hold; 0 once it is gone."""
    try:
        process = psutil.Process(pid)
        return sum(int(one.memory_info().rss) for one in (process, *process.children(recursive=True)))
    except psutil.Error:
        return 0


def _trend(samples: list[tuple[float, float]]) -> dict[str, float]:
    last_s = samples[-1][0]
    quarters = [
        [size for at, size in samples if low * last_s <= at <= high * last_s] for low, high in ((0.25, 0.5), (0.75, 1))
    ]
    second, last = (round(median(sizes), 1) if sizes else 0.0 for sizes in quarters)
    return {"second_quarter_mib": second, "last_quarter_mib": last, "most_mib": max(size for _, size in samples)}
