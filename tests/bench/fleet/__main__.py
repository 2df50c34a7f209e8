"""Orders of dispatch over a simulated lake: `python -m tests.bench.fleet [--tables 1000] [--slots 2] [--seeds 1 2]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import redis
from rich.console import Console
from rich.table import Table

from decider.decide.decision import Prediction
from decider.decide.job_request import priority
from shared.policy.policy import Policy
from shared.queue import commands, keys
from shared.queue.command import Command
from shared.queue.lua_library import ScriptLibrary
from shared.queue.model import Band, Claim, JobKey, JobRequest, RunResult
from tests.bench.fleet.simulation import ORDERS, OURS, TENANTS, Dispatcher, InMemory, simulate
from tests.bench.machine import keep, machine
from tests.support.queue_state import library_with_test_clock
from tests.support.redis_server import RedisServer


def main() -> None:
    """Print one row for each order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--orders", nargs="+", default=[OURS, *ORDERS], choices=[OURS, *ORDERS], metavar="ORDER")
    asked = parser.parse_args()
    with ExitStack() as stack:
        orders: dict[str, Dispatcher] = {name: InMemory(order) for name, order in ORDERS.items()}
        if OURS in asked.orders:
            orders[OURS] = stack.enter_context(queue_order())
        found = {}
        for seed in asked.seeds:
            found[seed] = _print(asked.tables, asked.slots, seed, {name: orders[name] for name in asked.orders})
            sys.stdout.flush()
    keep({**machine(), "avoided_by_seed_and_order": found}, asked.json)


def _print(tables: int, slots: int, seed: int, orders: dict[str, Dispatcher]) -> dict[str, float]:
    """Print a row for each order, and return the share of opens that each avoids."""
    nothing, _ = simulate(tables, seed, slots, None)
    table = Table(box=None, pad_edge=False, title=f"{tables} tables, {slots} slots, seed {seed}")
    for column in ("order", "opens avoided", "per CPU s", "jobs", "wait p50 s", "p99 s", "worst s", "largest lag GiB"):
        table.add_column(column, justify="left" if column == "order" else "right")
    shares = {}
    for name, order in orders.items():
        done, lake = simulate(tables, seed, slots, order)
        cuts = quantiles(done.waits_s, n=100)
        avoided = nothing.opened - done.opened
        shares[name] = avoided / nothing.opened
        behind = [lake.tenant_start[one] for one in range(TENANTS) if lake.waiting.get(one)]
        table.add_row(
            name,
            f"{shares[name]:.1%}",
            f"{avoided / done.cpu_s:,.0f}",
            f"{len(done.waits_s):,}",
            f"{cuts[49]:,.0f}",
            f"{cuts[98]:,.0f}",
            f"{max(*done.waits_s, done.left_waiting_s):,.0f}",
            f"{(max(behind) - min(behind)) / (1 << 30):.2f}" if len(behind) > 1 else "-",
        )
    Console(width=140, highlight=False).print(table)
    return shares


if TYPE_CHECKING:
    from tests.bench.fleet.simulation import Lake, LakeTable

QUEUE = "fleet"
START_MS = 1_700_000_000_000
LEASE_MS = 3_600_000
"""Longer than the longest job of a lake."""


@contextmanager
def queue_order() -> Iterator[QueueOrder]:
    """Start a server and give the order of its queue, which is emptied for each lake."""
    with RedisServer(appendfsync="no") as server, server.client() as client:
        library = library_with_test_clock()
        client.function_load(library.text)
        yield QueueOrder(client, library)


@dataclass(slots=True)
class QueueOrder:
    """Requests, claims and ends of jobs as decider and actor send them; reads are told by `read-weight`.

    A request that changes no step of priority is left out: it would change the estimated cost alone, which the end of
    the run corrects.
    """

    redis: redis.Redis
    library: ScriptLibrary
    lake: Lake | None = None
    steps: dict[int, int] = field(default_factory=dict)
    runs: dict[int, tuple[Claim, int]] = field(default_factory=dict)
    calls: int = 0

    def requested(self, lake: Lake, number: int, now_s: float) -> None:
        """Request the table's job as it would be predicted now."""
        if lake is not self.lake:
            self.redis.flushdb()
            self.lake, self.steps, self.runs = lake, {}, {}
        table = lake.tables[number]
        now = step(table)
        if self.steps.get(number) == now:
            return
        self.steps[number] = now
        key, size = JobKey(f"t{number}", "{}", "compact"), table.inputs * table.file_bytes
        request = JobRequest(key, f"tenant-{table.tenant}", Band.NORMAL, now, size, self.calls)
        self._run(commands.enqueue(QUEUE, request), now_s)

    def next_table(self, lake: Lake, now_s: float) -> int:
        """Claim a job."""
        call = commands.claim(QUEUE, worker="w", nonce=f"n{self.calls}", slots=1, lease_ms=LEASE_MS)
        (claim,) = self._run(call, now_s)
        number = int(claim.key.table.removeprefix("t"))
        del self.steps[number]
        self.runs[number] = claim, lake.tables[number].inputs * lake.tables[number].file_bytes
        return number

    def ended(self, _lake: Lake, number: int, now_s: float) -> None:
        """End its run at what it has cost."""
        claim, size = self.runs.pop(number)
        call = commands.finish(
            QUEUE,
            worker="w",
            nonce=f"n{self.calls}",
            id=claim.id,
            token=claim.token,
            cost_bytes=size,
            run_result=RunResult.DONE,
            seen_version=self.calls,
        )
        self._run(call, now_s)

    def _run(self, call: Command[Any], now_s: float) -> Any:
        """Turn the clock and run the call, in one round trip."""
        self.calls += 1
        pipeline = self.redis.pipeline(transaction=False)
        pipeline.set(keys.prefix(QUEUE) + "test:now_us", START_MS * 1_000 + int(now_s * 1_000_000))
        pipeline.fcall(self.library.function(call.script), len(call.keys), *call.keys, *call.args)
        return call.decode(pipeline.execute()[1])


def step(table: LakeTable) -> int:
    """Return the table's step of priority, as the decider computes it."""
    removed, size = table.inputs - 1, table.inputs * table.file_bytes
    prediction = Prediction(table.inputs, removed, size, Fraction(removed), removed, size)
    return priority(prediction, policy_of(table.reads_per_s))


@cache
def policy_of(reads_per_s: float) -> Policy:
    """Return the policy of a table that is read so often."""
    return replace(Policy(), read_weight=Fraction(round(reads_per_s * 1_000), 1_000))


if __name__ == "__main__":
    main()
