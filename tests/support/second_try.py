"""`python -m tests.support.second_try [pytest's arguments]`: runs the tests again, alone, that failed beside others.

On a busy machine a service that a test waits for may be late, which says nothing of the product. Tests of laws get no
second try: what they look for may happen once in many runs. Neither does a run with many failures.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.long_suites import spells

MOST = 5
"""Tests that are run again at most; where more fail, the product is broken or the machine is."""

FOLDERS = ("tests/unit/", "tests/integration/", "tests/page/")
"""Tests that may be late; those of contracts, properties and ends of processes hold laws."""

_GROUP = re.compile(r"@[\w-]+$")
"""What pytest-xdist appends to the id of a test of a group."""

_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def may_be_late(test: str, root: Path) -> bool:
    """Return whether a test, by its id, gets a second try."""
    return test.startswith(FOLDERS) and not spells(root / test.partition("::")[0], "crashes")


def main(arguments: Sequence[str], root: Path, run: Callable[[list[str]], int]) -> int:
    """Return 0 if each test that failed last in the checkout `root` passes now."""
    kept = root / _FAILED
    listed = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    failed = sorted(_GROUP.sub("", test) for test in listed)
    lasting = [test for test in failed if not may_be_late(test, root)]
    if not failed or lasting or len(failed) > MOST:
        print(f"[second try] none: {len(failed)} failed, {len(lasting)} of them get no second try", flush=True)
        return 1
    print("[second try] alone:", *failed, sep="\n  ", flush=True)
    return run([*arguments, *failed])


def run_pytest(arguments: list[str]) -> int:
    """Run tests in a process of their own: pytest loads what this one has imported, and takes it amiss."""
    return subprocess.call([sys.executable, "-m", "pytest", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path.cwd(), run_pytest))
