"""Compares what a reader found with what the model expects, and what writers were told with what the log holds.

A checker that cannot fail is worth nothing: its tests plant each fault that it names.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.soak.journal import Journals
from tests.soak.model import Model
from tests.soak.values import Row

SAMPLE = 2
"""Ids that a difference names."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a reader and the model differ: numbers of ids, and a few of them for whoever looks into it.

    twice: there more than once. missing: expected and not there. unexpected: there though deleted or never written.
    changed: there with other values.
    """

    table: str
    version: int
    reader: str
    twice: int
    missing: int
    unexpected: int
    changed: int
    sample: Mapping[str, Sequence[object]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.twice or self.missing or self.unexpected or self.changed)

    def __str__(self) -> str:
        counts = f"{self.twice} twice, {self.missing} missing, {self.unexpected} unexpected, {self.changed} changed"
        return f"{self.table} version {self.version} by {self.reader}: {counts}; {dict(self.sample)}"


def compare(place: tuple[str, int, str], expected: Mapping[int, Row], found: Sequence[Row]) -> Difference:
    """Compare the rows of a table; `place`: table, version, reader. A column that a row lacks is null."""
    times = Counter(row["id"] for row in found)
    twice = [key for key, count in times.items() if count > 1]
    missing = [key for key in expected if key not in times]
    unexpected = [key for key in times if key not in expected]
    by_id = {row["id"]: row for row in found}
    changed = [
        (key, expected[key], by_id[key])
        for key in expected.keys() & by_id.keys()
        if _without_nulls(expected[key]) != _without_nulls(by_id[key])
    ]
    sample = {"twice": twice, "missing": missing, "unexpected": unexpected, "changed": changed}
    shown = {name: some[:SAMPLE] for name, some in sample.items() if some}
    return Difference(*place, len(twice), len(missing), len(unexpected), len(changed), shown)


def broken_answers(journals: Journals, models: Mapping[str, Model]) -> list[str]:
    """Return operations that a writer was told are committed, and that the log does not hold, or holds elsewhere."""
    problems = []
    for nonce, answer in journals.answers.items():
        operation = journals.operations[nonce]
        model = models[operation.table]
        if answer.version is None:
            continue
        version = model.found.get(nonce)
        if version is None and not model.effect_is_empty(operation, answer.version):
            problems.append(f"{operation.table}: {nonce} ({operation.action}) was accepted and is not in the log")
        if version is not None and answer.version < version:
            problems.append(f"{operation.table}: {nonce} was accepted as {answer.version} and is version {version}")
    return problems


def lost_answers(journals: Journals, models: Mapping[str, Model]) -> int:
    """Count operations that are in the log though their writer was told otherwise or nothing."""
    found = (nonce for model in models.values() for nonce in model.found)
    return sum(1 for nonce in found if nonce not in journals.answers or journals.answers[nonce].version is None)


def _without_nulls(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}
