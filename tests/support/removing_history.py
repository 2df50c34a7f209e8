"""A recorded history whose commits each replace a file, an hour apart."""

from dataclasses import replace
from typing import Any

from decider.state.effective_policy import resolve_unregistered
from decider.whatif.storage import StorageStep
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import GIB, MIB, Policy
from shared.policy.properties import as_properties
from shared.table import Commit, DataFile, TableMetadata

HOUR_MS = 3_600_000
COMMITS = 100


def history(
    removed: int = 256 * MIB,
    *,
    commits: int = COMMITS,
    every_ms: int = HOUR_MS,
    only: range | None = None,
    others: int = 0,
    **more: Any,
) -> TableTrace:
    """Return commits that each replace a file: `only` some of them one of this size, and the others one of another."""
    made = tuple(Commit(n, n * every_ms, "WRITE", (DataFile(f"f{n}", MIB, WHOLE_TABLE),)) for n in range(commits))
    sizes = [removed if only is None or n in only else others for n in range(commits)]
    steps = tuple(StorageStep(n * every_ms, size, size) for n, size in enumerate(sizes))
    found = TableTrace("memory:///t", 0, commits - 1, TableMetadata("t", (), {}), CommitTrace((), made), 0, 0, 40)
    return replace(found, **{"initial_bytes": 10 * GIB, "storage": steps} | more)


def policy(**settings: str) -> Policy:
    return resolve_unregistered(Policy(), as_properties(settings), {}).policy
