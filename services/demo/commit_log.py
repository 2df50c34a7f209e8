"""The history of the demonstration's table, read from its log alone, apart from everything that made it."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decider.whatif.baselines import optimize_after_each_commit
from shared.policy.policy import Policy

_Action = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class CommitLogSums:
    """Sums over a table's log; sizes in bytes."""

    commits: int = 0
    rewrites: int = 0
    files_added: int = 0
    bytes_added: int = 0
    files_replaced: int = 0
    bytes_replaced: int = 0
    live: dict[str, int] = field(default_factory=dict)
    added_by_commit: list[dict[str, list[int]]] = field(default_factory=list)

    @property
    def newest_version(self) -> int:
        """The version of the newest commit, as Lakewright counts."""
        return self.commits + self.rewrites

    @property
    def write_amplification(self) -> float:
        """Bytes rewritten per byte ingested."""
        return self.bytes_replaced / self.bytes_added if self.bytes_added else 0.0

    def others_write_amplification(self, policy: Policy) -> float:
        """Bytes that Delta's OPTIMIZE after every commit would have rewritten per byte ingested, by its own rule."""
        rewritten = optimize_after_each_commit(self.added_by_commit, target_bytes=policy.target_bytes)
        return rewritten / self.bytes_added if self.bytes_added else 0.0


def read_history(location: Path) -> CommitLogSums:
    """Read the log of a local table that was never checkpointed away."""
    history = CommitLogSums()
    for commit_file in sorted((location / "_delta_log").glob("*.json")):
        _apply(history, list(_actions(commit_file)))
    return history


def _actions(commit_file: Path) -> Iterator[_Action]:
    for line in commit_file.read_text().splitlines():
        yield from json.loads(line).items()


def _apply(history: CommitLogSums, actions: list[_Action]) -> None:
    added = [action for name, action in actions if name == "add"]
    removed = [action for name, action in actions if name == "remove"]
    for action in removed:
        del history.live[action["path"]]
    for action in added:
        history.live[action["path"]] = action["size"]
    if added and all(action["dataChange"] for action in added):
        history.commits += 1
        history.files_added += len(added)
        history.bytes_added += sum(action["size"] for action in added)
        partitions: dict[str, list[int]] = defaultdict(list)
        for action in added:
            partitions[json.dumps(action["partitionValues"], sort_keys=True)].append(action["size"])
        history.added_by_commit.append(dict(partitions))
    elif removed:
        history.rewrites += 1
        history.files_replaced += len(removed)
        history.bytes_replaced += sum(action["size"] for action in removed)
