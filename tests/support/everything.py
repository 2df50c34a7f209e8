"""`make nightly`: runs all suites and benches by their targets, one after another, and writes one report.

A target that fails or takes too long does not keep the others from running. Each writes a log of its own; the report
says of each how long it took, how it ended and what its tests counted. It is written again after each target, so that a
run that is cut off leaves what it did.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.machine import machine
from tests.support.long_suites import TARGETS
from tests.support.stack import ROOT

SUITES = (
    "test-all",
    "coverage",
    "test-properties",
    "test-rigs",
    "test-altered",
    "scan",
    "test-page",
    "test-kafka",
    "test-iceberg",
    "test-proofread",
    "test-qbeast",
    "test-care",
    "copies",
    "test-spark-cluster",
    "interop",
    "mutants",
    "stress",
    "load",
    "test-attacks",
    "chaos",
    "soak",
    "test-images",
    "test-cluster",
)
IN_TEST_ALL = frozenset({"test", "test-crashes", "test-contracts", "test-s3"})
_MEASURED = (
    "policy fleet netflix queue decide capacity rebuild rewrite spark-cluster delta iceberg writers autocomp read "
    "advice"
)
BENCHES = tuple(f"bench-{name}" for name in _MEASURED.split())
WITH_JSON = frozenset({"load", "test-attacks", "chaos", "mutants", "soak", "coverage", *BENCHES})
"""Targets that keep their figures in a file, which the report names."""

LIMIT_S = 3 * 3_600.0
"""Longest time for one target, after which it is ended: the slowest takes an hour and a half on two busy cores."""

_COUNTS = re.compile(
    r"^=*\s*((?:\d+ (?:failed|passed|skipped|errors?|deselected|warnings?)(?:, )?)+) in ", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class TargetResult:
    """How one target ended; `counts` is the last summary of its tests, `figures` the file of its measurements."""

    target: str
    result: str
    seconds: float
    counts: str = ""
    figures: str = ""
    log: str = ""


def run(target: str, folder: Path, *, limit_s: float = LIMIT_S, make: Sequence[str] = ("make",)) -> TargetResult:
    """Run one target with its log below a folder."""
    log, figures = folder / f"{target}.log", folder / f"{target}.json"
    command = [*make, "--no-print-directory", target, *([f"JSON={figures}"] if target in WITH_JSON else [])]
    began_s = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)
        try:
            code = process.wait(limit_s)
            result = "passed" if code == 0 else f"failed ({code})"
        except subprocess.TimeoutExpired:
            result = f"ended after {limit_s:.0f} s"
        finally:
            _end(process)
    counts = _COUNTS.findall(log.read_text(encoding="utf-8", errors="replace"))
    return TargetResult(
        target=target,
        result=result,
        seconds=round(time.monotonic() - began_s, 1),
        counts=counts[-1] if counts else "",
        figures=figures.name if figures.is_file() else "",
        log=log.name,
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of a target: it has a session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def write_report(results: Sequence[TargetResult], folder: Path, about: dict[str, object]) -> None:
    """Write the report as JSON and as a page."""
    whole = {**about, "targets": [asdict(one) for one in results]}
    (folder / "report.json").write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    rows = [
        f"| `{one.target}` | {one.result} | {one.seconds:.0f} s | {one.counts} | {one.figures} |" for one in results
    ]
    failed = sum(one.result != "passed" for one in results)
    head = [
        "# Everything",
        "",
        *(f"- {name.replace('_', ' ')}: {value}" for name, value in about.items()),
        f"- targets: {len(results)}, of which {failed} did not pass",
        "",
        "| target | result | time | tests | figures |",
        "|---|---|---|---|---|",
    ]
    (folder / "report.md").write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")


def main() -> int:
    """Run the targets that were asked for; 1 if one did not pass."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.everything")
    parser.add_argument("--only", default="", help="regular expression: only targets that it matches")
    parser.add_argument("--to", type=Path, default=ROOT / "artifacts" / "everything", help="folder of report and logs")
    asked = parser.parse_args()
    targets = [one for one in (*SUITES, *BENCHES) if re.search(asked.only, one)]
    if not targets:
        parser.error(f"no target matches {asked.only!r}; there are {', '.join((*SUITES, *BENCHES))}")
    asked.to.mkdir(parents=True, exist_ok=True)
    about: dict[str, object] = {"begun": datetime.now(UTC).isoformat(timespec="seconds"), **machine()}
    results: list[TargetResult] = []
    for target in targets:
        print(f"[everything] {target} ...", end=" ", flush=True)
        results.append(run(target, asked.to))
        print(f"{results[-1].result} in {results[-1].seconds:.0f} s {results[-1].counts}", flush=True)
        write_report(results, asked.to, about)
    print(f"[everything] {asked.to / 'report.md'}")
    return int(any(one.result != "passed" for one in results))


def unlisted(targets: Sequence[str]) -> list[str]:
    """Return which of the Makefile's targets run tests or measure, and are in no list."""
    listed = {*SUITES, *BENCHES, *IN_TEST_ALL}
    return [one for one in targets if one not in listed and (one.startswith(("test-", "bench-")) or one in TARGETS)]


if __name__ == "__main__":
    sys.exit(main())
