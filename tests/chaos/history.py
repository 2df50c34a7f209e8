"""What happened in a run, as values: what producers were told, what workers got and did, and what Redis lost.

All times are nanoseconds of the machine's monotonic clock, which every process of it reads alike.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def now_ns() -> int:
    """Return the moment; a worker whose own clocks are wrong notes what it does by this one."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Ack:
    """A producer was told that an event is in the queue; `outcome` is None if only the cursor said so, later."""

    job: str
    table: str
    version: int
    outcome: str | None
    sent: int
    at: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker was given a job as of `version`."""

    job: str
    token: int
    version: int
    sent: int
    at: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker reported the end of a run that had planned on version `seen`; `outcome` is None if no reply came."""

    job: str
    token: int
    verdict: str
    seen: int
    outcome: str | None
    sent: int
    at: int

    @property
    def is_done(self) -> bool:
        """Whether the run served what it saw, as far as anyone can know."""
        return self.verdict == "done" and self.outcome != "STALE"


@dataclass(frozen=True, slots=True)
class Committed:
    """A run changed its table, as of version `seen`."""

    job: str
    token: int
    seen: int
    at: int


@dataclass(frozen=True, slots=True)
class Rollback:
    """Redis came back between `start` and `end` and knew a table up to `cursor` only: the rest was taken back."""

    table: str
    cursor: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class History:
    """All of it; `events`: the versions of each job's key, as the tables' writers know them."""

    events: Mapping[str, tuple[int, ...]]
    acks: tuple[Ack, ...]
    claims: tuple[Claimed, ...]
    ends: tuple[Ended, ...]
    commits: tuple[Committed, ...]
    rollbacks: tuple[Rollback, ...] = ()


def reported(history: History) -> str:
    """Write the whole history as lines by time, for whoever wants to know how a promise was broken."""
    lists = history.acks, history.claims, history.ends, history.commits, history.rollbacks
    moments = [one for each in lists for one in each]
    return "".join(
        f"{one}\n" for one in sorted(moments, key=lambda one: one.end if isinstance(one, Rollback) else one.at)
    )


Workers = tuple[tuple[Claimed, ...], tuple[Ended, ...], tuple[Committed, ...]]


def read_workers(paths: Iterable[Path]) -> Workers:
    """Read the logs of all workers."""
    claims: list[Claimed] = []
    commits: list[Committed] = []
    ends: dict[tuple[str, int], Ended] = {}
    for path in sorted(paths):
        for line in records(path.read_text()):
            match line["event"]:
                case "claimed":
                    claims.append(Claimed(line["job"], line["token"], line["version"], line["sent"], line["at"]))
                case "committed":
                    commits.append(Committed(line["job"], line["token"], line["seen"], line["at"]))
                case "finishing" | "finished":
                    _end(ends, line)
    return tuple(claims), tuple(ends.values()), tuple(commits)


def records(text: str) -> list[dict[str, Any]]:
    """Read lines of JSON; the last one may be torn by its writer's death, the first by who read from the middle."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]


def _end(ends: dict[tuple[str, int], Ended], line: dict[str, Any]) -> None:
    """Keep the first moment at which an end was sent, and the last word on what became of it."""
    key = line["job"], line["token"]
    first = ends.get(key)
    sent = first.sent if first else line["at"]
    outcome = line.get("outcome") or (first.outcome if first else None)
    ends[key] = Ended(*key, line["verdict"], line["seen"], outcome, sent, line["at"])
