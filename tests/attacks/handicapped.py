"""A decider with a handicap that it cannot lift: few descriptors, full disks, reads that hang, a lost task."""

import os
import resource
import runpy
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

from decider.background import runner
from decider.storage import local_files, object_reads

FULL_LOG, HANGING = "full-log", "hanging-reads"
"""Files below the data directory that turn on the handicaps of `at-times`."""
DESCRIPTORS = 1_024
"""The usual soft limit, here also the hard one."""


def few_descriptors() -> None:
    """Grant no more than 1,024 descriptors."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def full_log() -> None:
    """Write standard error to a full disk."""
    os.dup2(os.open("/dev/full", os.O_WRONLY), sys.stderr.fileno())


def at_times() -> None:
    """Write standard error to a full disk while there is a file `full-log`; reads of `hung…` hang while it is there."""
    folder = Path(os.environ["LAKEWRIGHT_DATA_DIR"])
    kept, full, read = os.dup(sys.stderr.fileno()), os.open("/dev/full", os.O_WRONLY), local_files.read_files

    def watch() -> None:
        while True:
            os.dup2(full if (folder / FULL_LOG).exists() else kept, sys.stderr.fileno())
            time.sleep(0.1)

    def hanging(place: Path, *arguments: Any) -> list[bytes | None]:
        while place.name.startswith("hung") and (folder / HANGING).exists():
            time.sleep(0.1)
        return read(place, *arguments)

    mock.patch.object(object_reads, "read_files", hanging).start()
    threading.Thread(target=watch, daemon=True).start()


def lost_task() -> None:
    """End the sweep after its first pass, as only a bug in the runner could."""
    loop = runner._loop

    async def ending(task: runner.BackgroundTask, name: str, health: runner.TaskHealth) -> None:
        if name == "sweep":
            await task.run_once()
        else:
            await loop(task, name, health)

    runner._loop = ending


HANDICAPS = {"few-descriptors": few_descriptors, "full-log": full_log, "at-times": at_times, "lost-task": lost_task}

if __name__ == "__main__":
    HANDICAPS[sys.argv.pop(1)]()
    runpy.run_module("services.decider", run_name="__main__", alter_sys=True)
