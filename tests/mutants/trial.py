"""One trial: a mutant is applied to a copy of the source tree, and the tests that it names are run there.

A mutant is killed only if each of its tests fails by what it asserts. A test file that cannot be collected, a fixture
that cannot be set up or a run beyond the time limit proves nothing and counts as an error.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from tests.mutants.catalog import Mutant
from tests.mutants.outcomes import FILE_VARIABLE
from tests.support import long_suites
from tests.support.time_limits import VARIABLE, factor_of, load_per_core, spin_s

_LEFT_OUT = (".*", "__pycache__", "dist", "artifacts", "*.egg-info", "spark-warehouse", "metastore_db")
_LINKED = (".venv", ".cache")
"""What a copy shares with the checkout: installed packages, downloaded jars."""

_PLUGINS = (
    "-p",
    "tests.mutants.outcomes",
    "-p",
    "_hypothesis_pytestplugin",
    "-p",
    "pytest_timeout",
    "-p",
    "xdist.plugin",
)
"""Only what the tests need: to load all that is installed takes longer than most tests do."""

TEST_TIMEOUT_S = {False: 120, True: 300}
"""Limit of one test without and with Spark on free cores, far above the slowest one that a mutant names and the start of
a JVM. It only ends hangs: a test that reaches it has shown nothing, so a mutant must make its tests fail before."""


class Fate(StrEnum):
    """What became of a mutant: killed by its tests, survived one of them, or nothing was shown."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Trial:
    """How one mutant ended, with the tests that passed although they should have failed, or why nothing was shown."""

    mutant: Mutant
    fate: Fate
    took_s: float
    note: str = ""


class Copy:
    """A copy of a source tree in a temporary directory, where one mutant at a time is applied."""

    def __init__(self, tree: Path) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="lakewright-mutants-")
        self.root = Path(self._directory.name).resolve() / "tree"
        shutil.copytree(tree, self.root, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        for name in _LINKED:
            if (tree / name).exists():
                (self.root / name).symlink_to((tree / name).resolve())

    def close(self) -> None:
        """Remove the copy."""
        self._directory.cleanup()

    def try_one(self, mutant: Mutant, limit_s: float) -> Trial:
        """Apply a mutant, run its tests, and take it back."""
        path = self.root / mutant.file
        original = path.read_text(encoding="utf-8")
        started = time.monotonic()
        path.write_text(mutant.mutated(original), encoding="utf-8")
        try:
            with self._compiled(path) as refused:
                outcomes, problem = ({}, refused) if refused else self.run(mutant.tests, limit_s, spark=mutant.spark)
        finally:
            path.write_text(original, encoding="utf-8")
        took_s = time.monotonic() - started
        if problem:
            return Trial(mutant, Fate.ERROR, took_s, problem)
        ends = {test: outcomes.get(test, "did not run") for test in mutant.tests}
        passed = [test for test, end in ends.items() if end == "passed"]
        if passed:
            return Trial(mutant, Fate.SURVIVED, took_s, "passed: " + ", ".join(passed))
        unclear = [f"{test} {end}" for test, end in ends.items() if end != "failed"]
        return Trial(mutant, Fate.ERROR if unclear else Fate.KILLED, took_s, ", ".join(unclear))

    @contextmanager
    def _compiled(self, path: Path) -> Iterator[str]:
        """Compile a changed Java source into the jar of the copy for a while; yields why that cannot be done, or ''."""
        if path.suffix != ".java":
            yield ""
            return
        jar = self.root / "actor" / "jvm" / "lakewright.jar"
        before = jar.read_bytes()
        # A mutant may leave behind what is used no more.
        program = "import sys; from services import java_jar; java_jar.WARNINGS = 'none'; sys.exit(java_jar.main())"
        code, output = _run([sys.executable, "-c", program], self.root, {}, TEST_TIMEOUT_S[True])
        try:
            yield "" if code == 0 else f"not compiled: {output[-500:]}"
        finally:
            jar.write_bytes(before)

    def run(self, tests: Iterable[str], limit_s: float, *, spark: bool) -> tuple[dict[str, str], str]:
        """Run tests in the copy as it is; return how each ended, and why nothing is known of them, or ''."""
        written = self.root.parent / "outcomes.json"
        written.unlink(missing_ok=True)
        # The machine may be busy now and free for the next one.
        slower = factor_of(_spin_s(), load_per_core())
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line", *_PLUGINS]
        command += [f"--timeout={TEST_TIMEOUT_S[spark] * slower:.0f}"]
        # The same seed each night: what a property test finds must not depend on the day.
        command += ["--hypothesis-seed=0", *sorted(set(tests))]
        environment = {VARIABLE: f"{slower:.2f}", FILE_VARIABLE: str(written), long_suites.VARIABLE: long_suites.ALL}
        code, output = _run(command, self.root, environment, limit_s * slower)
        if code is None:
            return {}, f"no end within {limit_s * slower:.0f} s"
        if code not in (0, 1) or not written.is_file():
            return {}, f"pytest ended with {code}: {' | '.join(output.strip().splitlines()[-3:])}"
        return json.loads(written.read_text(encoding="utf-8")), ""


_spin_s = cache(spin_s)


def baseline(copy: Copy, mutants: Sequence[Mutant], limit_s: float) -> list[str]:
    """Run all named tests without any mutant; return what is wrong: a test that fails anyway shows nothing."""
    wrong: list[str] = []
    for spark in (False, True):
        tests = {test for mutant in mutants if mutant.spark is spark for test in mutant.tests}
        if not tests:
            continue
        outcomes, problem = copy.run(tests, limit_s * len(tests), spark=spark)
        ends = {test: outcomes.get(test, "did not run") for test in sorted(tests)}
        wrong += [problem] if problem else [f"{test}: {end}" for test, end in ends.items() if end != "passed"]
    return wrong


def _run(command: Sequence[str], where: Path, extra: dict[str, str], limit_s: float) -> tuple[int | None, str]:
    """Run a command; return its exit code and output, or None if it did not end within the limit."""
    # Without byte code: its time stamps are too coarse to tell a changed line from the one before.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(where)} | extra
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=where, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return code, output.read()
