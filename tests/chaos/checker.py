"""Reads the histories of all workers, key by key, and says what was broken: an event lost, a token that went back."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.chaos.world import World


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run has shown."""

    events: int
    commits: int
    lost_events: tuple[str, ...]
    stuck_jobs: int
    tokens_reused: int
    tokens_out_of_order: int
    duplicates: int
    acknowledged_lost: int
    kills: int
    recovery_s: tuple[float, ...]

    @property
    def is_good(self) -> bool:
        """No event was lost, no job is stuck, no token came twice or too late."""
        return not (self.lost_events or self.stuck_jobs or self.tokens_reused or self.tokens_out_of_order)


def check(world: World, stuck_jobs: int) -> Verdict:
    """Compare what was committed to the tables with what the workers did."""
    histories = [_history(path) for path in sorted(world.folder.glob("*.jsonl"))]
    claims = [one for history in histories for one in history if one["event"] == "claimed"]
    tokens = Counter(one["token"] for one in claims)
    out_of_order = sum(
        later["token"] <= earlier["token"]
        for history in histories
        for earlier, later in _pairs([one for one in history if one["event"] == "claimed"])
    )
    seen: dict[str, int] = defaultdict(lambda: -1)
    commits: Counter[tuple[str, int]] = Counter()
    given_back = {
        one["token"]
        for history in histories
        for one in history
        if one["event"] == "finished" and one["verdict"] in ("fail", "yield")
    }
    for history in histories:
        for one in history:
            if one["event"] == "committed":
                seen[one["job"]] = max(seen[one["job"]], one["version"])
                # A run that was given back is meant to be repeated; any other repetition is a duplicate.
                commits[one["job"], one["version"]] += one["token"] not in given_back
    lost = tuple(
        f"{table.name} version {version}"
        for table in world.tables
        for version in range(len(table.log))
        if seen[table.spec(version).id] < version
    )
    return Verdict(
        events=sum(len(table.log) for table in world.tables),
        commits=sum(commits.values()),
        lost_events=lost,
        stuck_jobs=stuck_jobs,
        tokens_reused=sum(count - 1 for count in tokens.values()),
        tokens_out_of_order=out_of_order,
        duplicates=sum(max(0, count - 1) for count in commits.values()),
        acknowledged_lost=world.acknowledged_lost,
        kills=world.kills,
        recovery_s=tuple(round(one, 3) for one in world.recovered_s),
    )


def _history(path: Path) -> list[dict[str, Any]]:
    """Read one worker's log; the last line may be torn by its death."""
    lines = path.read_text().splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def _pairs(items: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return list(pairwise(items))
