"""Every child runs, or runs again soon, until it is asked to stop; and when the supervisor ends, so do its children.

Children start in order, each when the one before is ready, and end in the opposite order, so that none loses what it
depends on. A child that ends by itself is started again after a delay that doubles; one that never lives long enough
ends the whole, because repeating does not help it. The supervisor knows nothing of what its children do.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import structlog

from shared.errors import PermanentError
from shared.retry import RetryPolicy

# The first delay is long enough for a port to be free again; the longest spares the machine, and a person waits for it.
# 0.5 + 1 + ... + 30 s: about a minute and a half of trying, then a person is needed.
RESTARTS = RetryPolicy(max_attempts=9, first_s=0.5, longest_s=30.0)
HEALTHY_AFTER_S = 60.0  # A run this long was not a failed start: delays begin again.
POLL_S = 0.1  # How late an end is noticed; ten polls a second cost nothing.
LOG_LIMIT_BYTES = 10_000_000  # A log larger than this is moved aside at the next start, once: 20 MB per child at most.
MAX_RECOVERIES = 3  # Of one start: each repairs something else, and a fourth would repeat one of them.
ASK_EVERY_S = 2.0  # Between two questions which children are wanted: as soon as people look for it.
REPORT_EVERY_S = 10.0  # While a child is not ready: often enough that the start does not seem to hang.
_TAIL_BYTES = 2_000  # Of a log in an error: some twenty lines.
_START_BYTES = 65_536  # Of what a child printed since its start: more than any prints until it is ready.

_PARENT_WATCHDOG = Path(__file__).with_name("parent_watchdog.py")  # Run as a file: isolated, it starts in some 15 ms.

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A program to keep running. `environment` is all it sees; `explain` may turn its last output into advice.

    `obstacle` is what is missing until the child can be used, and empty once it can. `recover` is given what a child
    that ended had printed first, and returns whether it repaired what ended it. `umask` is the child's; None leaves it
    this process's.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log_file: Path
    obstacle: Callable[[], str] = lambda: ""
    ready_timeout_s: float = 30.0
    stop_timeout_s: float = 10.0
    explain: Callable[[str], str] = lambda _: ""
    recover: Callable[[str], bool] = lambda _: False
    umask: int | None = None


@dataclass(slots=True)
class _Child:
    spec: ChildSpec
    process: subprocess.Popen[bytes] | None = None
    started_at_s: float = 0.0
    log_start_bytes: int = 0  # Size of its log when it was started.
    quick_ends: int = 0
    start_again_at_s: float = field(default=float("inf"))
    asked_at_s: float | None = None  # When one that is not wanted any more was asked to end.


class Supervisor:
    """Starts, watches and stops children; `tick` is its one step, so that a caller may own the loop.

    Use as a context manager: leaving it stops the children, whatever happened.
    """

    def __init__(
        self,
        specs: Sequence[ChildSpec],
        *,
        restarts: RetryPolicy = RESTARTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._children = [_Child(spec) for spec in specs]
        self._restarts = restarts
        self._clock = clock

    def __enter__(self) -> Self:
        """Start all children, see `start`."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all children, see `stop`."""
        self.stop()

    def start(self, *, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Start the children in order; returns when the last is ready, or early when `should_stop` returns True.

        Raises:
            PermanentError: a child ended or was not ready in time; the message carries the end of its log.
        """
        for number, child in enumerate(self._children):
            self._launch(child)
            if not self._await_ready(child, should_stop, started=self._children[:number]):
                return

    def run(self, should_stop: Callable[[], bool], wanted: Callable[[], Sequence[ChildSpec]] | None = None) -> None:
        """Keep the children running until `should_stop`; `wanted`, asked now and then, returns all that are to run."""
        asked_at_s = self._clock()
        while not should_stop():
            if wanted is not None and self._clock() >= asked_at_s + ASK_EVERY_S:
                self.keep_only(wanted())
                asked_at_s = self._clock()
            self.tick()
            time.sleep(POLL_S)

    def keep_only(self, specs: Sequence[ChildSpec]) -> None:
        """Start the children that are new; ask those that are not among them to end, and do not wait for it."""
        names, known = {one.name for one in specs}, {child.spec.name for child in self._children}
        for child in self._children:
            if child.spec.name not in names and child.asked_at_s is None:
                child.asked_at_s = self._clock()
                if child.process is not None:
                    child.process.terminate()
        for spec in specs:
            if spec.name not in known:
                self._children.append(_Child(spec))
                self._launch(self._children[-1])

    def tick(self) -> None:
        """Notice ends and start again what is due.

        Raises:
            PermanentError: a child ended too often without ever living long enough.
        """
        for child in tuple(self._children):
            self._keep(child)

    def _keep(self, child: _Child) -> None:
        if child.asked_at_s is not None:
            self._see_off(child, self._clock() - child.asked_at_s)
            return
        if child.process is not None and child.process.poll() is not None:
            self._note_end(child)
        if child.process is None and self._clock() >= child.start_again_at_s:
            self._launch(child)

    def _see_off(self, child: _Child, waited_s: float) -> None:
        """Forget a child that was asked to end once it has, or had as long as it was granted."""
        has_ended = child.process is None or child.process.poll() is not None
        if not has_ended and waited_s < child.spec.stop_timeout_s:
            return
        self._children.remove(child)
        if child.process is not None:
            self._stopped(child, child.process, "itself" if has_ended else "killed", waited_s)

    def stop(self) -> None:
        """End the children in the opposite order: ask, wait as long as each was granted, then kill all it started."""
        for child in reversed(self._children):
            child.start_again_at_s = float("inf")
            if child.process is not None:
                self._end(child, child.process)

    def pid_of(self, name: str) -> int | None:
        """Process id of the guard of that child, which is also its process group; None while it is not running."""
        process = next(child.process for child in self._children if child.spec.name == name)
        return None if process is None or process.poll() is not None else process.pid

    def _launch(self, child: _Child) -> None:
        spec = child.spec
        spec.log_file.parent.mkdir(parents=True, exist_ok=True)
        if spec.log_file.exists() and spec.log_file.stat().st_size > LOG_LIMIT_BYTES:
            spec.log_file.replace(spec.log_file.with_suffix(".log.1"))
        with spec.log_file.open("ab") as output:
            child.log_start_bytes = spec.log_file.stat().st_size
            child.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_PARENT_WATCHDOG), *spec.command],
                env=dict(spec.environment),
                stdin=subprocess.PIPE,  # Held open as long as this process lives: see guard.
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C of a terminal reaches us alone; we stop the children in order.
                umask=-1 if spec.umask is None else spec.umask,
            )
        child.started_at_s = self._clock()
        child.start_again_at_s = float("inf")
        log.info("child_started", child=spec.name, pid=child.process.pid, log=str(spec.log_file))

    def _await_ready(self, child: _Child, should_stop: Callable[[], bool], *, started: Sequence[_Child]) -> bool:
        """Return True once a child is ready, False if asked to stop; those that were ready before are kept running."""
        spec, process = child.spec, child.process
        report_at_s, recoveries = child.started_at_s + REPORT_EVERY_S, 0
        while process is not None and not should_stop():
            if process.poll() is not None:
                if recoveries < MAX_RECOVERIES and _recovers(child):
                    recoveries += 1
                    _release(process)
                    self._launch(child)
                    process = child.process
                    continue
                raise PermanentError(f"{spec.name} ended with code {process.returncode} at its start{_why(child)}")
            for other in started:
                self._keep(other)
            obstacle = spec.obstacle()
            waited_s = self._clock() - child.started_at_s
            if not obstacle:
                log.info("child_ready", child=spec.name, after_s=round(waited_s, 2))
                return True
            if waited_s > spec.ready_timeout_s:
                raise PermanentError(
                    f"{spec.name} was not ready within {spec.ready_timeout_s:g} s, it still lacked "
                    f"{obstacle}{_why(child)}"
                )
            if self._clock() >= report_at_s:
                report_at_s = self._clock() + REPORT_EVERY_S
                _report_waiting(child, obstacle, waited_s)
            time.sleep(POLL_S)
        return False

    def _note_end(self, child: _Child) -> None:
        process = child.process
        if process is None:
            return
        _release(process)
        child.process = None
        _recovers(child)
        lived_s = self._clock() - child.started_at_s
        child.quick_ends = 1 if lived_s >= HEALTHY_AFTER_S else child.quick_ends + 1
        if self._restarts.is_exhausted(child.quick_ends):
            raise PermanentError(f"{child.spec.name} ended {child.quick_ends} times in a row{_why(child)}")
        delay_s = self._restarts.pause_s(child.quick_ends)
        child.start_again_at_s = self._clock() + delay_s
        log.warning(
            "child_exited",
            child=child.spec.name,
            code=process.returncode,
            uptime_s=round(lived_s, 1),
            retry_in_s=delay_s,
        )

    def _end(self, child: _Child, process: subprocess.Popen[bytes]) -> None:
        began_s = self._clock()
        process.terminate()
        try:
            process.wait(child.spec.stop_timeout_s)
            how = "itself"
        except subprocess.TimeoutExpired:
            how = "killed"
        self._stopped(child, process, how, self._clock() - began_s)

    def _stopped(self, child: _Child, process: subprocess.Popen[bytes], how: str, after_s: float) -> None:
        _release(process)
        child.process = None
        log.info("child_stopped", child=child.spec.name, ended=how, after_s=round(after_s, 2))


def _release(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the child's group (a JVM that outlived its Python, the guard itself) and reap the guard."""
    # No process may be left; macOS returns EPERM for a group of zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _recovers(child: _Child) -> bool:
    """Let a child that ended repair what ended it, by what it printed since its start."""
    with child.spec.log_file.open("rb") as opened:
        opened.seek(child.log_start_bytes)
        return child.spec.recover(opened.read(_START_BYTES).decode(errors="replace"))


def _report_waiting(child: _Child, obstacle: str, waited_s: float) -> None:
    spec, last_line = child.spec, _tail(child).rpartition("\n")[2]
    log.info(
        "child_not_ready",
        child=spec.name,
        waits_for=obstacle,
        waited_s=round(waited_s),
        gives_up_after_s=spec.ready_timeout_s,
        log=str(spec.log_file),
        log_ends=last_line,
    )


def _why(child: _Child) -> str:
    tail, file = _tail(child), child.spec.log_file
    advice = child.spec.explain(tail)
    quoted = f"The end of {file}:\n{tail}" if tail else f"It printed nothing to {file}"
    return f"{': ' + advice if advice else ''}. {quoted}"


def _tail(child: _Child) -> str:
    """Return the end of what a child printed since its start: what one before it printed would mislead."""
    file = child.spec.log_file
    with file.open("rb") as opened:
        opened.seek(max(child.log_start_bytes, file.stat().st_size - _TAIL_BYTES))
        return opened.read().decode(errors="replace").strip()
