"""The demonstration's live view: what comes in, what is decided and why, what is rewritten; while it happens."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from services.demo.commit_log import CommitLogSums
from shared.layout.partition_stats import stats_of_sizes
from shared.policy.policy import Policy

DECISIONS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class DemoSnapshot:
    """The decider's answers at one moment."""

    funnel: Mapping[str, int]
    decisions: Sequence[Mapping[str, Any]]
    running: int
    waiting: int
    backlog: int
    version: int


def read_snapshot(client: httpx.Client, table: str) -> DemoSnapshot:
    """Ask the decider for all that the view shows."""
    status = client.get("/v1/status").raise_for_status().json()
    found = client.get(f"/v1/tables/{table}").raise_for_status().json()
    decisions = client.get(f"/v1/tables/{table}/decisions", params={"limit": DECISIONS_SHOWN}).raise_for_status().json()
    depth = status["queue"]["depth"]
    return DemoSnapshot(
        funnel=status["funnel"],
        decisions=decisions["decisions"],
        running=depth["leased"],
        waiting=depth["queued"] + depth["delayed"],
        backlog=status["backlog"]["tables_waiting"],
        version=found["state"]["version"] if found["state"] else -1,
    )


def draw(history: CommitLogSums, glance: DemoSnapshot, policy: Policy, *, left_s: float) -> Group:
    """Draw one frame."""
    return Group(_figures(history, glance, policy, left_s), _decisions(glance))


def line(history: CommitLogSums, glance: DemoSnapshot, policy: Policy) -> str:
    """Return the same in one line, for output that is no terminal."""
    state = stats_of_sizes(policy.size_levels, history.live.values())
    return (
        f"commits {history.commits}  files {len(history.live)} (without: {history.files_added})  "
        f"small {state.small_files}  rewrites {history.rewrites}  running {glance.running}  waiting {glance.waiting}  "
        f"rewritten per byte ingested {history.write_amplification:.2f}"
    )


def _figures(history: CommitLogSums, glance: DemoSnapshot, policy: Policy, left_s: float) -> Panel:
    state = stats_of_sizes(policy.size_levels, history.live.values())
    root = float(state.mse()) ** 0.5 / policy.target_bytes
    grid = Table.grid(padding=(0, 3))
    for _ in range(4):
        grid.add_column(justify="left")
    grid.add_row("commits", f"[b]{history.commits}", "rewrites", f"[b]{history.rewrites}")
    grid.add_row(
        "files", f"[b]{len(history.live)}[/] (without: {history.files_added})", "small", f"{state.small_files}"
    )
    grid.add_row("entropy", f"{root:.0%} of the target (root of MSE)", "jobs", _jobs(glance))
    grid.add_row(
        "rewritten per byte",
        f"[b]{history.write_amplification:.2f}",
        "a rewrite each commit",
        _others(history, policy),
    )
    title = f"writing for {left_s:.0f} s more" if left_s > 0 else "the writer has stopped; finishing"
    return Panel(grid, title=title, border_style="cyan")


def _jobs(glance: DemoSnapshot) -> str:
    return f"{glance.running} running, {glance.waiting} waiting"


def _others(history: CommitLogSums, policy: Policy) -> str:
    return f"{history.others_write_amplification(policy):.2f} (computed)"


def _decisions(glance: DemoSnapshot) -> Panel:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for decision in glance.decisions:
        verdict = Text(decision["decision"], style="bold green" if decision["decision"] == "enqueue" else "yellow")
        clock = time.strftime("%H:%M:%S", time.gmtime(decision["at_ms"] / 1000))
        table.add_row(
            clock, verdict, f"v{decision['version']} {decision['partition_label']}: {decision['reason_text']}"
        )
    return Panel(table, title="newest decisions", border_style="cyan")
