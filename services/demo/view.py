"""The demonstration while it runs, a line at a time; the page shows each decision and rewrite as it happens."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from services.demo.commit_log import CommitLogSums


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
    return (
        f"{history.commits} commits, {len(history.live)} files instead of {history.files_added}, "
        f"{history.rewrites} rewrites, {history.write_amplification:.2f} bytes rewritten per byte"
    )
