"""The laboratory: one table after another is made, rewritten by us, changed by others, and read by everybody.

The law: what every reader finds is what the plain model of the writers holds, after our rewrite and after each further
operation of each writer; and nothing else of the table changed (`laws`). Where an engine differs from the model, the
same is done to a copy that we never touched: the difference is the engine's own only if it is there, too. A table whose
timestamps are INT96, which some engines cannot read, has a twin with microseconds besides: what such an engine then
reads is judged by that one. The last control is the table compacted by deltalake or Spark instead of us: what happens
to larger files happens to everybody's.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tests.interop.engines.protocol import NotOfferedError, Predicate, Reader, Writer
from tests.interop.engines.spark import SparkWriter
from tests.interop.feature_cases import expected_keys, predicates_of
from tests.interop.laws import broken_laws
from tests.interop.operations import AddColumn, Chain, Model, Operation, Optimize, Restore, Rewrite
from tests.interop.rewriting import Made, RewriteRefusedError, make
from tests.interop.table_case import Case
from tests.interop.values import Rows, delta_type
from tests.interop.verdicts import Failure, Place, Result, Verdict, attempt, judge, recognized

_LONGEST_DETAIL = 1500
_TWINS = {"spark, INT96": "spark"}
"""Creators whose tables are judged by those of another creator as well, which hold the same rows."""


@dataclass(frozen=True, slots=True)
class Staff:
    """Who works in the laboratory: creators and writers by name, readers, Spark for statements, and our rewrite.

    is_alone: no one else commits while we rewrite, so that the log shows what we changed.
    """

    creators: dict[str, Writer]
    writers: Sequence[Writer]
    readers: Sequence[Reader]
    spark: SparkWriter
    rewrite: Callable[[Path], int]
    is_alone: bool = True


@dataclass(frozen=True, slots=True)
class Round:
    """What is tried on one table: each of these operations by each writer that offers it.

    `filtering` says which readers are asked with predicates, `reading` which read again after each operation. `stale`
    are operations by writers that read the table before our rewrite and change it afterwards.
    """

    operations: Sequence[Operation] = ()
    stale: Sequence[Operation] = ()
    writers: Callable[[Writer], bool] = lambda _: True
    filtering: Callable[[Reader], bool] = lambda _: True
    reading: Callable[[Reader], bool] = lambda _: True


@runtime_checkable
class Holder(Protocol):
    """A writer that can hold a table as it was read."""

    def hold(self, case: Case, location: Path) -> None:
        """Read the table; the next operation starts from there."""


@dataclass(frozen=True, slots=True)
class Deed:
    """One operation by one writer on a creator's table, and who reads afterwards."""

    creator: str
    writer: Writer
    operation: Operation
    reading: Callable[[Reader], bool]


