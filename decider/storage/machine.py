"""How much memory this machine, or the container that this process is in, has."""

import os
from pathlib import Path

_CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_bytes(limits: tuple[Path, ...] = _CONTAINER_LIMITS) -> int:
    """Return the memory of the machine, or of its container where that has less."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in limits:
        text = file.read_text("ascii").strip() if file.is_file() else ""
        if text.isdigit():
            found = min(found, int(text))
    return found
