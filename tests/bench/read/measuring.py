"""Readers measured on several tables in turns: the same question to each table, in one order and then in the other.

Everything is warm: the pages of the files are in the system's cache, the JVM and the readers have answered the question
before. Ratios are of two tables in the same round, so that load which comes and goes counts for both.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median

from tests.bench.read.readers import Answer, Query, Reader

WARM_UPS = 2


@dataclass(frozen=True, slots=True)
class Timed:
    """Milliseconds and CPU milliseconds of each round; the JVM's CPU clock ticks every ten."""

    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        """Median of the rounds."""
        return median(self.ms)

    @property
    def mean_cpu_ms(self) -> float:
        """Mean of the rounds."""
        return sum(self.cpu_ms) / len(self.cpu_ms)

    def ratio(self, other: "Timed") -> float:
        """Return the median of the ratios to another table in the same rounds."""
        return median(one / two for one, two in zip(self.ms, other.ms, strict=True))

    def cpu_ratio(self, other: "Timed") -> float:
        """Return the ratio of CPU seconds to another table's."""
        return self.mean_cpu_ms / max(other.mean_cpu_ms, 0.001)


Times = Mapping[tuple[str, str], Mapping[str, Timed]]
"""By reader and question, and then by table."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often each question is put to each table: rounds that count, and those before."""

    counted: int
    warm_ups: int


def measure(readers: Sequence[Reader], tables: Mapping[str, Path], asked: Sequence[Query], rounds: Rounds) -> Times:
    """Return the times of every reader; raises if two tables, or two readers, answer a question differently."""
    answers: dict[str, Answer] = {}
    times: dict[tuple[str, str], dict[str, Timed]] = {}
    for reader in readers:
        for table in tables.values():
            reader.open(table)
        for query in asked:
            timed = times[reader.name, query.name] = {name: Timed() for name in tables}
            for number in range(rounds.warm_ups + rounds.counted):
                for name in in_turns(list(tables), number):
                    used_s, began = reader.cpu_s(), time.perf_counter()
                    answer = reader.answer(tables[name], query)
                    took_ms = 1e3 * (time.perf_counter() - began)
                    cpu_ms = 1e3 * (reader.cpu_s() - used_s)
                    if answers.setdefault(query.name, answer) != answer:
                        raise RuntimeError(
                            f"{reader.name} answers {query.name!r} on {name} with {answer}, not {answers}"
                        )
                    if number >= rounds.warm_ups:
                        timed[name].ms.append(took_ms)
                        timed[name].cpu_ms.append(cpu_ms)
            print(f"  {reader.name}, {query.name}: {[round(one.median_ms) for one in timed.values()]} ms", flush=True)
    return times


def in_turns(names: list[str], number: int) -> list[str]:
    """Return the order of round `number`: forwards and backwards by turns, each time from another one on."""
    start = number // 2 % len(names)
    turned = names[start:] + names[:start]
    return turned[::-1] if number % 2 else turned


def overall_ratio(times: Times, name: str, reference: str, reader: str | None = None) -> float:
    """Return the geometric mean of a table's ratios over all questions, of one reader or of all."""
    chosen = [timed for (by, _), timed in times.items() if reader in (None, by)]
    return geometric_mean(timed[name].ratio(timed[reference]) for timed in chosen)
