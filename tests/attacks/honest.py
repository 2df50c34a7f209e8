"""An honest client in a process of its own: posts events at an even pace, and says how it fared.

It is a process because an attacker in the same interpreter would slow its clock instead of the service. It connects
again for every call, as webhook senders do.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field

import httpx

from tests.support.stack import ROOT, s3_event
from tests.support.time_limits import scaled

PER_S = 20.0
"""Calls per second: a thousand would be a load of their own."""

QUIET_RATIO = 3.0
"""What the slowest hundredth of calls may take during an attack, as a multiple of its quiet time."""


@dataclass(frozen=True, slots=True)
class Fare:
    """How an honest client fared: calls by answer (a status, or the name of an error), and their 99th percentile."""

    answers: dict[str, int] = field(default_factory=dict)
    p99_s: float = 0.0

    @property
    def refused(self) -> dict[str, int]:
        """Answers other than 202."""
        return {answer: count for answer, count in self.answers.items() if answer != "202"}


def fare(url: str, *, seconds: float, token: str) -> Fare:
    """Have an honest client call for so many seconds, and return how it fared."""
    command = [sys.executable, "-m", "tests.attacks.honest", url, str(seconds), token]
    return Fare(**json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout))


def _run(url: str, seconds: float, token: str) -> Fare:
    headers = {"authorization": f"Bearer {token}"}
    answers: Counter[str] = Counter()
    took: list[float] = []
    started = time.monotonic()
    for number in range(round(seconds * PER_S)):
        time.sleep(max(0.0, started + number / PER_S - time.monotonic()))
        began = time.monotonic()
        body = s3_event(f"t{number % 50}/_delta_log/{number:020d}.json", "demo")
        try:
            with httpx.Client(trust_env=False, timeout=scaled(60)) as client:
                answers[str(client.post(f"{url}/v1/events", json=body, headers=headers).status_code)] += 1
        except httpx.TransportError as problem:
            answers[type(problem).__name__] += 1
        took.append(time.monotonic() - began)
    took.sort()
    return Fare(dict(answers), took[min(len(took) - 1, int(0.99 * len(took)))])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("seconds", type=float)
    parser.add_argument("token")
    asked = parser.parse_args()
    print(json.dumps(asdict(_run(asked.url, asked.seconds, asked.token))))
