"""The demonstration says what it waits for and what it found, and leaves no process behind."""

import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from threading import Event

import pytest

from services.demo import __main__ as demo
from services.demo.commit_log import CommitLogSums
from services.demo.demo_run import DemoRun, end_process
from services.demo.report import DemoSnapshot, figures, line
from services.demo.row_checksum import Fingerprint
from shared.policy.policy import Policy
from tests.support.time_limits import scaled

AT_THE_END = DemoSnapshot({}, running=0, waiting=0, backlog=0, version=1, files_needed=9)
RESULT = figures(CommitLogSums(), Policy(), AT_THE_END, Fingerprint(), Fingerprint())


@pytest.mark.parametrize("is_kept", [False, True])
def test_it_says_that_its_folder_is_deleted_and_how_to_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_kept: bool
) -> None:
    monkeypatch.setattr(DemoRun, "run", lambda _self: nullcontext(RESULT))
    monkeypatch.setattr(sys, "argv", ["demo", *(["--keep", str(tmp_path)] if is_kept else [])])
    assert demo.main() == 0
    printed = capsys.readouterr().out
    assert ("--keep DIR" in printed) is not is_kept
    assert "lakewright optimize LOCATION --dry-run" in printed


def test_what_comes_next_runs_in_a_shell_without_the_environment_of_make(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(DemoRun, "run", lambda _self: nullcontext(RESULT))
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert demo.main() == 0
    printed = next(one for one in capsys.readouterr().out.splitlines() if one.endswith(" optimize LOCATION --dry-run"))
    assert Path(printed.split()[0]).is_file()


def test_the_state_in_one_line_counts_the_commits_of_rewrites() -> None:
    assert ", 1 rewriting commit, " in line(CommitLogSums(rewrites=1))
    assert ", 2 rewriting commits, " in line(CommitLogSums(rewrites=2))


def test_the_page_stays_until_it_is_ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Ended(Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    monkeypatch.setattr(DemoRun, "run", lambda _self: nullcontext(RESULT))
    monkeypatch.setattr(demo, "Event", Ended)
    monkeypatch.setattr(sys, "argv", ["demo", "--stay"])
    assert demo.main() == 0
    assert "The page stays at http://127.0.0.1:" in capsys.readouterr().out


PROGRAM = "import signal, sys, time; signal.signal(signal.SIGTERM, {}); print('up', flush=True); time.sleep(600)"
WILLING, DEAF = PROGRAM.format("lambda *_: sys.exit(3)"), PROGRAM.format("signal.SIG_IGN")


def started(code: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"up\n"
    return process


def test_a_process_ends_by_itself_when_it_is_asked() -> None:
    process = started(WILLING)
    end_process(process, scaled(60))
    assert process.returncode == 3


def test_a_process_that_does_not_end_in_time_is_killed() -> None:
    process = started(DEAF)
    end_process(process, 0.2)
    assert process.returncode == -signal.SIGKILL
