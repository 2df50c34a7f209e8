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
    """One attempt of a task: the tags of its Spark job, its executor, and why it ended."""

    tags: frozenset[str]
    executor: str
    reason: str


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
                place = event["Task Info"]["Executor ID"]
                reason = event["Task End Reason"]["Reason"]
                ended.append(TaskEnd(tags.get((application, event["Stage ID"]), frozenset()), place, reason))
    return ended


def of_job(folder: Path, job: str) -> list[TaskEnd]:
    """Return the attempts of tasks of one job of the queue."""
    return [one for one in task_ends(folder) if any(job in tag for tag in one.tags)]