class Laboratory:
    """Runs rounds in a folder of its own, which it leaves empty."""

    def __init__(self, staff: Staff, folder: Path) -> None:
        self._staff = staff
        self._folder = folder
        self._forks = count()

    def run(self, case: Case, creator: str, plan: Round) -> Iterator[Result]:
        """Run one round on one table and give each check's result."""
        return map(recognized, self._run(case, creator, plan))

    def _run(self, case: Case, creator: str, plan: Round) -> Iterator[Result]:
        home = self._folder / "round"
        shutil.rmtree(home, ignore_errors=True)
        made = attempt(lambda: make(case, home / "base", self._staff.creators[creator], self._staff.spark))
        place = Place(case.name, creator)
        if isinstance(made, Failure):
            # Spark makes every table that names it: otherwise the round shows nothing.
            verdict = Verdict.OURS if creator.startswith("spark") else Verdict.CANNOT
            yield Result(place, "-", "create", verdict, made.text)
            return
        treated = _copy(made.location, home / "treated")
        try:
            partitions = self._staff.rewrite(treated)
        except RewriteRefusedError as refused:
            verdict = Verdict.REFUSED if case.may_be_refused else Verdict.OURS
            yield Result(place, "-", "rewrite", verdict, str(refused))
            return
        assert partitions, f"nothing was rewritten in {case.name}"
        if self._staff.is_alone:
            yield from _laws(place, made.location, treated)
        bases = self._bases(made, creator, home)
        untouched = _Controls(bases)
        yield from self._read(place, made, made.model, treated, untouched)
        yield from self._filter(place, made, treated, (untouched, plan))
        for writer in filter(plan.writers, self._staff.writers):
            for operation in plan.operations:
                if _is_offered(operation, writer):
                    yield from self._operate(made, treated, bases, Deed(creator, writer, operation, plan.reading))
            for operation in plan.stale if isinstance(writer, Holder) else ():
                yield from self._overtake(
                    made, home / f"stale-{next(self._forks)}", bases, Deed(creator, writer, operation, plan.reading)
                )
        shutil.rmtree(home)

    def _bases(self, made: Made, creator: str, home: Path) -> list[Callable[[], Path]]:
        """Return what to compare with, each made at its first use: the table, its twin, and the table by deltalake."""
        bases = [lambda: made.location]
        if creator in _TWINS:
            other = self._staff.creators[_TWINS[creator]]
            bases.append(cache(lambda: make(made.case, home / "twin", other, self._staff.spark).location))
        return [*bases, cache(lambda: self._compacted(made, home / "compacted"))]

    def _compacted(self, made: Made, home: Path) -> Path:
        """Return the table compacted by deltalake, by Spark where deltalake cannot, as it is where neither can."""
        for number, engine in enumerate((self._staff.creators["deltalake"], self._staff.spark)):
            location = _copy(made.location, home / str(number))
            ended = attempt(lambda engine=engine, location=location: engine.perform(Optimize(), made.case, location))
            if not isinstance(ended, Failure):
                return location
        return made.location

    def _overtake(self, made: Made, home: Path, bases: Sequence[Callable[[], Path]], deed: Deed) -> Iterator[Result]:
        """A writer reads the table, we rewrite it, and only then the writer commits: refused, or exactly done."""
        writer, operation = deed.writer, deed.operation
        place = Place(made.case.name, deed.creator, writer.name, f"{operation.name}, read before our rewrite")
        location, model = _copy(made.location, home / "treated"), deepcopy(made.model)
        assert isinstance(writer, Holder)
        held = attempt(lambda: writer.hold(made.case, location))
        if isinstance(held, Failure):
            yield Result(place, "-", "operation", Verdict.CANNOT, held.text)
        else:
            self._staff.rewrite(location)
            done = self._perform(writer, operation, made.case, location, model, rewrites=False)
            words = "; ".join(failure.text for failure in done.values())
            yield Result(place, "-", "operation", Verdict.AGREES, words and f"the engine withdrew: {words}")
            # What the engine withdrew is not done to the controls either.
            controls = _Controls(bases) if done else _Controls(bases, home, self._alone(made, writer, operation))
            yield from self._read(place, made, model, location, controls, deed.reading)
        shutil.rmtree(home)

    def _operate(self, made: Made, treated: Path, bases: Sequence[Callable[[], Path]], deed: Deed) -> Iterator[Result]:
        """One operation by one writer on a copy of the rewritten table; controls are made only if they are needed."""
        writer, name = deed.writer, deed.operation.name
        operation = made.restore if isinstance(deed.operation, Restore) else deed.operation
        place = Place(made.case.name, deed.creator, writer.name, name)
        home = treated.parent.parent / f"fork-{next(self._forks)}"  # Spark caches what it knows of a path.
        fork, model = _copy(treated, home / "treated"), deepcopy(made.model)
        controls = _Controls(bases, home, self._alone(made, writer, operation))
        done = self._perform(writer, operation, made.case, fork, model, rewrites=True)
        # Engines name several causes of one failure in any order, so that what failed is compared, not its words.
        verdict = judge(set(done), set(), *controls.failures)
        if done and verdict is Verdict.THEIRS:
            verdict = Verdict.CANNOT
        words = "; ".join(f"{part}: {failure.text}" for part, failure in done.items())
        yield Result(place, "-", "operation", verdict, words)
        if isinstance(operation, Chain) or not done:
            yield from self._read(place, made, model, fork, controls, deed.reading)
        shutil.rmtree(home)

    def _alone(self, made: Made, writer: Writer, operation: Operation) -> Callable[[Path], Any]:
        """Return how an operation is carried out on a control: without any rewrite of ours."""
        return lambda place: self._perform(writer, operation, made.case, place, deepcopy(made.model), rewrites=False)

    def _perform(
        self, writer: Writer, operation: Operation, case: Case, location: Path, model: Model, *, rewrites: bool
    ) -> dict[str, Failure]:
        """Carry out an operation, or the parts of a chain; return the failures of those that the writer cannot do."""
        failures: dict[str, Failure] = {}
        for part in operation.parts if isinstance(operation, Chain) else (operation,):
            if isinstance(part, Rewrite):
                if rewrites:
                    # A table that a part before has left unreadable is refused, and then there is nothing to compare.
                    attempt(lambda: self._staff.rewrite(location))
                continue
            ended = attempt(lambda part=part: writer.perform(part, case, location))
            if isinstance(ended, Failure):
                failures[part.name] = ended
            else:
                part.apply(case, model)
        return failures

    def _read(
        self,
        place: Place,
        made: Made,
        model: Model,
        location: Path,
        controls: "_Controls",
        reading: Callable[[Reader], bool] = lambda _: True,
    ) -> Iterator[Result]:
        """Everybody for whom `reading` holds reads."""
        case, expected = made.case, _expected(made.case, model)
        for reader in self._staff.readers:
            if not reading(reader) and reader.name != place.writer:
                continue
            rows = _reading(reader, case)
            seen = rows(location)
            verdict = judge(seen, expected, *controls.observed(rows))
            yield Result(place, reader.name, "rows and types", verdict, _difference(seen, expected))

    def _filter(self, place: Place, made: Made, treated: Path, how: tuple["_Controls", Round]) -> Iterator[Result]:
        case, (controls, plan) = made.case, how
        for reader in filter(plan.filtering, self._staff.readers):
            if isinstance(attempt(lambda reader=reader: reader.rows(treated, case)), Failure):
                continue  # Its words are in the matrix already.
            for predicate in predicates_of(case):
                expected = expected_keys(case, made.model, predicate)
                keys = _by(reader.keys, case, predicate)
                seen = keys(treated)
                verdict = judge(seen, expected, *controls.observed(keys))
                detail = "" if seen == expected else f"{seen} instead of {expected}"[:_LONGEST_DETAIL]
                yield Result(place, reader.name, f"filter {predicate}", verdict, detail)
                if predicate.is_impossible:
                    yield from _skipping(place, reader, made, treated, predicate)


