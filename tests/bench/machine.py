"""What every benchmark says about where it ran: kind of machine and load, never which machine."""

import os
import platform
from typing import Any


def machine() -> dict[str, Any]:
    """Describe the machine and how busy it was when the benchmark began; figures of other machines compare badly."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}",
        "load_average_at_start": round(os.getloadavg()[0], 2),
    }
