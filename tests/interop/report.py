"""The matrix as JSON and as a page: combinations, differences with their proof, and what each engine cannot do."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.interop.known import explain, recognized
from tests.interop.plan import whole
from tests.interop.verdicts import Place, Result, Verdict, essence

_SIGNS = {
    Verdict.AGREES: "yes",
    Verdict.CANNOT: "cannot",
    Verdict.THEIRS: "own",
    Verdict.REFUSED: "refused",
    Verdict.KNOWN: "known",
    Verdict.OURS: "**no**",
}
_MEANS = {
    Verdict.AGREES: "the engine finds what the model holds",
    Verdict.CANNOT: "the engine fails, and so it does on the table that was never rewritten",
    Verdict.THEIRS: "the engine differs, and so it does on the table that was never rewritten",
    Verdict.REFUSED: "Lakewright does not rewrite this table and says why",
    Verdict.KNOWN: "a difference that the rewrite makes, understood and explained below",
    Verdict.OURS: "a difference that only the rewrite makes: a defect of Lakewright",
}
_INTRODUCTION = """# Interoperability with other engines

This page is written by `make interop JSON=FILE DOCS=docs/interop.md`; do not edit it by hand.

The laboratory (`tests/interop`) makes a table with one engine, lets Lakewright rewrite it, lets every engine that can
write change it, and compares what every engine reads after each step. The expected rows come from a plain Python model
of the writers, which uses no code of Lakewright. Metadata, protocol, partition values, statistics, Parquet types and
codec are compared with those before the rewrite.

