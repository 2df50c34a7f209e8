"""What every benchmark says about where it ran: kind of machine and load, never which machine; and keeps of it."""

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil


def keep(figures: Any, file: Path | None) -> None:
    """Write figures to the file that `--json` names, if it names one."""
    if file:
        file.write_text(json.dumps(figures, indent=2, default=str) + "\n")


def machine() -> dict[str, Any]:
    """Describe the machine and how busy it was when the benchmark began; figures of other machines compare badly."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}",
        "load_average_at_start": round(os.getloadavg()[0], 2),
    }


def cpu_s(*processes: psutil.Process) -> float:
    """Return the CPU seconds that processes have used."""
    return float(sum(times.user + times.system for times in (one.cpu_times() for one in processes)))


def tree_cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and of those that it has started; 0 if it is gone."""
    try:
        first = psutil.Process(pid)
        return cpu_s(first, *first.children(recursive=True))
    except psutil.NoSuchProcess:
        return 0.0


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure that has to be shown."""

    what: str
    found: float
    at_most: float

    @property
    def is_met(self) -> bool:
        return self.found <= self.at_most

    def __str__(self) -> str:
        return f"{'met ' if self.is_met else 'MISS'} {self.what}: {self.found:.4g} (at most {self.at_most:g})"


def exit_code(limits: Iterable[Limit]) -> int:
    """Return 1 if a figure is not met."""
    return int(not all(limit.is_met for limit in limits))
