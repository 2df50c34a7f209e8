"""A real worker without Spark: the actor's own loop, heartbeat thread and lease around a table that is a file.

Everything it does is a line in its log. At each labelled point it searches for a request of the driver's to stop there:
who takes the request stops itself, the whole process, until it is killed or told to go on.
"""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.errors import PermanentError
from shared.queue.command import Command
from shared.queue.lua_library import ScriptLibrary, ScriptName, source
from shared.queue.model import Claim, Share
from shared.retry import RetryPolicy
from tests.chaos.history import now_ns
from tests.chaos.table import FileTable

QUEUE = "chaos"
TIMES = LeaseTimes(lease_s=1.5, interval_s=0.3, margin_s=0.3, stop_grace_s=1.0)
SETTINGS = WorkerSettings(max_rounds=2, idle_s=0.02, share=Share(3, 1 << 40))
LABELS = ("claimed", "files_written", "confirmed", "committed", "finished")
"""Where a worker can be stopped: its claim is answered, its files are written, its lease is confirmed, …"""
PAUSED_AT = LABELS[:-1]
"""Where a pause beyond the lease loses something: a run that has finished has no lease to lose."""
SCHEMA_LINE = "local SCHEMA = "


class Log:
    """A worker's log, a line of JSON for each step."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def note(self, event: str, claim: Claim | None = None, **more: object) -> None:
        """Write a line at once; a line in one piece survives whatever kills its writer."""
        run = {} if claim is None else {"job": claim.id, "token": claim.token}
        self._file.write(json.dumps({"event": event, **run, **more, "at": now_ns()}) + "\n")

    def close(self) -> None:
        self._file.close()


class NotingQueue(SyncQueueExecutor):
    """Notes claims and ends as they are requested and answered."""

    def watch(self, log: Log) -> "NotingQueue":
        """Begin to note."""
        self.log = log
        self.first_sent: dict[tuple[object, ...], int] = {}
        return self

    def run(self, command: Command[Any]) -> Any:
        """Carry out one transition."""
        match command.script:
            case ScriptName.CLAIM:
                return self._claim(command)
            case ScriptName.FINISH:
                return self._finish(command)
            case ScriptName.FINISH_AND_CLAIM:
                return self._finish_and_claim(command)
        return super().run(command)

    def _claim(self, transition: Command[Any]) -> Any:
        # A worker repeats a claim that was not answered: it may have been carried out the first time.
        sent = self.first_sent.setdefault(transition.args, now_ns())
        try:
            claims: Sequence[Claim] = super().run(transition)
        except PermanentError as problem:
            self.log.note("refused", why=str(problem))
            raise
        self._note_claims(claims, sent)
        return claims

    def _note_claims(self, claims: Sequence[Claim], sent: int) -> None:
        for claim in claims:
            self.log.note("claimed", claim, version=claim.version, sent=sent)

    def _finish(self, transition: Command[Any]) -> Any:
        end = _end(transition.args)
        self.log.note("finishing", **end)
        finished = super().run(transition)
        self.log.note("finished", **end, outcome=finished.outcome.value)
        return finished

    def _finish_and_claim(self, transition: Command[Any]) -> Any:
        # As in `_claim`.
        sent = self.first_sent.setdefault(transition.args, now_ns())
        end = _end(_finish_args(transition))
        self.log.note("finishing", **end)
        finished, claims = super().run(transition)
        self.log.note("finished", **end, outcome=finished.outcome.value)
        self._note_claims(claims, sent)
        return finished, claims


def _finish_args(command: Command[Any]) -> Sequence[Any]:
    """Return those arguments of a finish and claim that are the finish's."""
    of_claim, *args = command.args
    return args[int(of_claim) :]


def _end(args: Sequence[Any]) -> dict[str, Any]:
    """Return what the arguments of `finish` say of the run."""
    _, _, job, token, verdict, _, seen, *_ = args
    return {"job": job, "token": token, "verdict": verdict, "seen": seen}


class ChaosWorker(NotingQueue):
    """The queue of a worker that may be stopped where it claims and ends."""

    def attach(self, table: FileTable, barrier: "Barrier") -> None:
        """Tell the table of each claim."""
        self._table, self._barrier = table, barrier

    def run(self, command: Command[Any]) -> Any:
        """Carry out one transition, and perhaps stop."""
        reply = super().run(command)
        claims = reply if command.script is ScriptName.CLAIM else ()
        if command.script is ScriptName.FINISH:
            self._barrier.reached(self._held[_end(command.args)["job"]], "finished")
        elif command.script is ScriptName.FINISH_AND_CLAIM:
            self._barrier.reached(self._held[_end(_finish_args(command))["job"]], "finished")
            _, claims = reply
        if claims:
            self._held = {claim.id: claim for claim in claims}
            self._table.begin(claims)
            for claim in claims:
                self._barrier.reached(claim, "claimed")
        return reply


class Barrier:
    """Where the driver's requests lie, `halt-<label>` for a run of any job or `halt-<label>@<job>`.

    The first worker that comes by takes a request by giving it its name, and stops.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name

    def reached(self, claim: Claim, label: str) -> None:
        """Stop here if that is requested."""
        for request in (f"halt-{label}", f"halt-{label}@{claim.id}"):
            try:
                (self._folder / request).rename(self._folder / f"taken-{request}-{self._name}")
            except FileNotFoundError:
                continue
            os.kill(os.getpid(), signal.SIGSTOP)


def schema() -> int:
    """Return the schema that this release's scripts know."""
    return int(source("include/config").partition(SCHEMA_LINE)[2].split()[0])


def library(kind: Sequence[str]) -> ScriptLibrary:
    """Return the scripts that a worker calls: its own release's, beside those of the others."""
    if "previous" not in kind:
        return ScriptLibrary()
    ours, theirs = f"{SCHEMA_LINE}{schema()}", f"{SCHEMA_LINE}{schema() - 1}"
    return ScriptLibrary({"config": source("include/config").replace(ours, theirs)})


def main(arguments: Sequence[str]) -> None:
    """Run one worker: URL NAME FOLDER SEED [previous]."""
    url, name, folder, seed, *kind = arguments
    # Lost connections and leases are what this is about; what matters of them stands in the worker's own log.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    scripts, tries = library(kind), RetryPolicy(3, 0.02)
    log, barrier = Log(Path(folder) / f"{name}.jsonl"), Barrier(Path(folder), name)
    table = FileTable(log.note, barrier.reached, int(seed))
    queue = ChaosWorker(connect(url, timeout_s=0.5), QUEUE, library=scripts, retry_policy=tries)
    queue.watch(log)
    queue.attach(table, barrier)
    beats = SyncQueueExecutor(connect(url, timeout_s=0.5), QUEUE, library=scripts, retry_policy=tries)
    heartbeat = Heartbeat(beats, name, TIMES)
    heartbeat.start()
    actor = ActorContext(name, heartbeat, threading.Event())
    Worker(EngineSet([table]), queue, actor, SETTINGS, reached=barrier.reached).run()


if __name__ == "__main__":
    main(sys.argv[1:])
