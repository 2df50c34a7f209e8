"""The figures of this benchmark as text for people and as values for JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.policy.policy import MIB
from tests.bench.read.measuring import Timed, Times, overall_ratio
from tests.bench.read.row_groups import size_text
from tests.bench.read.table import GrownTable

GOAL = 1.05
"""Ours over OPTIMIZE's, in time and in bytes."""


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def layouts(grown: Mapping[str, GrownTable], reference: str) -> str:
    """Return what each rule left, as a table."""
    least = grown[reference].layout.bytes
    rows = [
        (
            one.title,
            f"{len(one.layout.files):,}",
            f"{len(one.layout.row_groups):,}",
            size_text(one.layout.mean_row_group_bytes),
            size_text(one.layout.half_in_bytes),
            f"{one.layout.bytes / MIB:.1f} MiB",
            f"{one.layout.bytes / least:.3f}",
            f"{one.bytes_rewritten / MIB:.0f} MiB",
            "" if one.copied is None else f"{one.copied} / {one.encoded}",
            f"{one.seconds:.0f} s",
        )
        for one in grown.values()
    ]
    head = (
        *("rule", "files", "row groups", "mean", "half of the bytes in", "bytes", "ratio", "rewritten"),
        *("copied / encoded", "took"),
    )
    return markdown(head, rows)


def reading(times: Times, titles: Mapping[str, str], reference: str) -> str:
    """Return the times by reader and question, each as milliseconds, and the ratios of time and of CPU."""

    def shown(timed: Timed, other: Timed) -> str:
        return f"{timed.median_ms:.0f} ({timed.ratio(other):.2f}, {timed.cpu_ratio(other):.2f})"

    rows = [
        (f"{reader}, {question}", *(shown(timed, by_table[reference]) for timed in by_table.values()))
        for (reader, question), by_table in times.items()
    ]
    return markdown(("ms (ratio of time, of CPU)", *titles.values()), rows)


def goals(times: Times, grown: Mapping[str, GrownTable], name: str, reference: str) -> list[str]:
    """Return, a line each, whether a rule's table meets the goals."""
    readers = dict.fromkeys(reader for reader, _ in times)
    ratios = {f"time of {reader}": overall_ratio(times, name, reference, reader) for reader in readers}
    ratios["time of all readers"] = overall_ratio(times, name, reference)
    ratios["bytes"] = grown[name].layout.bytes / grown[reference].layout.bytes
    return [
        f"{'met ' if ratio <= GOAL else 'MISS'} {what}: {ratio:.3f} x {grown[reference].title} (at most {GOAL})"
        for what, ratio in ratios.items()
    ]


def times_as_values(times: Times, reference: str) -> list[dict[str, Any]]:
    """Return all times and ratios as values for JSON."""
    return [
        {
            "reader": reader,
            "query": question,
            "table": name,
            "median_ms": round(timed.median_ms, 2),
            "mean_cpu_ms": round(timed.mean_cpu_ms, 2),
            "ratio": round(timed.ratio(by_table[reference]), 3),
            "cpu_ratio": round(timed.cpu_ratio(by_table[reference]), 3),
            "ms": [round(ms, 2) for ms in timed.ms],
        }
        for (reader, question), by_table in times.items()
        for name, timed in by_table.items()
    ]
