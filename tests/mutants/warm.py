"""Runs pytest in forks of one process that has imported what is not ours: each trial saves a second of CPU time.

Started with a copy of the source tree as the working directory. Reads a run as a line of JSON (`arguments` of pytest,
`environment`, file of `output`, `limit_s`) and answers with a line: the exit code, or `null` if it did not end.
"""

import json
import os
import resource
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest

IMPORTED = (
    *("hypothesis.stateful", "fastapi", "httpx", "redis.asyncio", "structlog", "typer.testing", "uvicorn"),
    *("pyarrow.parquet", "cryptography.hazmat.primitives", "opentelemetry.sdk.trace", "rich.console", "psutil"),
)
"""Libraries without threads of their own; plugins of pytest are not among them, as it rewrites these."""

MEMORY_BYTES = 8 << 30
"""What a process of a trial may hold: a mutant may read without end, and must not take the machine with it."""


def main() -> None:
    """Answer until the input ends."""
    for name in IMPORTED:
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)


def _run(wanted: dict[str, Any]) -> int | None:
    child = os.fork()
    if child == 0:
        os.setsid()
        with open(os.devnull) as nothing, open(wanted["output"], "w") as output:  # noqa: PTH123 - of descriptors
            for inherited, own in ((0, nothing), (1, output), (2, output)):
                os.dup2(own.fileno(), inherited)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        os.environ.update(wanted["environment"])
        sys.argv = ["pytest", *wanted["arguments"]]
        os._exit(pytest.main(wanted["arguments"]))
    late = threading.Timer(wanted["limit_s"], os.killpg, (child, signal.SIGKILL))
    late.start()
    _, status = os.waitpid(child, 0)
    late.cancel()
    late.join()
    code = os.waitstatus_to_exitcode(status)
    return None if code == -signal.SIGKILL else code


if __name__ == "__main__":
    main()
