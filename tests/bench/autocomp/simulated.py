"""Why files are left at the end of the trickle: the same commits replayed by the code that decides, without Spark.

The tables are written within minutes, so no table rests, and idle compaction, which merges what levels leave, never
runs. Here they rest for a day afterward as well.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from decider.whatif.simulator import SimulationResult, replay_lakewright
from decider.whatif.trace import CommitTrace
from shared.policy.policy import Policy
from shared.table import Commit, DataFile, PartitionKey
from tests.bench.autocomp.trickle import TrickledTable
from tests.bench.delta.rules import TARGET_BYTES

MINUTE_MS, DAY_MS = 60_000, 86_400_000

REPLAYS: Mapping[str, Mapping[str, Any]] = {
    "two commits late, as measured": {"lag_commits": 2},
    "at once": {},
    "at once, and a day of rest": {"tail_ms": DAY_MS},
    "at once, compact-every-commits 12": {"compact_every_commits": 12},
    "at once, min-input-files 4, fan-in 4": {"min_input_files": 4, "fan_in": 4, "fits_levels": False},
}
"""How each is replayed: a lag, a time at rest, or values of the policy."""


def commits(one: TrickledTable) -> CommitTrace:
    """Return a table's rounds as commits, one a minute."""
    return CommitTrace(
        (),
        tuple(
            Commit(number, number * MINUTE_MS, "WRITE", tuple(map(_file, adds)))
            for number, adds in enumerate(one.rounds)
        ),
    )


def replayed(data: Sequence[TrickledTable], how: Mapping[str, Any]) -> list[SimulationResult]:
    """Replay all tables in one of the ways."""
    terms = {name: value for name, value in how.items() if name in ("lag_commits", "tail_ms")}
    values = {name: value for name, value in how.items() if name not in terms}
    policy = Policy(target_bytes=TARGET_BYTES, **values)
    return [replay_lakewright(commits(one), policy, **terms) for one in data]


def simulated_table(data: Sequence[TrickledTable]) -> str:
    """Return what is left at the end, and what was rewritten for it, as a table in Markdown."""
    lines = ["| replay | files at the end | rewritten | jobs |", "|---|---|---|---|"]
    for title, how in REPLAYS.items():
        done = replayed(data, how)
        left, jobs = sum(one.files_at_end for one in done), sum(one.jobs for one in done)
        rewritten = sum(one.bytes_rewritten for one in done)
        lines.append(f"| {title} | {left} | {rewritten / 1e6:.1f} MB | {jobs} |")
    return "\n".join(lines)


def _file(add: Mapping[str, Any]) -> DataFile:
    return DataFile(add["path"], add["size"], PartitionKey(json.dumps(add["partitionValues"])))
