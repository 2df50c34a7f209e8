"""A table with a key, its model, and all engines around it: what they do to it, what they read, and our removals."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from actor.ports import TableJob, TableJobOutcome
from shared.jobs.options import DeduplicateOptions
from shared.jobs.payload import DEDUPLICATE
from shared.table import CommitOrigin
from tests.interop.engines.delta_rs import DatasetReader, QueryReader
from tests.interop.engines.duck import DuckDbFiles, DuckDbReader
from tests.interop.engines.kernel import KernelReader, compile_kernel
from tests.interop.engines.polars_ import PolarsReader
from tests.interop.engines.protocol import NotOfferedError, Reader
from tests.interop.engines.spark import SparkReader
from tests.interop.keyed import PARTITION, VALUE, Change, Engines, KeyedCase, Model, newest, partitions_in_order
from tests.interop.staff import lab_session
from tests.interop.table_case import Case
from tests.interop.table_log import TableLog, physical_name
from tests.interop.values import Rows, rows_of
from tests.interop.verdicts import Failure, attempt
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

_NO_CASE = Case("keyed", ())
_SHOWN = 3


def keyed_readers(spark: SparkSession) -> Sequence[Reader]:
    """Everybody who reads; Spark is the first."""
    kernel = KernelReader(compile_kernel(spark))
    others = (DatasetReader(), QueryReader(), DuckDbReader(), DuckDbFiles(), PolarsReader())
    return (SparkReader(lab_session(spark)), kernel, *others)


@dataclass(slots=True)
class Race:
    """A change by another engine right before one of a run's commits, and what it did.

    touched: the partitions of which it replaced or removed files.
    """

    change: Change
    at: int
    is_done: bool = False
    touched: set[str | None] = field(default_factory=set)


class KeyedWorld:
    """A table of a case in the folder of a laboratory."""

    def __init__(self, lab: DeltaLab, case: KeyedCase, readers: Sequence[Reader]) -> None:
        self.case, self.model = case, Model()
        self.place = lab.directory / "table"
        self.read_by: set[str] = set()
        self.refused: set[str] = set()
        self._lab, self._readers = lab, readers
        self._copied: dict[Path, Rows] = {}
        micros = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
        self.engines = Engines(case, lab_session(lab.spark, **micros))
        self.engines.create(self.place)

    def copy(self) -> Path:
        """Copy the table as it is."""
        copied = Path(shutil.copytree(self.place, self.place.with_name(f"copy-{len(self._copied) + 1}")))
        self._copied[copied] = rows_of(self.case.arrow(self.model.values()))
        return copied

    def do(self, change: Change, *, held: DeltaTable | None = None, control: Path | None = None) -> None:
        """Change table and model; an engine that cannot must not be able to change the control either."""
        ended = attempt(lambda: change.perform(self.place, held))
        if not isinstance(ended, Failure):
            self.model = change.apply(self.model)
            return
        self.refused.add(f"{change.engine}, {change.name}: {ended.text[:80]}")
        if control is not None:
            there = attempt(lambda: change.perform(control, None))
            assert isinstance(there, Failure), f"{change.engine}, {change.name}: only after us: {ended.text}"

    def removed(self) -> None:
        """Remove older rows while no engine writes, and check how many went."""
        before = len(self.model)
        figures = self._run(Control()).figures
        self.model = newest(self.case, self.model, self._values())
        assert figures["rows_removed"] == before - len(self.model)

    def raced(self, race: Race) -> None:
        """Remove older rows while another engine makes a change."""
        order, dirty = partitions_in_order(self.case, self.model), self.dirty()
        control = Control()
        control.before_change = lambda number: self._change(race) if number == race.at else None
        figures = self._run(control).figures
        apply: Callable[[Model], Model] = race.change.apply if race.is_done else dict
        then, current = apply(self.model), dirty[race.at - 1]
        assert (current in race.touched) == (figures.get("conflicts", 0) > 0)
        found: Model = {}
        for part in {*order, *partitions_in_order(self.case, then)}:
            if part not in order:  # The run did not know it.
                found |= self._of(then, part)
            elif order.index(part) > order.index(current) or (part == current and part in race.touched):
                found |= newest(self.case, self._of(then, part))
            else:
                found |= self._of(apply(newest(self.case, self._of(self.model, part))), part)
        self.model = found

    def dirty(self) -> list[str | None]:
        """The partitions of which a run removes rows, in its order."""
        found = partitions_in_order(self.case, self.model)
        parts = ((part, self._of(self.model, part)) for part in found)
        return [part for part, mine in parts if len(newest(self.case, mine)) < len(mine)]

    def check(self, control: Path | None = None) -> None:
        """Everybody reads what the model holds; whoever cannot, cannot read the control either.

        A column of which a reader finds wrong values in the control is left out for this reader; the values that tell
        the rows apart never are.
        """
        expected = rows_of(self.case.arrow(self.model.values()))
        for reader in self._readers:
            seen = _read(reader, self.place)
            if isinstance(seen, Failure):
                is_theirs = NotOfferedError.__name__ in seen.text or (
                    control is not None and isinstance(_read(reader, control), Failure)
                )
                assert is_theirs, f"{reader.name}: {seen.text}"
                self.refused.add(f"{reader.name}: {seen.text[:80]}")
                continue
            assert seen.columns == expected.columns, reader.name
            wrong = self._misread(reader, control) if control is not None and seen.counts != expected.counts else set()
            found, wanted = _without(wrong, seen), _without(wrong, expected)
            extra, missing = list(found - wanted), list(wanted - found)
            text = f"{reader.name}: too many {extra[:_SHOWN]}, missing {missing[:_SHOWN]}"
            assert (extra, missing) == ([], []), text
            self.read_by.add(reader.name)
            self.refused |= {f"{reader.name}: right values of the column {name!r}" for name in wrong}

    def _misread(self, reader: Reader, control: Path) -> set[str]:
        """The columns of which a reader finds wrong values in a table that had no removal, and all the others right."""
        seen, there = _read(reader, control), self._copied[control]
        assert isinstance(seen, Rows), f"{reader.name} reads the table, but not the control: {seen.text}"
        at = there.columns.index(self.case.names[VALUE])
        found, wanted = ({row[at]: row for row in rows.counts} for rows in (seen, there))
        wrong = {
            name
            for place, name in enumerate(there.columns)
            if any(row[place] != wanted[value][place] for value, row in found.items() if value in wanted)
        }
        assert _without(wrong, seen) == _without(wrong, there), f"{reader.name}: other rows in the control"
        return wrong

    def _run(self, control: Control) -> TableJobOutcome:
        options = DeduplicateOptions().encode()
        job = TableJob(DEDUPLICATE, self.place.as_uri(), self.case.policy, CommitOrigin("job", 7), options=options)
        return self._lab.engine.run_table_job(job, control)

    def _change(self, race: Race) -> None:
        before = self._live()
        ended = attempt(lambda: race.change.perform(self.place, None))
        race.is_done = not isinstance(ended, Failure)
        if isinstance(ended, Failure):
            self.refused.add(f"{race.change.engine}, {race.change.name}: {ended.text[:80]}")
        race.touched = {before[file] for file in before.keys() - self._live().keys()}

    def _live(self) -> dict[tuple[str, str], str | None]:
        """The live files with their deletion vectors, and the partition of each."""
        log = TableLog.read(self.place)
        names = {column["name"]: physical_name(column) for column in log.schema["fields"]}
        where = names[self.case.names[PARTITION]]
        return {
            (add["path"], str(add.get("deletionVector"))): add["partitionValues"].get(where) or None
            for add in log.live()
        }

    def _values(self) -> set[str]:
        """The values of the rows that Spark reads, each of which is there once."""
        rows = _read(self._readers[0], self.place)
        assert isinstance(rows, Rows), rows
        assert set(rows.counts.values()) <= {1}
        at = rows.columns.index(self.case.names[VALUE])
        return {row[at] for row in rows.counts}

    def _of(self, model: Model, part: str | None) -> Model:
        return {value: row for value, row in model.items() if self.case.partition(row) == part}


def _without(columns: set[str], rows: Rows) -> Counter[tuple[Any, ...]]:
    """Rows without some of their columns."""
    kept = [place for place, name in enumerate(rows.columns) if name not in columns]
    found = Counter[tuple[Any, ...]]()
    for row, count in rows.counts.items():
        found[tuple(row[place] for place in kept)] += count
    return found


def _read(reader: Reader, place: Path) -> Rows | Failure:
    found: Rows | Failure = attempt(lambda: reader.rows(place, _NO_CASE))
    return found
