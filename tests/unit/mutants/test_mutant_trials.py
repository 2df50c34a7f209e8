"""What a trial makes of the ends of its tests, without running any."""

from pathlib import Path
from typing import Any

import pytest

from tests.mutants.catalog import Mutant
from tests.mutants.trial import HANGS, TEST_TIMEOUT_S, Copy, Fate

TEST = "test_code.py::test_less"
ONE = Mutant("area.one", "code.py", "return a < b", "return a <= b", "a rule", (TEST,))


@pytest.mark.parametrize(
    ("end", "fate"),
    [
        ("failed", Fate.KILLED),
        ("timed out", Fate.KILLED),
        ("passed", Fate.SURVIVED),
        ("skipped", Fate.ERROR),
        ("setup failed", Fate.ERROR),
    ],
)
@pytest.mark.parametrize(("usual_s", "least_s"), [(0.1, TEST_TIMEOUT_S[False]), (10.0, 10.0 * HANGS)])
def test_a_test_hangs_that_takes_many_times_what_it_takes_without_the_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, fate: Fate, usual_s: float, least_s: float
) -> None:
    """A limit that is the same for all would take a slow test on a busy machine for a killed mutant."""
    (tmp_path / "code.py").write_text("def less(a, b):\n    return a < b\n")
    limits = list[float]()

    def run(_: Copy, tests: Any, __: float, each_s: float) -> Any:
        limits.append(each_s)
        return dict.fromkeys(tests, end), {}, ""

    monkeypatch.setattr(Copy, "run", run)
    copy = Copy.__new__(Copy)
    copy.root = tmp_path
    assert copy.try_one(ONE, 600, {TEST: usual_s}).fate is fate
    assert limits == [least_s]
