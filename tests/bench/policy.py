"""Policies side by side: `python -m tests.bench.policy [--commits 50000] [--json FILE]`; no Spark, a minute or two.

Four streams of commits are replayed under Lakewright's rule, which is the code that runs in production, and under the
documented rules of others; the offline optimum is computed for our own maximum of small files.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from decider.decide.history import History
from decider.decide.optimum import equal_files, neighbours
from decider.decide.replay import Replayed, replay_lakewright, replay_peer
from decider.decide.rules import PEERS
from shared.policy import KIB, MIB, Policy
from shared.table import Commit
from tests.bench.policy_streams import STREAMS

POLICY = Policy(target_bytes=512 * MIB)
LAG_COMMITS = 2
SAMPLE_FILES = 400
"""Files of the sample on which the optimum of uneven sizes is computed: its dynamic program is cubic."""

SAMPLE_SLOTS = 40
"""Small files that the sample's optimum may hold at most; more change nothing that three digits show."""

COLUMNS = ("rule", "WA", "small mean", "small max", "jobs", "scans", "useless", "replaced / overwrite", "files at end")


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure that has to be shown."""

    what: str
    found: float
    at_most: float

    @property
    def is_met(self) -> bool:
        return self.found <= self.at_most


@dataclass(frozen=True, slots=True)
class Optimum:
    """The optimal write amplification, and ours on the same files (the whole stream, or the sample)."""

    wa: float
    ours_wa: float


def optimum_of(name: str, history: History, ours: Replayed) -> Optimum:
    """Return the optimum with at most as many small files in a cell as we had at any time."""
    target, slots = POLICY.target_bytes, ours.small_max
    match name:
        case "one_mb":
            return Optimum(equal_files(target // MIB, slots) / (target // MIB), ours.wa)
        case "eight_100kb":
            count = -(-target // (8 * 100 * KIB))
            return Optimum(equal_files(count, slots, 8) / (8 * count), ours.wa)
        case _:
            return _sampled(history, slots)


def _sampled(history: History, slots: int) -> Optimum:
    """Merge neighbours optimally in one cell from the middle of the stream, and replay the same files under our rule.

    Full files cost nobody anything and are left out of the program.
    """
    middle = history.commits[len(history.commits) // 2].added[0].cell
    of_cell = (
        replace(commit, added=tuple(file for file in commit.added if file.cell == middle), removed=())
        for commit in history.commits
    )
    commits: list[Commit] = []
    count = 0
    for commit in of_cell:
        if commit.added and count < SAMPLE_FILES:
            commits.append(commit)
            count += len(commit.added)
    sample = History((), tuple(commits))
    sizes = [file.size_bytes for commit in commits for file in commit.added]
    small = [size for size in sizes if size < POLICY.ladder.full_bytes]
    ours = replay_lakewright(sample, POLICY, lag_commits=LAG_COMMITS)
    best = neighbours(small, min(slots, SAMPLE_SLOTS), output_bytes=POLICY.target_bytes)
    return Optimum(best / sum(sizes), ours.wa)


def figures(done: Replayed) -> dict[str, float]:
    return {
        "wa": round(done.wa, 4),
        "small_mean": round(done.small_mean, 2),
        "small_max": done.small_max,
        "jobs": done.jobs,
        "scans": done.scans,
        "useless_scan_share": round(done.useless_scan_share, 5),
        "files_replaced_share": round(done.files_replaced_share, 4),
    }


def run_stream(name: str, commits: int, console: Console) -> tuple[dict[str, Any], Replayed]:
    """Replay one stream under every rule, print the table, and return what the JSON says of it."""
    history = STREAMS[name](commits)
    with console.status(f"{name}: lakewright"):
        ours = replay_lakewright(history, POLICY, lag_commits=LAG_COMMITS)
    peers = []
    for rule in PEERS:
        with console.status(f"{name}: {rule.title}"):
            peers.append(replay_peer(history, POLICY, rule))
    with console.status(f"{name}: optimum"):
        best = optimum_of(name, history, ours)
    table = Table(title=f"{name}: {commits:,} commits", title_justify="left", box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "rule" else "right")
    for done in (ours, *peers):
        table.add_row(
            done.name,
            f"{done.wa:.2f}",
            f"{done.small_mean:.1f}",
            str(done.small_max),
            f"{done.jobs:,}",
            f"{done.scans:,}",
            f"{done.useless_scan_share:.1%}",
            f"{done.files_replaced_share:.1%}",
            f"{done.files_at_end:,}",
        )
    table.add_row(f"optimum, at most {ours.small_max} small", f"{best.wa:.2f}")
    if best.ours_wa != ours.wa:
        table.add_row("lakewright on the optimum's sample", f"{best.ours_wa:.2f}")
    console.print(table)
    found = {
        "optimum_wa": round(best.wa, 4),
        "lakewright_wa_on_the_optimum_sample": round(best.ours_wa, 4),
        "lakewright": figures(ours),
        "peers": {done.name: figures(done) for done in peers},
    }
    return found, ours


def limits(streams: dict[str, Any], replayed: dict[str, Replayed]) -> list[Limit]:
    """Return what has to be shown, with what was found."""
    first = streams["one_mb"]
    replaced = sum(done.files_replaced for done in replayed.values())
    overwritten = sum(done.full_overwrite_files for done in replayed.values())
    return [
        Limit("WA of one_mb over the optimum", first["lakewright"]["wa"] / first["optimum_wa"], 1.10),
        *(Limit(f"WA of {name}", streams[name]["lakewright"]["wa"], 3.0) for name in streams if name != "eight_100kb"),
        *(
            Limit(f"useless scans of {name}", streams[name]["lakewright"]["useless_scan_share"], 0.02)
            for name in streams
        ),
        *(
            Limit(f"files replaced of {name}", streams[name]["lakewright"]["files_replaced_share"], 0.28)
            for name in streams
        ),
        Limit("files replaced over all streams", float(Fraction(replaced, max(1, overwritten))), 0.28),
    ]


def main() -> int:
    """Run all streams; exit code 1 if a figure is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    began = time.monotonic()
    streams: dict[str, Any] = {}
    replayed: dict[str, Replayed] = {}
    for name in STREAMS:
        streams[name], replayed[name] = run_stream(name, asked.commits, console)
    checked = limits(streams, replayed)
    for limit in checked:
        console.print(
            f"{'met ' if limit.is_met else 'MISS'} {limit.what}: {limit.found:.4g} (at most {limit.at_most:g})"
        )
    console.print(
        f"target {POLICY.target_bytes // MIB} MiB, lag {LAG_COMMITS} commits, {time.monotonic() - began:.0f} s"
    )
    if asked.json:
        asked.json.write_text(json.dumps({"streams": streams}, indent=2) + "\n")
    return 0 if all(limit.is_met for limit in checked) else 1


if __name__ == "__main__":
    sys.exit(main())
