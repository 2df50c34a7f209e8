"""A worker as an actor is one, but without Spark: it claims, beats, commits under its fence and finishes.

Its "commit" is a line in its own log, written only while the lease is provably held: a heartbeat right before, and the
local deadline after it. Every step is logged with a label, which is where the driver kills or stops it.
"""

import json
import random
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from actor.store.queue import SyncQueue, connect
from shared.errors import PermanentError, RetryableError
from shared.queue import transitions
from shared.queue.library import ScriptLibrary, source
from shared.queue.model import Beat, BeatStatus, Claim, Verdict
from shared.queue.transition import Tries

QUEUE = "chaos"
LEASE_MS = 1_500
MARGIN_S = 0.3
SKEW_S = 3_600


class Worker:
    """One slot."""

    def __init__(self, url: str, name: str, log: Path, seed: int, library: ScriptLibrary) -> None:
        self._queue = SyncQueue(connect(url, timeout_s=0.5), QUEUE, library=library, tries=Tries(3, 0.02))
        self._name = name
        self._log = log.open("a", buffering=1)
        self._random = random.Random(seed)

    def run(self) -> None:
        """Work until killed; a queue that does not answer is waited for."""
        while True:
            sent = time.monotonic()
            try:
                claims = self._queue.run(
                    transitions.claim(QUEUE, worker=self._name, nonce=uuid.uuid4().hex, slots=1, lease_ms=LEASE_MS)
                )
            except RetryableError:
                time.sleep(0.05)
                continue
            except PermanentError:
                self._note("refused")
                time.sleep(0.05)
                continue
            if not claims:
                time.sleep(0.02)
            for claim in claims:
                self._work(claim, sent)

    def _work(self, claim: Claim, sent: float) -> None:
        self._note("claimed", claim, version=claim.version)
        time.sleep(self._random.uniform(0, 0.02))
        try:
            if not self._may_commit(claim, sent):
                return
            self._note("committed", claim, version=claim.version)
            time.sleep(self._random.uniform(0, 0.01))
            verdict = self._random.choices([Verdict.DONE, Verdict.FAIL, Verdict.YIELD], [90, 2, 8])[0]
            end = transitions.finish(
                QUEUE,
                worker=self._name,
                nonce=uuid.uuid4().hex,
                id=claim.id,
                token=claim.token,
                verdict=verdict,
                cost_bytes=claim.cost_bytes,
                seen_version=claim.version,
            )
            outcome = self._queue.run(end).outcome
            self._note("finished", claim, version=claim.version, verdict=verdict.value, outcome=outcome.value)
        except (RetryableError, PermanentError):
            self._note("gave up", claim)

    def _may_commit(self, claim: Claim, sent: float) -> bool:
        beat_sent = time.monotonic()
        beats = [Beat(claim.id, claim.token)]
        beat = transitions.heartbeat(QUEUE, worker=self._name, beats=beats, lease_ms=LEASE_MS)
        if self._queue.run(beat)[0].status is BeatStatus.LOST:
            self._note("lost", claim)
            return False
        return time.monotonic() < max(sent, beat_sent) + LEASE_MS / 1000 - MARGIN_S

    def _note(self, event: str, claim: Claim | None = None, **more: object) -> None:
        run = {} if claim is None else {"job": claim.id, "token": claim.token}
        self._log.write(json.dumps({"event": event, **run, **more}) + "\n")


def library(kind: Sequence[str]) -> ScriptLibrary:
    """Return the scripts that a worker calls: its own release's, beside those of the others."""
    if "previous" not in kind:
        return ScriptLibrary()
    return ScriptLibrary({"config": source("include/config").replace("local SCHEMA = 1", "local SCHEMA = 0")})


def main() -> None:
    """Run one worker: URL NAME LOG SEED [skewed|previous]."""
    url, name, log, seed, *kind = sys.argv[1:]
    if "skewed" in kind:
        true_time = time.time
        time.time = lambda: true_time() - SKEW_S
    Worker(url, name, Path(log), int(seed), library(kind)).run()


if __name__ == "__main__":
    main()
