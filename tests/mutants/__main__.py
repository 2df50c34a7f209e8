"""`make mutants`: apply each one-line change of the catalog to a copy, and see whether its tests notice.

Mutants that an earlier run killed are left out while nothing of them has changed. Exit code 1 if one survives, does not
apply any more, or names a test that fails or is skipped without it.

Results of earlier runs: a mutant that was killed is not tried again while it, its file and its tests are as before.

Its tests may import what has changed since, so a result is good for some days only, and `--again` believes none. How
long a trial took says how long another will.
"""

import argparse
import json
import queue
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any

from tests.mutants.catalog import CHANGES, TREE, Mutant, load, not_applying
from tests.mutants.trial import Copy, Fate, Trial, baseline

DAYS = 14
"""Days for which a result is good."""

_USUAL_S = {False: 5.0, True: 60.0}
"""Seconds of a trial without and with Spark, where none is known."""


@dataclass(slots=True)
class KeptTrials:
    """Trials in a file: of each mutant the last one, and the digest of what it was tried on."""

    file: Path
    tree: Path
    _found: dict[str, dict[str, Any]] = field(default_factory=dict)

    _digests: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read()

    def _read(self) -> None:
        if self.file.is_file():
            self._found = json.loads(self.file.read_text(encoding="utf-8"))

    def is_killed(self, mutant: Mutant) -> bool:
        """Return whether the last trial, on the same texts, killed a mutant."""
        last = self._found.get(mutant.name, {"digest": "", "at_s": 0})
        return last["at_s"] > time.time() - DAYS * 86_400 and last["digest"] == self._digest(mutant)

    def add(self, trial: Trial) -> None:
        """Keep a trial at once: a run may be ended in between, and another one beside it has results, too."""
        digest = self._digest(trial.mutant) if trial.fate is Fate.KILLED else ""
        self._read()
        self._found[trial.mutant.name] = {"digest": digest, "took_s": round(trial.took_s, 1), "at_s": int(time.time())}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self._found, sort_keys=True), encoding="utf-8")

    def expected_s(self, mutants: Iterable[Mutant], jobs: int) -> float:
        """Return how long trials of these will take: several at once but for those with Spark, by their last ones."""
        every = list(mutants)
        plain, spark = (sum(self._took_s([one for one in every if one.spark is kind])) for kind in (False, True))
        return plain / jobs + spark

    def _took_s(self, mutants: Sequence[Mutant]) -> list[float]:
        known = [self._found[one.name]["took_s"] for one in mutants if one.name in self._found]
        usual = median(known) if known else _USUAL_S[bool(mutants and mutants[0].spark)]
        return [self._found.get(one.name, {"took_s": usual})["took_s"] for one in mutants]

    def _digest(self, mutant: Mutant) -> str:
        """Return the digest as it first was: the tree may change while its copy is tried."""
        if mutant.name not in self._digests:
            self._digests[mutant.name] = self._digest_now(mutant)
        return self._digests[mutant.name]

    def _digest_now(self, mutant: Mutant) -> str:
        found = blake2b(repr(mutant).encode(), digest_size=16)
        for name in sorted({mutant.file, *(test.partition("::")[0] for test in mutant.tests)}):
            found.update((self.tree / name).read_bytes())
        return found.hexdigest()