If an engine differs from the model, the same steps are repeated on a copy of the table that was never rewritten. The
difference is the engine's own only if it also occurs there: a failure, the same wrong rows, or rows that each occur
once and are wrong in no other column. `make test` runs the cases that have failed before.
"""
_WORST = (Verdict.OURS, Verdict.KNOWN, Verdict.REFUSED, Verdict.THEIRS, Verdict.CANNOT, Verdict.AGREES)
_MOST_EXAMPLES = 3
_LONGEST_EXAMPLE = 220


def keep(results: Iterable[Result], figures: dict[str, Any], file: Path) -> None:
    """Write results as JSON; those of rounds in the file from before stay, unless they were run again."""
    old = json.loads(file.read_text()) if file.exists() else {"facts": {"seconds": 0}, "results": []}
    new = [asdict(result) for result in results]
    again = {(result["place"]["case"], result["place"]["creator"]) for result in new}
    kept = [one for one in old["results"] if (one["place"]["case"], one["place"]["creator"]) not in again]
    figures = figures | {"seconds": round(old["facts"]["seconds"] + figures["seconds"])}
    file.write_text(json.dumps({"facts": figures, "results": [*kept, *new]}, ensure_ascii=False, indent=0) + "\n")


def load(file: Path) -> tuple[dict[str, Any], list[Result]]:
    """Read what `keep` wrote."""
    held = json.loads(file.read_text())
    results = (
        Result(Place(**one["place"]), one["reader"], one["check"], Verdict(one["verdict"]), one["detail"])
        for one in held["results"]
    )
    return held["facts"], [recognized(result) for result in results]


def page(figures: dict[str, Any], results: list[Result]) -> str:
    """Return docs/interop.md."""
    return "\n".join([*_head(figures, results), *_readers(results), *_writers(results), *_differences(results)]) + "\n"


def _head(figures: dict[str, Any], results: list[Result]) -> Iterator[str]:
    counts = Counter(result.verdict for result in results)
    rounds = len({(result.place.case, result.place.creator) for result in results})
    yield _INTRODUCTION
    yield "| engine | version |\n|---|---|"
    yield from (f"| {name} | {version} |" for name, version in figures["versions"].items())
    yield ""
    there_are = len(list(whole()))
    took = f"{figures['seconds'] / 60:.0f} minutes on {figures['cores']} cores"
    yield f"{len(results):,} checks in {rounds} of the {there_are} rounds that `make interop` runs, {took}:"
    yield ""
    yield "| verdict | checks | means |\n|---|---|---|"
    yield from (f"| {_SIGNS[verdict]} | {counts[verdict]:,} | {means} |" for verdict, means in _MEANS.items())
    yield ""


def _readers(results: list[Result]) -> Iterator[str]:
    """One line for each table, one column for each reader: the worst verdict of all its checks."""
    readers = list(dict.fromkeys(result.reader for result in results if result.reader not in ("-", "laws")))
    yield "## Tables and readers"
    yield ""
    yield "The worst verdict of all checks of a reader: after the rewrite, with predicates, and after each operation."
    yield ""
    yield f"| table | made by | nothing else changed | {' | '.join(readers)} |"
    yield f"|---|---|---|{'---|' * len(readers)}"
    for (case, creator), own in _grouped(results, lambda one: (one.place.case, one.place.creator)):
        cells = [_cell(one for one in own if one.reader == reader) for reader in ("laws", *readers)]
        if set(cells) == {""}:
            cells = [_cell(own), *cells[1:]]
        yield f"| {case} | {creator} | {' | '.join(cells)} |"
    yield ""


def _writers(results: list[Result]) -> Iterator[str]:
    yield "## Operations after the rewrite"
    yield ""
    yield "Counted in tables. Right: every reader found the rows of the model, or what it finds without the rewrite."
    yield ""
    yield "| writer | operation | right | the writer cannot | wrong because of the rewrite |\n|---|---|---|---|---|"
    done = [result for result in results if result.place.writer != "-"]
    for (writer, operation), own in _grouped(done, lambda one: (one.place.writer, one.place.operation)):
        tables = defaultdict(set)
        for one in own:
            tables[one.place.case, one.place.creator].add((one.reader, one.verdict))
        wrong = sum(any(verdict is Verdict.OURS for _, verdict in seen) for seen in tables.values())
        cannot = sum(("-", Verdict.CANNOT) in seen for seen in tables.values())
        yield f"| {writer} | {operation} | {len(tables) - wrong - cannot} | {cannot} | {wrong} |"
    yield ""


def _differences(results: list[Result]) -> Iterator[str]:
    titles = {
        Verdict.OURS: "Defects of Lakewright",
        Verdict.KNOWN: "Known differences that the rewrite makes",
        Verdict.REFUSED: "Tables that Lakewright refuses",
        Verdict.THEIRS: "Differences that are another engine's own",
        Verdict.CANNOT: "What an engine cannot do",
    }
    for verdict, title in titles.items():
        own = [result for result in results if result.verdict is verdict]
        if not own:
            continue
        yield f"## {title}"
        yield ""
        yield "| engine | checks | what it says, shortened | for example |\n|---|---|---|---|"
        groups = _grouped(own, lambda one: (_engine(one), essence(one.detail)))
        for (engine, _), members in sorted(groups, key=lambda group: (group[0][0], -len(group[1]))):
            places = list(dict.fromkeys(f"{one.place.case} by {one.place.creator}" for one in members))
            more = f" and {len(places) - _MOST_EXAMPLES} more" if len(places) > _MOST_EXAMPLES else ""
            where = _escaped("; ".join(places[:_MOST_EXAMPLES]) + more)
            yield f"| {engine} | {len(members)} | {_escaped(_gist(members[0].detail))} | {where} |"
        yield ""
        for why in dict.fromkeys(filter(None, map(explain, own))):
            yield f"- {why}"
        yield ""


def _engine(result: Result) -> str:
    return f"{result.place.writer} ({result.place.operation})" if result.reader == "-" else result.reader


def _gist(detail: str) -> str:
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{20,}", "…", re.sub(r"(file:)?/tmp/\S*|/\S+/round/\S*", "…", detail))
    return re.sub(r"-?\d{5,}", "#", text)[:_LONGEST_EXAMPLE]


def _cell(results: Iterable[Result]) -> str:
    verdicts = {result.verdict for result in results}
    return next((_SIGNS[verdict] for verdict in _WORST if verdict in verdicts), "")


def _grouped(results: Iterable[Result], key: Any) -> list[tuple[Any, list[Result]]]:
    groups: dict[Any, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return list(groups.items())


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
