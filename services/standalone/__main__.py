"""`python -m services.standalone`: Redis, decider and actor on this machine until SIGTERM or Ctrl-C."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from services.descriptors import raise_descriptor_limit
from services.logs import configure_logs
from services.paths import data_dir
from services.private import closed_dir
from services.settings import http_address, log_format, log_level
from services.standalone.redis_server import AppendFsync
from services.standalone.stack import (
    PRIVATE_UMASK,
    StandaloneOptions,
    children,
    data_dir_lock,
    redis_client,
    require_free_address,
)
from services.standalone.supervisor import Supervisor
from services.standalone.wanted_actors import WantedActors
from services.visible_text import visible_lines
from shared.errors import LakewrightError

log = structlog.get_logger()


def run(options: StandaloneOptions) -> None:
    """Run the household until a signal requests its end. Raises LakewrightError if it cannot be kept running."""
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: asked.append(received))
    api = f"http://{options.http_address}"
    with data_dir_lock(options.data_dir), _logs(options.data_dir, api) as report:
        require_free_address(options.http_address)
        specs = children(options)
        wanted = WantedActors(options, specs, redis_client(options)).specs if options.actors else None
        supervisor = Supervisor(specs)
        try:
            supervisor.start(should_stop=lambda: bool(asked))
            if not asked:
                log.info("standalone_ready", api=api, data=str(options.data_dir.resolve()))
                report(f"Lakewright is ready: {api}")
            supervisor.run(lambda: bool(asked), wanted)
        finally:
            supervisor.stop()


@contextmanager
def _logs(data_dir: Path, api: str) -> Iterator[Callable[[str], None]]:
    """Log into a file where a shell shows its prompt on our terminal; yields the printer of start messages there."""
    if not is_in_background():
        yield lambda _text: None
        return
    file = closed_dir(data_dir.resolve() / "logs") / "standalone.log"
    with file.open("a", encoding="utf-8") as stream:
        configure_logs(log_level(), log_format(), stream)
        print(f"Starting Lakewright at {api}; `lakewright doctor` checks it; log: {file}", flush=True)
        yield lambda text: print(text, flush=True)


def is_in_background() -> bool:
    """Return whether standard error is a terminal whose foreground belongs to another program, such as a shell."""
    if not sys.stderr.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) != os.getpgrp()
    except OSError:  # Not the terminal of our session.
        return True


_FOLDER = "folder for Redis data, logs and scratch space; default: %(default)s"
_ADDRESS = "host:port of the REST API; default: %(default)s"
_SERVER = "Redis server to run: bundled, system, or the path of its executable; default: %(default)s"
_FSYNC = "when Redis writes its append-only file to disk: every second or at every change; default: %(default)s"
_ACTORS = "0 to run actors elsewhere, 1 to run as many as the queue's setting `actors` says; default: %(default)s"


def main() -> int:
    """Parse the command line; 0 after a requested end, 1 and a sentence on standard error otherwise."""
    parser = argparse.ArgumentParser(
        prog="lakewright standalone", description="Run Redis, a decider and an actor until SIGTERM or Ctrl-C."
    )
    parser.add_argument("--data-dir", type=Path, default=data_dir(os.environ), help=_FOLDER)
    parser.add_argument("--http-address", default=http_address(os.environ), help=_ADDRESS)
    parser.add_argument("--redis-server", default="bundled", help=_SERVER)
    parser.add_argument(
        "--append-fsync", type=AppendFsync, choices=list(AppendFsync), default=AppendFsync.EVERYSEC, help=_FSYNC
    )
    parser.add_argument("--actors", type=int, choices=(0, 1), default=1, help=_ACTORS)
    try:
        configure_logs(log_level(), log_format())
        raise_descriptor_limit()
        chosen = vars(parser.parse_args())
        run(StandaloneOptions(environment=os.environ, table_umask=os.umask(PRIVATE_UMASK), **chosen))
    except LakewrightError as problem:
        print(f"lakewright standalone: {visible_lines(str(problem))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
