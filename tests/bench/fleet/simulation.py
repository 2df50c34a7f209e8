"""A simulated lake and the orders in which its tables are served.

Tables are written and read by Zipf's law, each on its own, so that those written most are not those read most. Slots
are scarce: the jobs need more time than there is. An order is good if readers have to open few small files for the CPU
time that rewriting took; what it must keep is fairness between tenants and a bound on the wait. Everything is seeded.
`Lakewright` is the queue itself: its own scripts on a real server, with a clock turned by hand (`queue_order`). The
other orders are computed in memory; `fair tables` is the order that the queue had before, with one job per table.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

MIB = 1 << 20
FIXED_BYTES, BYTES_PER_S = 8 * MIB, 50 * MIB
"""As in the decider's priority and in what-if: cost of an empty job, and what a core rewrites in a second."""

MIN_INPUTS = 8
JOB_BYTES = 16 << 30
"""Bytes of a job at most, as `max-bytes-per-job`."""

TENANTS = 20
EXPONENT = 1.1
HOURS = 6
SLACK_BYTES = 1 << 30
"""By how much a table may be ahead of the others of its tenant in service and still be chosen for its benefit."""

OLDEST_EVERY = 8
"""Of so many choices within a tenant, one goes to its table that has waited longest."""


@dataclass(slots=True)
class LakeTable:
    """One table: who owns it, how it is written and read, and the small files that wait to be merged."""

    tenant: int
    commits_per_s: float
    reads_per_s: float
    file_bytes: int
    files: int = 0
    oldest_s: float = 0.0
    eligible_s: float = -1.0
    optimized_s: float = 0.0
    served_bytes: float = 0.0
    finish_tag: float = 0.0
    start_tag: float = 0.0

    @property
    def inputs(self) -> int:
        """Number of files that its next job rewrites."""
        return min(self.files, max(2, JOB_BYTES // self.file_bytes))

    @property
    def cost_bytes(self) -> int:
        return FIXED_BYTES + self.inputs * self.file_bytes

    @property
    def benefit_per_byte(self) -> float:
        return (self.inputs - 1) * self.reads_per_s / self.cost_bytes


@dataclass(slots=True)
class Lake:
    """All tables, those that wait for a slot, and the virtual times of fair queueing: of the root and each tenant."""

    tables: list[LakeTable]
    waiting: dict[int, set[int]] = field(default_factory=dict)
    virtual: list[float] = field(default_factory=lambda: [0.0] * TENANTS)
    tenant_start: list[float] = field(default_factory=lambda: [0.0] * TENANTS)
    tenant_finish: list[float] = field(default_factory=lambda: [0.0] * TENANTS)
    root: float = 0.0
    choices: list[int] = field(default_factory=lambda: [0] * TENANTS)

    def enqueue(self, number: int, now_s: float) -> None:
        table = self.tables[number]
        table.eligible_s = now_s
        table.start_tag = max(self.virtual[table.tenant], table.finish_tag)
        if not self.waiting.get(table.tenant):
            self.tenant_start[table.tenant] = max(self.root, self.tenant_finish[table.tenant])
        self.waiting.setdefault(table.tenant, set()).add(number)

    def fair_tenant(self) -> int:
        return min((one for one in self.waiting if self.waiting[one]), key=lambda one: (self.tenant_start[one], one))

    def all_waiting(self) -> list[int]:
        return [number for numbers in self.waiting.values() for number in numbers]

    def take(self, number: int) -> LakeTable:
        table = self.tables[number]
        tenant, cost = table.tenant, table.cost_bytes
        self.waiting[tenant].remove(number)
        self.virtual[tenant] = max(self.virtual[tenant], table.start_tag)
        table.finish_tag = table.start_tag + cost
        self.root = max(self.root, self.tenant_start[tenant])
        self.tenant_start[tenant] = self.tenant_finish[tenant] = self.tenant_start[tenant] + cost
        table.served_bytes += cost
        return table


Order = Callable[[Lake, float], int]


class Dispatcher(Protocol):
    """Who decides which table is next, and is told what happens."""

    def requested(self, lake: Lake, number: int, now_s: float) -> None:
        """A table begins to wait for a slot, or gets more files while it waits."""

    def next_table(self, lake: Lake, now_s: float) -> int:
        """Return the number of the table that gets the free slot."""
        ...

    def ended(self, lake: Lake, number: int, now_s: float) -> None:
        """The job of a table has ended."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """An order that looks at the tables themselves."""

    order: Order

    def requested(self, lake: Lake, number: int, now_s: float) -> None:
        """Nothing to keep."""

    def next_table(self, lake: Lake, now_s: float) -> int:
        """The first by this order."""
        return self.order(lake, now_s)

    def ended(self, lake: Lake, number: int, now_s: float) -> None:
        """Nothing to keep."""


def fair_tables(lake: Lake, _now_s: float) -> int:
    """Fair among tenants, then fair among the tenant's tables."""
    return min(lake.waiting[lake.fair_tenant()], key=lambda n: (lake.tables[n].start_tag, n))


def fifo(lake: Lake, _now_s: float) -> int:
    """The table that has waited longest for a slot."""
    return min(lake.all_waiting(), key=lambda n: (lake.tables[n].eligible_s, n))


def oldest(lake: Lake, _now_s: float) -> int:
    """The table with the oldest small file."""
    return min(lake.all_waiting(), key=lambda n: (lake.tables[n].oldest_s, n))


def amoro_quota(lake: Lake, _now_s: float) -> int:
    """Amoro's quota: the table that has used least of an equal quota."""
    return min(lake.all_waiting(), key=lambda n: (lake.tables[n].served_bytes, n))


def amoro_balanced(lake: Lake, _now_s: float) -> int:
    """Amoro's balanced: the table that was not optimized for longest."""
    return min(lake.all_waiting(), key=lambda n: (lake.tables[n].optimized_s, n))


def benefit(*, slack_bytes: float, oldest_every: int = 0) -> Order:
    """Fair among tenants; of a tenant's tables that are not too far ahead, the one of most benefit per byte."""

    def choose(lake: Lake, _now_s: float) -> int:
        tenant = lake.fair_tenant()
        mine = lake.waiting[tenant]
        lake.choices[tenant] += 1
        if oldest_every and lake.choices[tenant] % oldest_every == 0:
            return min(mine, key=lambda n: (lake.tables[n].eligible_s, n))
        least = min(lake.tables[n].start_tag for n in mine)
        near = [n for n in mine if lake.tables[n].start_tag <= least + slack_bytes]
        return max(near, key=lambda n: (lake.tables[n].benefit_per_byte, -n))

    return choose


def benefit_everywhere(lake: Lake, _now_s: float) -> int:
    """Most benefit per byte wherever it lies, without fairness: the bound of what any order can reach at once."""
    return max(lake.all_waiting(), key=lambda n: (lake.tables[n].benefit_per_byte, -n))


OURS = "Lakewright"
ORDERS: dict[str, Order] = {
    "fair tables": fair_tables,
    "fifo": fifo,
    "oldest first": oldest,
    "Amoro quota": amoro_quota,
    "Amoro balanced": amoro_balanced,
    "benefit, fair tenants, slack 1 GiB": benefit(slack_bytes=SLACK_BYTES),
    "benefit, fair tenants": benefit(slack_bytes=float("inf")),
    "benefit, fair tenants, oldest every 8": benefit(slack_bytes=float("inf"), oldest_every=OLDEST_EVERY),
    "benefit everywhere, no fairness": benefit_everywhere,
}


def build(count: int, seed: int) -> Lake:
    """Draw the tables."""
    dice = Random(seed)
    rates = [1 / (rank + 1) ** EXPONENT for rank in range(count)]
    writes, reads = dice.sample(rates, count), dice.sample(rates, count)
    tables = [
        LakeTable(
            dice.choices(range(TENANTS), [1 / (tenant + 1) for tenant in range(TENANTS)])[0],
            0.002 + write * 2,
            read * 10,
            int(2 * MIB * dice.lognormvariate(0, 1)),
        )
        for write, read in zip(writes, reads, strict=True)
    ]
    return Lake(tables)


@dataclass(slots=True)
class Outcome:
    """Files that readers opened, CPU seconds, waits in seconds, and the share of service of each tenant that waited."""

    opened: float = 0.0
    cpu_s: float = 0.0
    waits_s: list[float] = field(default_factory=list)
    left_waiting_s: float = 0.0


def simulate(count: int, seed: int, slots: int, order: Dispatcher | None) -> tuple[Outcome, Lake]:
    """Run a lake for some hours under an order; None: nothing is rewritten. A table has one job at a time."""
    lake, dice, done = build(count, seed), Random(seed + 1), Outcome()
    end_s = HOURS * 3600.0
    events = [(dice.expovariate(table.commits_per_s), 0, number) for number, table in enumerate(lake.tables)]
    heapq.heapify(events)
    free = slots
    opened_until, running = [0.0] * count, set[int]()
    while events and events[0][0] < end_s:
        now_s, is_end, number = heapq.heappop(events)
        table = lake.tables[number]
        if is_end:
            free += 1
            running.remove(number)
            if order is not None:
                order.ended(lake, number, now_s)
        else:
            done.opened += table.files * table.reads_per_s * (now_s - opened_until[number])
            opened_until[number] = now_s
            table.oldest_s = table.oldest_s if table.files else now_s
            table.files += dice.randint(1, 4)
            heapq.heappush(events, (now_s + dice.expovariate(table.commits_per_s), 0, number))
        if order is not None and table.files >= MIN_INPUTS and number not in running:
            if number not in lake.waiting.get(table.tenant, ()):
                lake.enqueue(number, now_s)
            order.requested(lake, number, now_s)
        while free and order is not None and any(lake.waiting.values()):
            chosen = order.next_table(lake, now_s)
            taken = lake.take(chosen)
            took_s = taken.cost_bytes / BYTES_PER_S
            done.waits_s.append(now_s - taken.eligible_s)
            done.cpu_s += took_s
            done.opened += taken.files * taken.reads_per_s * (now_s - opened_until[chosen])
            opened_until[chosen] = now_s
            taken.files, taken.optimized_s = taken.files - taken.inputs + 1, now_s
            running.add(chosen)
            free -= 1
            heapq.heappush(events, (now_s + took_s, 1, chosen))
    for number, table in enumerate(lake.tables):
        done.opened += table.files * table.reads_per_s * (end_s - opened_until[number])
    done.left_waiting_s = max((end_s - lake.tables[n].eligible_s for n in lake.all_waiting()), default=0.0)
    return done, lake
