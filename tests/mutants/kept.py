"""Results of earlier runs: a mutant that was killed is not tried again while it, its file and its tests are as before.

Its tests may import what has changed since, so a result is good for some days only, and `--again` believes none. How
long a trial took says how long another will.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any

from tests.mutants.catalog import Mutant
from tests.mutants.trial import Fate, Trial

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