def main() -> int:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="mutants whose name or file this matches")
    parser.add_argument("--again", action="store_true", help="try those, too, that an earlier run killed")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once; those that need Spark run one by one")
    parser.add_argument("--without-spark", action="store_true", help="leave out the mutants that need Spark")
    parser.add_argument("--limit-s", type=float, default=600, help="time limit of one mutant's tests, in seconds")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--tree", type=Path, default=TREE, help="the source tree that is copied and changed")
    parser.add_argument("--changes", type=Path, default=CHANGES, help="the catalog: a directory of TOML files")
    arguments = parser.parse_args()
    mutants = [m for m in load(arguments.changes) if re.search(arguments.only, f"{m.name} {m.file}")]
    mutants = [m for m in mutants if not (m.spark and arguments.without_spark)]
    if not mutants:
        sys.exit(f"no mutant matches {arguments.only!r}")
    started = time.monotonic()
    if wrong := not_applying(mutants, arguments.tree):
        return _refuse("these mutants do not apply any more", wrong)
    kept = KeptTrials(arguments.tree / ".cache" / "mutants.json", arguments.tree)
    chosen = [m for m in mutants if not kept.is_killed(m) or arguments.again]
    print(
        f"[mutants] {len(mutants)} mutants, {len(mutants) - len(chosen)} of them killed by an earlier run as they are"
    )
    if not chosen:
        return 0
    minutes = kept.expected_s(chosen, arguments.jobs) / 60
    print(f"[mutants] some {minutes:.0f} minutes, and first all tests without any of them", flush=True)
    with ExitStack() as stack:
        copies = [stack.enter_context(closing(Copy(arguments.tree))) for _ in range(min(arguments.jobs, len(chosen)))]
        wrong, usual_s = baseline(copies[0], chosen, arguments.limit_s)
        if wrong:
            return _refuse("these tests do not pass without a mutant, so that they would show nothing", wrong)
        trials = _print_each(_try_all(chosen, copies, arguments.limit_s, usual_s), len(chosen), kept)
    _summarize(trials, time.monotonic() - started)
    if arguments.json:
        arguments.json.write_text(json.dumps(_figures(trials), indent=2) + "\n", encoding="utf-8")
    return 0 if all(trial.fate is Fate.KILLED for trial in trials) else 1


def _refuse(what: str, wrong: Sequence[str]) -> int:
    print(f"[mutants] {what}:", *wrong, sep="\n  ")
    return 1


def _try_all(
    mutants: Sequence[Mutant], copies: Sequence[Copy], limit_s: float, usual_s: Mapping[str, float]
) -> Iterator[Trial]:
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def attempt(mutant: Mutant) -> Trial:
        copy = free.get()
        try:
            return copy.try_one(mutant, limit_s, usual_s)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        waiting = [pool.submit(attempt, mutant) for mutant in mutants if not mutant.spark]
        yield from (done.result() for done in as_completed(waiting))
    for mutant in mutants:
        if mutant.spark:
            yield copies[0].try_one(mutant, limit_s, usual_s)


def _print_each(trials: Iterator[Trial], total: int, kept: KeptTrials) -> list[Trial]:
    done: list[Trial] = []
    for trial in trials:
        done.append(trial)
        kept.add(trial)
        note = f"  {trial.note}" if trial.note else ""
        print(f"{len(done):4}/{total} {trial.fate:8} {trial.took_s:5.1f} s  {trial.mutant.name}{note}", flush=True)
    return done


def _summarize(trials: Sequence[Trial], took_s: float) -> None:
    fates = Counter((trial.mutant.name.partition(".")[0], trial.fate) for trial in trials)
    print(f"\n{'area':12} {'mutants':>7} " + " ".join(f"{fate:>8}" for fate in Fate))
    for area in sorted({area for area, _ in fates}):
        counts = [fates[area, fate] for fate in Fate]
        print(f"{area:12} {sum(counts):7} " + " ".join(f"{count:8}" for count in counts))
    for trial in trials:
        if trial.fate is not Fate.KILLED:
            print(f"\n{trial.fate} {trial.mutant.name}: {trial.mutant.rule}\n  {trial.mutant.file}: {trial.mutant.old}")
            print(f"  became: {trial.mutant.new or '(deleted)'}\n  {trial.note}")
    killed = sum(trial.fate is Fate.KILLED for trial in trials)
    print(f"\n[mutants] {killed} of {len(trials)} killed in {took_s:.0f} s")


def _figures(trials: Sequence[Trial]) -> list[dict[str, object]]:
    return [
        {
            "name": trial.mutant.name,
            "file": trial.mutant.file,
            "rule": trial.mutant.rule,
            "fate": trial.fate,
            "took_s": round(trial.took_s, 1),
            "note": trial.note,
        }
        for trial in sorted(trials, key=lambda trial: trial.mutant.name)
    ]


if __name__ == "__main__":
    sys.exit(main())
