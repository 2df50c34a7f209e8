"""The supervisor with real processes: order, restarts, and that nothing survives it, however it ends."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.standalone import supervisor as supervisor_module
from services.standalone.supervisor import ChildSpec, Supervisor
from shared.errors import PermanentError
from tests.support.waiting import is_running, until

pytestmark = pytest.mark.e2e

# Notes that it runs, with its process id, and what ended it; starts a grandchild that ignores being asked to end.
CHILD = """
import os, pathlib, signal, subprocess, sys
name, journal, stubborn = sys.argv[1], pathlib.Path(sys.argv[2]), len(sys.argv) > 3
def note(what):
    with journal.open("a") as file: file.write(f"{name} {what}\\n")
deaf = "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"
grandchild = subprocess.Popen([sys.executable, "-c", deaf])
def end(*_):
    note("asked")
    if not stubborn: sys.exit(0)
signal.signal(signal.SIGTERM, end)
note(f"started {os.getpid()} {grandchild.pid}")
print(name, "speaks", flush=True)
while True: signal.pause()
"""


class Journal:
    """What the children noted, in order."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def lines(self) -> list[str]:
        """All lines so far."""
        return self.file.read_text().splitlines() if self.file.exists() else []

    def starts(self, name: str) -> list[tuple[int, int]]:
        """Process ids of child and grandchild for each start of that name."""
        words = [line.split() for line in self.lines()]
        return [(int(word[2]), int(word[3])) for word in words if word[:2] == [name, "started"]]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def child(tmp_path: Path, journal: Journal) -> Callable[..., ChildSpec]:
    def build(name: str, *extra: str, stop_timeout_s: float = 10.0) -> ChildSpec:
        return ChildSpec(
            name=name,
            command=(sys.executable, "-c", CHILD, name, str(journal.file), *extra),
            environment={"PATH": os.environ["PATH"]},
            log_file=tmp_path / "logs" / f"{name}.log",
            obstacle=lambda: "" if journal.starts(name) else "its note in the journal",
            stop_timeout_s=stop_timeout_s,
        )

    return build


def test_children_start_in_order_and_end_in_the_opposite_one(
    journal: Journal, child: Callable[..., ChildSpec], tmp_path: Path
) -> None:
    with Supervisor([child("redis"), child("decider"), child("actor")]):
        pass
    happened = [" ".join(line.split()[:2]) for line in journal.lines()]
    assert happened == [
        "redis started", "decider started", "actor started", "actor asked", "decider asked", "redis asked",
    ]  # fmt: skip
    assert (tmp_path / "logs" / "actor.log").read_text() == "actor speaks\n"
    for name in ("redis", "decider", "actor"):
        for pid in journal.starts(name)[0]:
            until(f"{name} and what it started are gone", lambda pid=pid: not is_running(pid))


def test_a_child_that_is_killed_runs_again_without_what_it_left(
    journal: Journal, child: Callable[..., ChildSpec]
) -> None:
    with Supervisor([child("actor"), child("other")]) as supervisor:
        first, orphan = journal.starts("actor")[0]
        os.kill(first, signal.SIGKILL)

        def started_again() -> bool:
            supervisor.tick()
            return len(journal.starts("actor")) == 2

        until("the child runs again", started_again)
        until("the old grandchild is gone", lambda: not is_running(orphan))
        assert len(journal.starts("other")) == 1


def test_children_that_are_not_wanted_any_more_are_asked_to_end_and_no_other_waits_for_them(
    journal: Journal, child: Callable[..., ChildSpec]
) -> None:
    stays, leaves, comes = child("redis"), child("actor", "stubborn", stop_timeout_s=0.5), child("actor-2")
    with Supervisor([stays, leaves]) as supervisor:
        killed = journal.starts("actor")[0][0]

        def is_running_instead(name: str, count: int) -> bool:
            supervisor.tick()
            return len(journal.starts(name)) == count

        supervisor.keep_only([stays, comes])
        until("the new one runs", lambda: is_running_instead("actor-2", 1))
        supervisor.keep_only([stays, comes])
        until("the other one is gone", lambda: is_running_instead("actor", 1) and not is_running(killed))
        assert "actor asked" in journal.lines()
        supervisor.keep_only([stays, leaves, comes])
        until("it runs once it is wanted again", lambda: is_running_instead("actor", 2))
        assert (len(journal.starts("redis")), len(journal.starts("actor-2"))) == (1, 1)


def test_a_child_whose_guard_is_killed_does_not_run_twice(journal: Journal, child: Callable[..., ChildSpec]) -> None:
    with Supervisor([child("actor")]) as supervisor:
        first, _ = journal.starts("actor")[0]
        guard = supervisor.pid_of("actor")
        assert guard is not None
        os.kill(guard, signal.SIGKILL)

        def started_again() -> bool:
            supervisor.tick()
            return len(journal.starts("actor")) == 2

        until("the child runs again", started_again)
        until("the first one is gone", lambda: not is_running(first))


def test_a_child_that_does_not_end_when_asked_is_killed(journal: Journal, child: Callable[..., ChildSpec]) -> None:
    with capture_logs() as logged, Supervisor([child("stubborn", "ignores", stop_timeout_s=0.3)]):
        pid, grandchild = journal.starts("stubborn")[0]
    assert [entry["ended"] for entry in logged if entry["event"] == "child_stopped"] == ["killed"]
    until("it is gone", lambda: not is_running(pid) and not is_running(grandchild))