class _Controls:
    """Tables that we never touched, changed like the other: each is copied and changed when a difference requests it.

    Without an operation they are the bases themselves.
    """

    def __init__(
        self,
        bases: Sequence[Callable[[], Path]],
        home: Path | None = None,
        operate: Callable[[Path], Any] | None = None,
    ) -> None:
        self._bases = bases
        self._home = home
        self._operate = operate
        self._done: dict[Path, tuple[Path, Any]] = {}

    @property
    def failures(self) -> list[Callable[[], Any]]:
        """The parts of the operation that fail on each control."""
        return [lambda base=base: set(self._changed(base)[1]) for base in self._bases]

    def observed(self, observe: Callable[[Path], Any]) -> list[Callable[[], Any]]:
        """What an observation finds on each control after the operation."""
        return [lambda base=base: observe(self._changed(base)[0]) for base in self._bases]

    def _changed(self, find: Callable[[], Path]) -> tuple[Path, Any]:
        base = find()
        if self._operate is None or self._home is None:
            return base, None
        if base not in self._done:
            copied = _copy(base, self._home / f"control-{len(self._done)}")
            self._done[base] = copied, self._operate(copied)
        return self._done[base]


def _is_offered(operation: Operation, writer: Writer) -> bool:
    parts = operation.parts if isinstance(operation, Chain) else (operation,)
    return {part.name for part in parts if not isinstance(part, Rewrite)} <= writer.offers


def _reading(reader: Reader, case: Case) -> Callable[[Path], Any]:
    return lambda location: attempt(lambda: reader.rows(location, case))


def _by(question: Callable[[Path, Case, Predicate], Any], case: Case, predicate: Predicate) -> Callable[[Path], Any]:
    return lambda location: attempt(lambda: question(location, case, predicate))


def _skipping(place: Place, reader: Reader, made: Made, treated: Path, predicate: Predicate) -> Iterator[Result]:
    """A predicate that statistics alone refute reads no file after us if it read none before us."""
    files = _by(reader.files_read, made.case, predicate)
    before = files(made.location)
    if isinstance(before, Failure):
        if NotOfferedError.__name__ not in before.text:
            yield Result(place, reader.name, "files read", Verdict.CANNOT, before.text)
        return
    after = files(treated)
    worse = isinstance(after, Failure) or (before == 0 and after > 0)
    detail = f"{predicate}: {after} files instead of {before}" if worse else ""
    yield Result(place, reader.name, f"files read for {predicate}", Verdict.OURS if worse else Verdict.AGREES, detail)


def _laws(place: Place, before: Path, after: Path) -> Iterator[Result]:
    broken = broken_laws(before, after)
    verdict = Verdict.OURS if broken else Verdict.AGREES
    yield Result(place, "laws", "nothing else changed", verdict, "; ".join(broken)[:_LONGEST_DETAIL])


def _expected(case: Case, model: Model) -> Rows:
    kinds = {column.name: delta_type(column.arrow) for column in case.all_columns}
    if any(AddColumn.column in row for row in model.values()):
        kinds[AddColumn.column] = "string"
    names = tuple(sorted(kinds))
    counts = Counter(tuple(row[name] for name in names) for row in model.values())
    return Rows(names, tuple(kinds[name] for name in names), counts)


def _difference(seen: Any, expected: Rows) -> str:
    """Return how what was read differs from the model."""
    if isinstance(seen, Failure):
        return seen.text
    if seen == expected:
        return ""
    reported = []
    if (seen.columns, seen.types) != (expected.columns, expected.types):
        wanted = dict(zip(expected.columns, expected.types, strict=True))
        found = dict(zip(seen.columns, seen.types, strict=True))
        reported.append(
            f"types {dict(found.items() - wanted.items())} instead of {dict(wanted.items() - found.items())}"
        )
    if seen.counts != expected.counts:
        extra, missing = seen.counts - expected.counts, expected.counts - seen.counts
        reported.append(
            f"{seen.counts.total()} rows instead of {expected.counts.total()}; too many {list(extra.items())[:2]}, "
            f"missing {list(missing.items())[:2]}"
        )
    return "; ".join(reported)[:_LONGEST_DETAIL]


def _copy(source: Path, folder: Path) -> Path:
    """Copy a table: paths in its log are relative, but for those of clones, whose source stays where it is."""
    return Path(shutil.copytree(source, folder / source.name))
