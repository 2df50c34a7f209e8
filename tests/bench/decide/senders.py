"""Commits at a steady rate, each told by one POST, in a process of its own: the load and nothing of the measurement.

Bodies are made before the clock starts. The schedule is open: a slow answer does not make the next commit wait, as
several senders take turns.
"""

import argparse
import http.client
import json
import threading
import time
from pathlib import Path

from tests.bench.decide.logs import WrittenLog

SENDERS = 8


class Load:
    """`count` commits over the tables below `folder`, `per_s` of them a second, beginning at `start` (monotonic)."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._address = (options.host, options.port)
        self._per_s = options.per_s
        names = options.tables
        self._logs = [_reopened(options.folder / name, name, options.seed) for name in names]
        self._bodies = [self._logs[n % len(names)].body() for n in range(options.count)]
        self._sent: list[tuple[str, int, float, float]] = []

    def run(self) -> list[tuple[str, int, float, float]]:
        """Send everything; returns table, version, moment of the POST and how late that was, in seconds."""
        start = time.monotonic() + 0.2
        senders = [threading.Thread(target=self._send, args=(start, n)) for n in range(SENDERS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        return self._sent

    def _send(self, start: float, first: int) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=30)
        # A table's commits all go through one sender, so that its versions appear in order.
        for n in range(len(self._bodies)):
            log = self._logs[n % len(self._logs)]
            if n % len(self._logs) % SENDERS != first:
                continue
            due = start + n / self._per_s
            time.sleep(max(0.0, due - time.monotonic()))
            version = log.write(self._bodies[n])
            event = json.dumps({"table": log.path.name, "version": version})
            at = time.monotonic()
            connection.request("POST", "/v1/events", event, {"content-type": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.client.ACCEPTED:
                raise RuntimeError(f"the decider answered {answer.status}: {body.decode()}")
            self._sent.append((log.path.name, version, at, at - due))
        connection.close()


def _reopened(path: Path, name: str, seed: int) -> WrittenLog:
    newest = max(int(file.stem) for file in (path / "_delta_log").glob("*.json"))
    return WrittenLog(path, f"{seed}-{name}-{newest}", version=newest)


def main() -> None:
    """Print what was sent as one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.decide.senders")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--per-s", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    print(json.dumps(Load(parser.parse_args()).run()))


if __name__ == "__main__":
    main()
