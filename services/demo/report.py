"""The demonstration's result: figures for machines and a table for people, with the proof that no row was lost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from services.demo.commit_log import CommitLogSums
from services.demo.row_checksum import Fingerprint
from shared.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class DemoSnapshot:
    """The decider's answers at one moment."""

    funnel: Mapping[str, int]
    running: int
    waiting: int
    backlog: int
    version: int
    files_needed: int


def read_snapshot(client: httpx.Client, table: str) -> DemoSnapshot:
    """Ask the decider how far it is."""
    status = client.get("/v1/status").raise_for_status().json()
    found = client.get(f"/v1/tables/{table}").raise_for_status().json()
    depth = status["queue"]["depth"]
    return DemoSnapshot(
        funnel=status["funnel"],
        running=depth["leased"],
        waiting=depth["queued"] + depth["delayed"],
        backlog=status["backlog"]["tables_waiting"],
        version=found["state"]["version"] if found["state"] else -1,
        files_needed=found["layout"]["files_needed"],
    )


def line(history: CommitLogSums) -> str:
    """Return the state of the table in one line of a terminal."""
    plural = "" if history.rewrites == 1 else "s"
    return (
        f"{history.commits} commits, {len(history.live)} files instead of {history.files_added}, "
        f"{history.rewrites} rewriting commit{plural}, {history.write_amplification:.2f} bytes rewritten per byte"
    )


IDLE_H = (Policy().idle_compaction_after_s or 0) / 3600

FUNNEL = {
    "commits": ("commits", "commits by the writer"),
    "partitions_touched": ("partitions_touched", "partitions touched by them"),
    "pruned_by_entropy": ("pruned_by_entropy", "… pruned by entropy: the expected gain is below the tolerance"),
    "pruned_by_levels": ("pruned_by_levels", "… pruned by levels: merging now would mean merging again"),
    "asked": ("enqueued", "… eligible for a rewrite"),
    "jobs_run": ("jobs_run", "jobs run (other requests joined a waiting job)"),
    "plans_empty": ("plans_empty", "… that found nothing to do"),
    "rewrites": ("rewrites", "rewrites committed (one commit can hold several)"),
    "files_replaced": ("files_replaced", "files replaced"),
}
"""Figures of the funnel: the name in the result, which stays, to the stage that is counted and its meaning."""


def figures(
    history: CommitLogSums, policy: Policy, glance: DemoSnapshot, expected: Fingerprint, found: Fingerprint
) -> dict[str, Any]:
    """Return everything the demonstration measured."""
    return {
        "commits": history.commits,
        "jobs": glance.funnel.get("jobs_run", 0),
        "rows_expected": expected.rows,
        "rows_found": found.rows,
        "rows_hash_equal": expected == found,
        "files_without": history.files_added,
        "files_after": len(history.live),
        "files_needed": glance.files_needed,
        "mean_bytes_without": round(history.bytes_added / max(1, history.files_added)),
        "mean_bytes_after": round(sum(history.live.values()) / max(1, len(history.live))),
        "bytes_ingested": history.bytes_added,
        "bytes_rewritten": history.bytes_replaced,
        "write_amplification": round(history.write_amplification, 3),
        "compared_with": "Delta's OPTIMIZE after every commit",
        "compared_wa": round(history.others_write_amplification(policy), 3),
        "funnel": {name: glance.funnel.get(stage, 0) for name, (stage, _) in FUNNEL.items()},
    }


def show(console: Console, result: Mapping[str, Any]) -> None:
    """Print the result for people."""
    layout = _table("The table, without and with Lakewright")
    layout.add_column("")
    layout.add_column("without", justify="right")
    layout.add_column("with", justify="right", style="bold")
    layout.add_row("files", f"{result['files_without']:,}", f"{result['files_after']:,}")
    layout.add_row("mean size", _kib(result["mean_bytes_without"]), _kib(result["mean_bytes_after"]))
    console.print(layout)
    if result["files_needed"] < result["files_after"]:
        console.print(
            f"{result['files_needed']:,} files would do. The others wait for more of their size, and are merged once "
            f"when nothing was written for {IDLE_H:g} hours."
        )

    funnel = _table("The funnel", show_header=False)
    for name, (_, meaning) in FUNNEL.items():
        funnel.add_row(meaning, f"{result['funnel'][name]:,}", style="" if meaning.startswith("…") else "bold")
    console.print(funnel)

    cost = _table("Bytes rewritten per byte ingested", show_header=False)
    cost.add_row("Lakewright (measured)", f"{result['write_amplification']:.2f}", style="bold")
    cost.add_row(f"{result['compared_with']} (computed by its own rule)", f"{result['compared_wa']:.2f}")
    console.print(cost)

    proof = "equal" if result["rows_hash_equal"] else "DIFFERENT"
    console.print(
        Panel(
            f"The writer wrote {result['rows_expected']:,} rows, the table holds {result['rows_found']:,}; "
            f"the order-independent hashes of all rows are {proof}.",
            title="No row lost, none doubled" if result["rows_hash_equal"] else "ROWS DIFFER",
            border_style="green" if result["rows_hash_equal"] else "red",
        )
    )


def _table(title: str, *, show_header: bool = True) -> Table:
    """Return a table that is as wide as its title, which would be broken else."""
    return Table(title=title, title_justify="left", show_header=show_header, min_width=len(title))


def _kib(size_bytes: int) -> str:
    return f"{size_bytes / 1024:,.1f} KiB"
