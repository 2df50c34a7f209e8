"""Orders of dispatch over a simulated lake: `python -m tests.bench.fleet [--tables 1000] [--slots 2] [--seeds 1 2]`."""

import argparse
import sys
from contextlib import ExitStack
from statistics import quantiles

from rich.console import Console
from rich.table import Table

from tests.bench.fleet.queue_order import queue_order
from tests.bench.fleet.simulation import ORDERS, OURS, TENANTS, Dispatcher, InMemory, simulate


def main() -> None:
    """Print one row for each order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--orders", nargs="+", default=[OURS, *ORDERS], choices=[OURS, *ORDERS], metavar="ORDER")
    asked = parser.parse_args()
    with ExitStack() as stack:
        orders: dict[str, Dispatcher] = {name: InMemory(order) for name, order in ORDERS.items()}
        if OURS in asked.orders:
            orders[OURS] = stack.enter_context(queue_order())
        for seed in asked.seeds:
            _print(asked.tables, asked.slots, seed, {name: orders[name] for name in asked.orders})
            sys.stdout.flush()


def _print(tables: int, slots: int, seed: int, orders: dict[str, Dispatcher]) -> None:
    nothing, _ = simulate(tables, seed, slots, None)
    table = Table(box=None, pad_edge=False, title=f"{tables} tables, {slots} slots, seed {seed}")
    for column in ("order", "opens avoided", "per CPU s", "jobs", "wait p50 s", "p99 s", "worst s", "largest lag GiB"):
        table.add_column(column, justify="left" if column == "order" else "right")
    for name, order in orders.items():
        done, lake = simulate(tables, seed, slots, order)
        cuts = quantiles(done.waits_s, n=100)
        avoided = nothing.opened - done.opened
        behind = [lake.tenant_start[one] for one in range(TENANTS) if lake.waiting.get(one)]
        table.add_row(
            name,
            f"{avoided / nothing.opened:.1%}",
            f"{avoided / done.cpu_s:,.0f}",
            f"{len(done.waits_s):,}",
            f"{cuts[49]:,.0f}",
            f"{cuts[98]:,.0f}",
            f"{max(*done.waits_s, done.left_waiting_s):,.0f}",
            f"{(max(behind) - min(behind)) / (1 << 30):.2f}" if len(behind) > 1 else "-",
        )
    Console(width=140, highlight=False).print(table)


if __name__ == "__main__":
    main()
