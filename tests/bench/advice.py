"""Advice against what is known: `python -m tests.bench.advice [--tables 200] [--json FILE]`; no Spark, no Redis.

Ten recorded histories: the best of every combination of settings is searched, and compared with what is advised. What
is predicted from the recorded part is compared with a replay of the commits that follow. Then tables with Zipf numbers
of commits are analyzed, their logs read from disk, for the CPU time that a lake takes.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from decider.advice.analysis import MIN_SAVED_S_PER_DAY, MIN_SAVED_SHARE, analyze, cost_s
from decider.background.auto_analyze import MAX_COMMITS
from decider.formats.registry import table_formats
from decider.formats.table_format import StorageAccess
from decider.state.effective_policy import resolve_unregistered
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from decider.whatif.comparison import CostModel
from decider.whatif.trace_reader import read_history
from shared.paths.store_options import StoreOptions
from shared.policy.policy import KIB, Policy, apply
from shared.policy.properties import as_properties, read_settings
from shared.table import TableId
from tests.support.advised_histories import HISTORIES, AdvisedHistory, AdvisedLog, Process, every_policy, write

NIGHT_S = 8 * 3_600
NIGHT_TABLES = 10_000
CLOSE = 1.01
"""Two settings whose costs differ by less than a hundredth are equally good."""


@dataclass(frozen=True, slots=True)
class Advised:
    """One history: costs in core-seconds, of the settings in effect, the best ones, and the advised ones.

    `predicted` is the promised share of the cost, `replayed` the share that is saved over the commits that follow.
    """

    name: str
    policies: int
    present_s: float
    best_s: float
    advised_s: float
    change: dict[str, str]
    predicted: float
    replayed: float
    is_worth_advice: bool

    @property
    def is_right(self) -> bool:
        """Whether the best was advised, or nothing where nothing is worth it."""
        return self.advised_s <= self.best_s * CLOSE if self.is_worth_advice else not self.change


def examine(one: AdvisedHistory) -> Advised:
    """Search the best setting of a history, and compare it with the advice."""
    trace, following, prices = one.trace, one.following, CostModel(tail_hours=0.0)
    policy = one.policy
    now_ms = trace.history.commits[-1].timestamp_ms
    in_force = resolve_unregistered(Policy(), as_properties(one.present), {})
    advice = analyze(TableId(one.name), trace, in_force, prices, now_ms, lambda _: None)
    every = every_policy(policy)
    present_s, best_s = cost_s(trace.history, policy, prices), min(cost_s(trace.history, p, prices) for p in every)
    saved_s_per_day = (present_s - best_s) / (now_ms / 3_600_000) * 24
    is_worth = best_s <= (1 - MIN_SAVED_SHARE) * present_s and saved_s_per_day >= MIN_SAVED_S_PER_DAY
    if advice is None:
        return Advised(one.name, len(every), present_s, best_s, present_s, {}, 0.0, 0.0, is_worth)
    then = apply(policy, read_settings(advice.change))
    replayed = 1 - cost_s(following, then, prices) / cost_s(following, policy, prices)
    advised_s, share = advice.proof.advised.cost_s, advice.proof.saved_share
    return Advised(one.name, len(every), present_s, best_s, advised_s, dict(advice.change), share, replayed, is_worth)


@dataclass(frozen=True, slots=True)
class Fleet:
    """CPU time of analyzing tables, in seconds; `night_share`: of one core, for 10,000 tables in eight hours."""

    tables: int
    advised: int
    commits: int
    read_s: float
    analyze_s: float
    longest_s: float

    @property
    def night_share(self) -> float:
        """Share of one core that 10,000 such tables take for a night."""
        return (self.read_s + self.analyze_s) / self.tables * NIGHT_TABLES / NIGHT_S


def processes(tables: int) -> list[tuple[Process, int]]:
    """Return what writes each table, and its number of commits: Zipf, from the most that are replayed downwards."""
    dice = random.Random(17)
    found = []
    for rank in range(1, tables + 1):
        median = int(KIB * dice.choice((64, 256, 1024, 4096, 32768)))
        every = dice.choice((5, 15, 30, 60))
        process = Process(dice.randint(1, 8), median, dice.uniform(0.2, 1.2), every, dice.randint(12, 60), 5, 0.2)
        found.append((process, max(20, round(20 * MAX_COMMITS / rank))))
    return [(process, min(commits, MAX_COMMITS)) for process, commits in found]


def measure(tables: int, folder: Path) -> Fleet:
    """Write the logs of so many tables, then read and analyze each as the decider does."""
    for number, (process, commits) in enumerate(processes(tables)):
        AdvisedLog(folder / str(number)).write(write(process, number, commits))
    formats = table_formats(StorageAccess(ReadMeter(), ObjectStores(StoreOptions())), None)
    in_force = resolve_unregistered(Policy(), {}, {})
    advised = commits = 0
    read_s = analyze_s = longest_s = 0.0
    for number in range(tables):
        started_s = time.process_time()
        trace = asyncio.run(read_history(formats.open(f"file://{folder}/{number}"), max_commits=MAX_COMMITS))
        read_at_s = time.process_time()
        now_ms = trace.history.commits[-1].timestamp_ms + 3_600_000
        found = analyze(TableId(str(number)), trace, in_force, CostModel(), now_ms, lambda _: None)
        took_s = time.process_time() - read_at_s
        read_s, analyze_s, longest_s = read_s + read_at_s - started_s, analyze_s + took_s, max(longest_s, took_s)
        advised, commits = advised + (found is not None), commits + len(trace.history.commits)
    return Fleet(tables, advised, commits, read_s, analyze_s, longest_s)


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    out = Console(width=150)
    shown = Table(box=None, pad_edge=False)
    for title in ("history", "policies", "in effect", "best", "advised", "predicted", "replayed", "right", "change"):
        shown.add_column(title)
    found = []
    for history in HISTORIES:
        one = examine(history)
        found.append(one)
        shares = (f"{one.predicted:.1%}", f"{one.replayed:.1%}") if one.change else ("-", "-")
        costs = (f"{one.present_s:,.1f}", f"{one.best_s:,.1f}", f"{one.advised_s:,.1f}")
        change = " ".join(f"{name.removeprefix('lakewright.')}={value}" for name, value in one.change.items())
        shown.add_row(one.name, str(one.policies), *costs, *shares, "yes" if one.is_right else "NO", change or "none")
    out.print(shown)
    with tempfile.TemporaryDirectory() as folder:
        fleet = measure(asked.tables, Path(folder))
    out.print(
        f"{fleet.tables} tables with {fleet.commits:,} commits: {fleet.read_s:.1f} s to read, {fleet.analyze_s:.1f} s "
        f"to replay, at most {fleet.longest_s:.1f} s for one; {fleet.advised} get advice. {NIGHT_TABLES:,} tables in "
        f"eight hours take {fleet.night_share:.0%} of a core."
    )
    if asked.json:
        asked.json.write_text(
            json.dumps({"histories": [asdict(one) for one in found], "fleet": asdict(fleet)}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
