"""A call imports what its own command needs and nothing else: that is what makes the command line answer quickly."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stack import free_port
from tests.support.time_limits import scaled

ROOT = Path(__file__).parents[2]

COUNTED = """
import json, sys
sys.argv = ["lakewright", *sys.argv[1:]]
from services.cli.__main__ import app
try:
    app(prog_name="lakewright")
except BaseException:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""

HEAVY = {"asyncio", "deltalake", "fastapi", "obstore", "prometheus_client", "pyarrow", "pyspark", "redis", "structlog"}
"""Libraries that no plain call to the decider needs."""


def imported(*arguments: str) -> set[str]:
    """Return the modules that one command imports, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def commands(modules: set[str]) -> set[str]:
    prefix = "services.cli.commands."
    return {name.removeprefix(prefix) for name in modules if name.startswith(prefix)}


@pytest.mark.parametrize("command", ["tables list", "jobs list", "actors list", "status", "watch"])
def test_a_call_imports_its_own_command_and_no_service(command: str) -> None:
    modules = imported("--url", f"http://127.0.0.1:{free_port()}", *command.split())
    assert len(commands(modules)) == 1, commands(modules)
    assert sorted(HEAVY & modules) == []
    ours = {name.split(".")[0] for name in modules} & {"actor", "decider"}
    assert not ours


def test_the_version_needs_no_command_and_no_client() -> None:
    modules = imported("--version")
    assert not commands(modules)
    assert sorted((HEAVY | {"httpx"}) & modules) == []


def test_help_needs_no_client() -> None:
    assert sorted((HEAVY | {"httpx"}) & imported("--help")) == []


def test_the_command_line_starts_without_loading_spark_or_the_decider() -> None:
    heavy = ("pyspark", "obstore", "fastapi", "pydantic")
    code = f"import sys, services.cli.__main__; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=scaled(60)
    )
    assert done.stdout == "[]\n"


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


def test_without_that_ending_the_interpreter_would_be_torn_down() -> None:
    assert "torn down" in ended("").stderr
