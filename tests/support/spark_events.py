"""What an application's event log holds about its tasks: where each ran, for which job of the queue, how it ended."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPTIONS = {
    "spark.eventLog.enabled": True,
    "spark.eventLog.rolling.enabled": False,
    "spark.eventLog.compress": False,
}
"""Options of Spark that write the log as lines of JSON into one file; `spark.eventLog.dir` names the folder."""


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """One attempt of a task: the tags of its Spark job, its executor, why it ended, when it ran (ms since 1970)."""

    tags: frozenset[str]
    executor: str
    reason: str
    began_ms: int
    ended_ms: int

    def is_beside(self, other: "TaskEnd") -> bool:
        """Whether both ran at once."""
        return self.began_ms < other.ended_ms and other.began_ms < self.ended_ms


def events(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of all applications that log into a folder; a line that is being written is left out."""
    for file in sorted(folder.iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


def task_ends(folder: Path) -> list[TaskEnd]:
    """Return all attempts of tasks that have ended."""
    tags: dict[tuple[str, int], frozenset[str]] = {}
    ended, application = [], ""
    for event in events(folder):
        match event["Event"]:
            case "SparkListenerApplicationStart":
                application = event["App ID"]
            case "SparkListenerJobStart":
                of_job = frozenset((event["Properties"].get("spark.job.tags") or "").split(","))
                tags |= {(application, stage): of_job for stage in event["Stage IDs"]}
            case "SparkListenerTaskEnd":
                info, reason = event["Task Info"], event["Task End Reason"]["Reason"]
                of_job = tags.get((application, event["Stage ID"]), frozenset())
                ended.append(TaskEnd(of_job, info["Executor ID"], reason, info["Launch Time"], info["Finish Time"]))
    return ended


def of_job(folder: Path, job: str) -> list[TaskEnd]:
    """Return the attempts of tasks of one job of the queue."""
    return [one for one in task_ends(folder) if any(job in tag for tag in one.tags)]