def test_a_start_that_fails_says_why_and_ends_what_was_started(
    journal: Journal, child: Callable[..., ChildSpec], tmp_path: Path
) -> None:
    broken = ChildSpec(
        name="broken",
        command=(sys.executable, "-c", "import sys; sys.exit('no table in this house')"),
        environment={},
        log_file=tmp_path / "broken.log",
        obstacle=lambda: "a table",
        explain=lambda tail: "buy a table" if "no table" in tail else "",
    )
    with (
        pytest.raises(PermanentError, match=r"broken ended with code 1 at its start: buy a table") as caught,
        Supervisor([child("redis"), broken]),
    ):
        pytest.fail("a broken child is no start")
    assert "no table in this house" in str(caught.value)
    pid, _ = journal.starts("redis")[0]
    until("the first child is gone", lambda: not is_running(pid))


def test_a_child_that_is_never_ready_is_given_up_with_what_it_lacked_and_without_words_of_an_earlier_one(
    tmp_path: Path,
) -> None:
    never = ChildSpec(
        name="never",
        command=(sys.executable, "-c", "import signal; signal.pause()"),
        environment={},
        log_file=tmp_path / "never.log",
        obstacle=lambda: "an answer from http://nowhere",
        ready_timeout_s=0.2,
    )
    never.log_file.write_text("of an earlier one: stopped\n")
    with pytest.raises(PermanentError) as caught, Supervisor([never]):
        pytest.fail("not ready")
    stated = str(caught.value)
    assert "never was not ready within 0.2 s, it still lacked an answer from http://nowhere" in stated
    assert stated.endswith(f". It printed nothing to {never.log_file}")


def test_a_slow_child_is_waited_for_and_what_it_lacks_is_reported_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "REPORT_EVERY_S", 0.1)
    ready, go = tmp_path / "ready", tmp_path / "go"
    slow_code = (
        "import pathlib, signal, sys, time\n"
        "print('loading 3 of 9', flush=True)\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "signal.pause()"
    )
    slow = ChildSpec(
        name="slow",
        command=(sys.executable, "-c", slow_code),
        environment={},
        log_file=tmp_path / "slow.log",
        obstacle=lambda: "" if ready.exists() else "the file ready",
        ready_timeout_s=60.0,
    )
    with capture_logs() as stated:

        def obstacle_removed() -> str:
            if any(entry["event"] == "child_not_ready" and entry["log_ends"] for entry in stated):
                go.touch()
            return slow.obstacle()

        with Supervisor([replace(slow, obstacle=obstacle_removed)]):
            pass
    waits = [entry for entry in stated if entry["event"] == "child_not_ready"]
    assert waits, "it said nothing while it waited"
    assert waits[-1]["child"] == "slow"
    assert waits[-1]["waits_for"] == "the file ready"
    assert waits[-1]["log_ends"] == "loading 3 of 9"
    assert waits[-1]["gives_up_after_s"] == 60


def test_a_child_that_never_lives_long_is_given_up_after_a_bounded_number_of_starts(
    tmp_path: Path,
) -> None:
    restarts = replace(supervisor_module.RESTARTS, first_s=0.001, longest_s=0.002)
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('x')"
    crashing = ChildSpec("crashing", (sys.executable, "-c", code), {}, tmp_path / "crashing.log")
    with Supervisor([crashing], restarts=restarts) as supervisor, pytest.raises(PermanentError, match="times in a row"):
        until("it is given up", supervisor.tick)
    assert len(starts.read_text()) == supervisor_module.RESTARTS.max_attempts == 9


def test_a_child_has_the_umask_that_it_was_given_and_its_log_the_supervisors(tmp_path: Path) -> None:
    """A child that writes into tables of others must not close their files to them."""
    before = os.umask(0o077)
    try:
        code = f"import signal; open({str(tmp_path / 'data')!r}, 'w').close(); signal.pause()"
        writer = ChildSpec(
            name="writer",
            command=(sys.executable, "-c", code),
            environment={},
            log_file=tmp_path / "logs" / "writer.log",
            obstacle=lambda: "" if (tmp_path / "data").exists() else "its file",
            umask=0o002,
        )
        with Supervisor([writer]):
            assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o664
            assert stat.S_IMODE(writer.log_file.stat().st_mode) == 0o600
            assert stat.S_IMODE(writer.log_file.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)


SUPERVISE = """
import pathlib, sys
from services.standalone.supervisor import ChildSpec, Supervisor
name, journal, folder, code = sys.argv[1:]
spec = ChildSpec(name, (sys.executable, "-c", code, name, journal), {}, pathlib.Path(folder) / "log")
with Supervisor([spec]) as supervisor:
    supervisor.run(lambda: False)
"""


def test_children_and_grandchildren_die_with_a_supervisor_that_is_killed(journal: Journal, tmp_path: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, "actor", str(journal.file), str(tmp_path), CHILD],
        stdout=subprocess.DEVNULL,
    )
    try:
        until("the child runs", lambda: journal.starts("actor"))
        pids = journal.starts("actor")[0]
        assert all(is_running(pid) for pid in pids)
    finally:
        supervisor.kill()
        supervisor.wait()
    until("no one is left", lambda: not any(is_running(pid) for pid in pids))
    assert journal.lines()[-1].startswith("actor started"), "killed, not asked: there is no one to wait for an answer"
