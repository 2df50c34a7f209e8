"""One trial: a mutant is applied to a copy of the source tree, and the tests that it names are run there.

A mutant is killed only if each of its tests fails by what it asserts. A test file that cannot be collected, a fixture
that cannot be set up or a run beyond the time limit proves nothing and counts as an error.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

TEST_TIMEOUT_S = {False: 10, True: 300}
"""Least limit of one test without and with Spark on free cores; see `HANGS`."""

HANGS = 20
"""A test that takes so many times what it takes without a mutant, on a machine as busy as now, hangs: it has failed."""


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
        command = [sys.executable, "-P", str(Path(__file__).with_name("warm.py"))]
        environment = os.environ | _environment(self.root)
        self._warm = subprocess.Popen(
            command, cwd=self.root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        """Remove the copy."""
        self._warm.communicate()
        self._directory.cleanup()

    def try_one(self, mutant: Mutant, limit_s: float, usual_s: Mapping[str, float]) -> Trial:
        """Apply a mutant, run its tests, and take it back; `usual_s`: seconds of each test without it."""
        path = self.root / mutant.file
        original = path.read_text(encoding="utf-8")
        started = time.monotonic()
        path.write_text(mutant.mutated(original), encoding="utf-8")
        try:
            with self._compiled(path) as refused:
                longest_s = max(usual_s.get(test, 0.0) for test in mutant.tests)
                least_s = max(TEST_TIMEOUT_S[mutant.spark], HANGS * longest_s)
                outcomes, _, problem = ({}, {}, refused) if refused else self.run(mutant.tests, limit_s, least_s)
        finally:
            path.write_text(original, encoding="utf-8")
        took_s = time.monotonic() - started
        if problem:
            return Trial(mutant, Fate.ERROR, took_s, problem)
        ends = {test: outcomes.get(test, "did not run") for test in mutant.tests}
        passed = [test for test, end in ends.items() if end == "passed"]
        if passed:
            return Trial(mutant, Fate.SURVIVED, took_s, "passed: " + ", ".join(passed))
        unclear = [f"{test} {end}" for test, end in ends.items() if end not in ("failed", "timed out")]
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
        command, environment = [sys.executable, "-c", program], os.environ | _environment(self.root)
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        try:
            yield "" if done.returncode == 0 else f"not compiled: {(done.stdout + done.stderr)[-500:]}"
        finally:
            jar.write_bytes(before)

    def run(self, tests: Iterable[str], limit_s: float, each_s: float) -> tuple[dict[str, str], dict[str, float], str]:
        """Run tests in the copy as it is, with limits of all and of each in seconds on free cores.

        Returns how each ended and what it took, and why nothing is known of them, or ''.
        """
        written = self.root.parent / "outcomes.json"
        written.unlink(missing_ok=True)
        # The machine may be busy now and free for the next one.
        slower = factor_of(_spin_s(), load_per_core())
        arguments = ["-q", "--tb=line", *_PLUGINS, f"--timeout={each_s * slower:.0f}"]
        # The same seed each night: what a property test finds must not depend on the day.
        arguments += ["--hypothesis-seed=0", *sorted(set(tests))]
        environment = {VARIABLE: f"{slower:.2f}", FILE_VARIABLE: str(written), long_suites.VARIABLE: long_suites.ALL}
        code, output = self._pytest(arguments, environment, limit_s * slower)
        if code is None:
            return {}, {}, f"no end within {limit_s * slower:.0f} s"
        if code not in (0, 1) or not written.is_file():
            return {}, {}, f"pytest ended with {code}: {' | '.join(output.strip().splitlines()[-3:])}"
        outcomes, took_s = json.loads(written.read_text(encoding="utf-8"))
        return outcomes, took_s, ""

    def _pytest(
        self, arguments: Sequence[str], environment: Mapping[str, str], limit_s: float
    ) -> tuple[int | None, str]:
        """Run pytest in a fork of the copy's warm process; return its exit code, None if it did not end, and output."""
        output = self.root.parent / "output.txt"
        wanted = {"arguments": arguments, "environment": environment, "output": str(output), "limit_s": limit_s}
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        print(json.dumps(wanted), file=self._warm.stdin, flush=True)
        code = json.loads(self._warm.stdout.readline())
        return code, output.read_text(encoding="utf-8", errors="replace")


_spin_s = cache(spin_s)


def baseline(copy: Copy, mutants: Sequence[Mutant], limit_s: float) -> tuple[list[str], dict[str, float]]:
    """Run all named tests without any mutant; return what is wrong, and the seconds of each.

    A test that fails anyway shows nothing.
    """
    wrong, usual_s = list[str](), dict[str, float]()
    for spark in (False, True):
        tests = {test for mutant in mutants if mutant.spark is spark for test in mutant.tests}
        if not tests:
            continue
        outcomes, took_s, problem = copy.run(tests, limit_s * len(tests), 300)
        usual_s |= took_s
        ends = {test: outcomes.get(test, "did not run") for test in sorted(tests)}
        wrong += [problem] if problem else [f"{test}: {end}" for test, end in ends.items() if end != "passed"]
    return wrong, usual_s


def _environment(where: Path) -> dict[str, str]:
    # Without byte code: its time stamps are too coarse to tell a changed line from the one before.
    return {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(where), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
