"""`make nightly` runs each suite and bench, goes on after failures, and its report says how each ended."""

import json
import re
import sys
from pathlib import Path

from tests.support.everything import BENCHES, IN_TEST_ALL, SUITES, TargetResult, run, unlisted, write_report
from tests.support.long_suites import TARGETS

ROOT = Path(__file__).resolve().parents[3]
MAKE = (sys.executable, "-c")


def makefile_targets() -> list[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = " ".join(re.findall(r"^([a-z0-9 -]+): ", makefile, re.MULTILINE)).split()
    for rule, names in (("test", "SUITES"), ("bench", "BENCHES")):
        listed = re.search(rf"^{names} := (.+)$", makefile, re.MULTILINE)
        assert listed, names
        targets += [f"{rule}-{name}" for name in listed[1].split()]
    return targets


def test_each_suite_and_bench_of_the_makefile_is_run() -> None:
    assert unlisted(makefile_targets()) == []
    assert {*SUITES, *BENCHES} <= {*makefile_targets()}
    assert {*TARGETS.values()} <= {*SUITES, *IN_TEST_ALL}


def test_a_failure_a_success_and_a_target_without_end_are_told_apart(tmp_path: Path) -> None:
    passed = run("test", tmp_path, make=(*MAKE, "print('=== 3 passed, 1 skipped in 2.00s ===')"))
    assert (passed.result, passed.counts) == ("passed", "3 passed, 1 skipped")
    failed = run("check", tmp_path, make=(*MAKE, "print('1 failed, 2 passed in 1.00s'); raise SystemExit(2)"))
    assert (failed.result, failed.counts) == ("failed (2)", "1 failed, 2 passed")
    endless = run("soak", tmp_path, make=(*MAKE, "import signal; signal.pause()"), limit_s=0.2)
    assert endless.result == "ended after 0 s"
    assert (tmp_path / "test.log").read_text().startswith("===")


def test_figures_are_asked_for_where_a_target_keeps_them(tmp_path: Path) -> None:
    program = "import sys; path = sys.argv[-1].removeprefix('JSON='); open(path, 'w').write('{}')"
    assert run("bench-queue", tmp_path, make=(*MAKE, program)).figures == "bench-queue.json"


def test_the_report_has_a_row_for_each_target(tmp_path: Path) -> None:
    results = [TargetResult("test", "passed", 61.4, "3 passed"), TargetResult("soak", "failed (2)", 5.0)]
    write_report(results, tmp_path, {"begun": "now"})
    page = (tmp_path / "report.md").read_text()
    assert "| `test` | passed | 61 s | 3 passed |  |" in page
    assert "targets: 2, of which 1 did not pass" in page
    assert [one["result"] for one in json.loads((tmp_path / "report.json").read_text())["targets"]] == [
        "passed",
        "failed (2)",
    ]
