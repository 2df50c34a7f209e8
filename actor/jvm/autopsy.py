"""Finds out why a JVM died, from its exit code and last output; and ends a JVM that does not answer any more.

Its output is in scratch space, which is deleted with the actor; the last part is logged, without secrets.
"""

import re
import signal
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import structlog

from actor.ports import EngineDeath

_log = structlog.get_logger(__name__)

GRACE_S = 5.0
"""Seconds in which a JVM that does not answer any more may end by itself: it may be running its shutdown hooks."""

KILL_S = 10.0
"""Seconds after which a killed JVM that still exists is given up; the kernel may hold it in a read."""

KEPT_LINES = 60
KEPT_CHARS = 8_000
"""Bounds of what is kept of the JVM's output: a stack trace fits, and a log line stays readable."""

QUOTED_CHARS = 1_200
"""Characters of it in a job's error, of which the queue keeps 2,000."""

SHORTEST_SECRET = 6
"""Shorter values of options are words such as `true` or a region; hiding them would make the log unreadable."""

_OUT_OF_MEMORY_EXIT = 3
"""How a JVM with -XX:+ExitOnOutOfMemoryError ends."""

_SIGNALLED = 128
"""A JVM that ran its shutdown hooks after a signal, or a shell before it, ends with this and the signal's number."""

_ASKED = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals with which people and supervisors end a process."""

_OUT_OF_MEMORY = re.compile(r"(?:java\.lang\.)?OutOfMemoryError(?:: [^\n]{1,200})?")
_CRASH_REPORT = re.compile(r"# *(SIG[A-Z]+ \(0x[0-9a-f]+\)[^\n]{0,160}|Internal Error[^\n]{0,160})")
_SECRETS = (
    re.compile(
        r"(?i)((?:secret|password|passwd|token|credential|signature|account.?key|access.?key|sas)[\w.-]*\s*[=:]\s*)\S+"
    ),
    re.compile(r"(?i)(authorization:\s*\w+\s+)\S+"),
    re.compile(r"(?i)(//[^/\s:@]*:)[^/\s@]+(?=@)"),
)
_HIDDEN = "***"


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Hide known secrets, and whatever follows a word that names one."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, _HIDDEN)
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<1>{_HIDDEN}", text)
    return text


def tail(file: Path, secrets: Iterable[str] = ()) -> str:
    """Return the end of what a JVM printed, bounded and without secrets; empty if there is nothing."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - 4 * KEPT_CHARS))
            text = opened.read().decode(errors="replace")
    except OSError:
        return ""
    # Secrets are hidden before anything is cut, so that none is cut in two and missed.
    lines = redact(text, secrets).strip().splitlines()[-KEPT_LINES:]
    return "\n".join(lines)[-KEPT_CHARS:]


def explain(code: int | None, printed: str) -> EngineDeath:
    """Return why a process ended, by its exit code and output; `code` None: we had to kill it."""
    number = -code if code is not None and code < 0 else (code or 0) - _SIGNALLED
    received = next((one for one in signal.Signals if one.value == number), None)
    out_of_memory = _OUT_OF_MEMORY.search(printed)
    crash = _CRASH_REPORT.search(printed)
    was_asked = False
    if out_of_memory is not None and (code == _OUT_OF_MEMORY_EXIT or received is None):
        how = (
            f"the JVM ran out of memory ({out_of_memory[0]}): raise LAKEWRIGHT_DRIVER_MEMORY, or lower LAKEWRIGHT_SLOTS"
        )
    elif code is None:
        how = "the JVM no longer answered, or its Spark had stopped, and it was killed"
    elif received is signal.SIGKILL:
        how = (
            "the JVM was killed by SIGKILL (9): by hand, or by the system because memory was short; compare the "
            "container's limit with LAKEWRIGHT_DRIVER_MEMORY and 1.2 GiB beside it"
        )
    elif crash is not None:
        how = f"the JVM crashed ({crash[1].strip()})"
    elif received is not None:
        was_asked = received in _ASKED
        how = f"the JVM was ended by {received.name} ({received.value})"
    else:
        how = f"the JVM ended with exit code {code}"
    return EngineDeath(how + _quoted(printed), was_asked)


def _quoted(printed: str) -> str:
    end = printed[-QUOTED_CHARS:]
    return f". It printed last: {end}" if end else ". It printed nothing"


@dataclass(frozen=True, slots=True)
class JvmProcess:
    """The process of a JVM, the file that it prints to, and the secrets that may be in it."""

    process: "subprocess.Popen[bytes]"
    printed: Path
    secrets: tuple[str, ...] = ()


class Autopsy:
    """Ends a JVM and determines its cause of death, once, for all callers."""

    def __init__(self, jvm: JvmProcess) -> None:
        self._jvm = jvm
        self._lock = threading.Lock()
        self._found: EngineDeath | None = None

    def perform(self) -> EngineDeath | None:
        """Return why the JVM died, having ended it if it had not; None if it cannot be ended."""
        with self._lock:
            if self._found is None:
                self._found = self._examine()
            return self._found

    def _examine(self) -> EngineDeath | None:
        process = self._jvm.process
        code: int | None = None
        try:
            code = process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                process.wait(KILL_S)
            except subprocess.TimeoutExpired:
                _log.exception("jvm_kill_failed", pid=process.pid)
                return None
        printed = tail(self._jvm.printed, self._jvm.secrets)
        death = explain(code, printed)
        _log.error("jvm_died", exit_code=code, requested=death.was_requested, cause=death.cause, jvm_log=printed)
        return death
