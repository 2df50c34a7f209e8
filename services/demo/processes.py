"""Ends the demonstration's processes: it asks, and waits as long as a busy machine may need."""

import subprocess

END_S = 300.0
"""Longest wait for a process that was asked to end: Spark's takes seconds, minutes where others compute."""


def end_process(process: subprocess.Popen[bytes], wait_s: float = END_S) -> None:
    """Ask a process to end; kill it if it has not in time, so that the demonstration ends with its own result."""
    process.terminate()
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
