"""A command ends with its own exit code: no thread of a library gets to see the interpreter torn down."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

REPORTED = """
import atexit, os, sys

class Torn:
    def __del__(self, write=os.write):
        write(2, b"torn down")

sys.torn = Torn()
sys.argv = ["lakewright", *sys.argv[1:]]
from services.cli.__main__ import app, main
"""


def ended(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", REPORTED + code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_a_failure_is_one_line_and_exit_code_1_and_nothing_is_torn_down(tmp_path: Path) -> None:
    (tmp_path / "notdelta").mkdir()
    done = ended("sys.exit(main())", "what-if", str(tmp_path / "notdelta"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no Delta log" in done.stderr
    assert "torn down" not in done.stderr


def test_what_was_printed_is_written_and_what_was_left_for_the_end_is_done() -> None:
    command = "app.command('leave')(lambda: print('said') or atexit.register(print, 'left'))"
    done = ended(f"{command}; sys.exit(main())", "leave")
    assert (done.returncode, done.stdout, done.stderr) == (0, "said\nleft\n", "")


def test_a_wrong_use_is_exit_code_2() -> None:
    done = ended("sys.exit(main())", "what-if")
    assert done.returncode == 2
    assert "torn down" not in done.stderr


def test_without_that_ending_the_interpreter_would_be_torn_down() -> None:
    assert "torn down" in ended("").stderr
