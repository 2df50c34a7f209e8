"""Fair queueing against first come, first served, in numbers: the same arrivals under both, and each job's dwell.

Tenants arrive by Zipf's law, so that few have most of the jobs; the rule is that of the queue (start-time fair
queueing), computed in memory. Nothing is sent to a queue.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import quantiles


@dataclass(frozen=True, slots=True)
class ArrivalLoad:
    """What arrives; `load` is the share of the slots' time that all jobs together need."""

    tenants: int = 8
    jobs: int = 4_000
    slots: int = 4
    exponent: float = 1.2
    load: float = 0.95
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job: when it comes, whose it is, and how long it takes, in seconds."""

    at_s: float
    tenant: int
    takes_s: float


@dataclass(frozen=True, slots=True)
class SojournTimes:
    """Seconds from arrival to end of one tenant's jobs under one rule; `jobs` counts them."""

    jobs: int

    p50_s: float
    p95_s: float


@dataclass(frozen=True, slots=True)
class SimulatedQueue:
    """One rule's result.

    jain: Jain's index of what each tenant got of its max-min fair share, in the first half of the work when all jobs
    come at once; 1 if each got its share.
    """

    dwell: tuple[SojournTimes, ...]
    jain: float


def arrivals(load: ArrivalLoad) -> tuple[Arrival, ...]:
    """Draw the jobs: Poisson arrivals, tenants by Zipf's law, exponential times with a mean of one second."""
    random = Random(load.seed)  # noqa: S311 - a simulation
    weights = [1 / (rank + 1) ** load.exponent for rank in range(load.tenants)]
    at_s, drawn = 0.0, []
    for tenant in random.choices(range(load.tenants), weights, k=load.jobs):
        at_s += random.expovariate(load.slots * load.load)
        drawn.append(Arrival(at_s, tenant, random.expovariate(1.0)))
    return tuple(drawn)


Served = list[tuple[float, Arrival]]
"""Each job with the second at which it began."""


def outcome(
    load: ArrivalLoad, jobs: Sequence[Arrival], rule: Callable[[ArrivalLoad, Sequence[Arrival]], Served]
) -> SimulatedQueue:
    """Serve the jobs under a rule, as they come and all at once, and measure."""
    dwell: dict[int, list[float]] = defaultdict(list)
    for began_s, job in rule(load, jobs):
        dwell[job.tenant].append(began_s + job.takes_s - job.at_s)
    at_once = rule(load, [Arrival(0.0, job.tenant, job.takes_s) for job in jobs])
    return SimulatedQueue(tuple(_dwell(dwell[tenant]) for tenant in range(load.tenants)), _jain(load, at_once))


def fifo(load: ArrivalLoad, jobs: Sequence[Arrival]) -> Served:
    """Serve in the order of arrival."""
    waiting: deque[Arrival] = deque()
    return _served(load, jobs, waiting.append, lambda: waiting.popleft() if waiting else None)


def fair(load: ArrivalLoad, jobs: Sequence[Arrival]) -> Served:
    """Serve the tenant with the least start tag, as the queue does."""
    waiting: dict[int, deque[Arrival]] = defaultdict(deque)
    finish: dict[int, float] = defaultdict(float)
    tags: dict[int, float] = {}
    now = [0.0]

    def put(job: Arrival) -> None:
        waiting[job.tenant].append(job)
        tags.setdefault(job.tenant, max(now[0], finish[job.tenant]))

    def take() -> Arrival | None:
        if not tags:
            return None
        tenant = min(tags, key=lambda one: (tags[one], one))
        job = waiting[tenant].popleft()
        now[0] = tags.pop(tenant)
        finish[tenant] = now[0] + job.takes_s
        if waiting[tenant]:
            tags[tenant] = finish[tenant]
        return job

    return _served(load, jobs, put, take)


def _served(
    load: ArrivalLoad, jobs: Sequence[Arrival], put: Callable[[Arrival], None], take: Callable[[], Arrival | None]
) -> Served:
    free = [0.0] * load.slots
    served: Served = []
    coming = deque(jobs)
    for _ in jobs:
        now_s = heapq.heappop(free)
        while coming and coming[0].at_s <= now_s:
            put(coming.popleft())
        job = take()
        if job is None:
            now_s = coming[0].at_s
            put(coming.popleft())
            job = take()
        if job is None:
            raise AssertionError("a job that was put can be taken")
        served.append((now_s, job))
        heapq.heappush(free, now_s + job.takes_s)
    return served


def _jain(load: ArrivalLoad, served: Served) -> float:
    """Compare what each tenant got in the first half of the work with its max-min fair share of that half."""
    demand, got = [0.0] * load.tenants, [0.0] * load.tenants
    half = sum(job.takes_s for _, job in served) / 2
    given = 0.0
    for _, job in served:
        demand[job.tenant] += job.takes_s
        if given < half:
            got[job.tenant] += job.takes_s
            given += job.takes_s
    left, shares = half, [0.0] * load.tenants
    for place, tenant in enumerate(sorted(range(load.tenants), key=demand.__getitem__)):
        shares[tenant] = min(demand[tenant], left / (load.tenants - place))
        left -= shares[tenant]
    ratios = [one / share for one, share in zip(got, shares, strict=True) if share]
    return sum(ratios) ** 2 / (len(ratios) * sum(ratio * ratio for ratio in ratios))


def _dwell(values: Sequence[float]) -> SojournTimes:
    if len(values) < 2:  # noqa: PLR2004 - quantiles need two
        return SojournTimes(len(values), sum(values), sum(values))
    cuts = quantiles(values, n=20)
    return SojournTimes(len(values), cuts[9], cuts[18])
