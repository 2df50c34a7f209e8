"""CPU seconds of this process and all that it started, by what they went into."""

import os
from collections import Counter
from pathlib import Path

import psutil

PARTS = ("Python", "comparing", "compiling", "collecting", "Spark's tasks", "JVM besides")
"""comparing: other processes of Python, which proofread. compiling: the JVM's compilers; collecting: garbage."""

_THREADS = {
    **dict.fromkeys(("C1 Comp", "C2 Comp"), "compiling"),
    **dict.fromkeys(("GC Thre", "G1 ", "VM Thre", "Parallel"), "collecting"),
    "Executor": "Spark's tasks",
}
"""Parts of threads of a JVM, by the beginnings of their names."""

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_parts() -> Counter[str]:
    """Return the seconds up to now; a thread that has ended counts as a part of what its process does besides."""
    own = psutil.Process()
    ended = own.cpu_times()
    found = Counter({"comparing": ended.children_user + ended.children_system})
    for process in (own, *own.children(recursive=True)):
        if process.name() != "java":
            found["Python" if process.pid == own.pid else "comparing"] += _seconds(process)
            continue
        threads = _threads(process.pid)
        found += threads
        found["JVM besides"] += max(0.0, _seconds(process) - threads.total())
    return found


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _threads(process: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for thread in Path(f"/proc/{process}/task").glob("*"):
        try:
            name, stat = (thread / "comm").read_text(), (thread / "stat").read_text()
        except OSError:  # It has ended.
            continue
        part = next((part for begins, part in _THREADS.items() if name.startswith(begins)), None)
        if part is not None:
            user, system = stat.rpartition(")")[2].split()[11:13]
            found[part] += (int(user) + int(system)) * _TICK_S
    return found
