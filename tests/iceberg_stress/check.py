"""The verdict: rows of every reader against the ledger, each rewrite, each commit and each file that is referred to."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pyiceberg.table import Table

from shared.formats.iceberg.names import COMMIT_KEY
from shared.layout import commit_metadata
from tests.iceberg_stress.operations import (
    OPERATION_KEY,
    Made,
    Rows,
    difference,
    is_in_parts,
    rows_of,
)
from tests.iceberg_stress.readers import files_on_disk, referenced_files

Read = Callable[[Table, int], Rows | None]

LEAST_READERS = 2
"""Readers that each table must have had: pyiceberg reads none with deletes by value."""


class TableCheck:
    """Compares one table, when no one writes to it any more, with what its writers meant."""

    def __init__(self, table: Table, confirmed: Sequence[str], readers: Mapping[str, Read]) -> None:
        self._table = table
        self._name = table.name()[-1]
        self._confirmed = confirmed
        self._readers = readers
        self._snapshots = {
            one.snapshot_id: Made(one.parent_snapshot_id, _entry(one, OPERATION_KEY))
            for one in table.metadata.snapshots
        }
        self.problems: list[str] = []
        self.rewrites: dict[int, str] = {}
        self.read_by: list[str] = []

    def run(self) -> None:
        """Find everything that is wrong."""
        self._check_operations()
        self._check_rewrites()
        self._check_head()
        missing = [path for path in referenced_files(self._table) if not path.is_file()]
        self.problems += [f"{self._name}: {path} is referred to, and is not there" for path in missing]

    def figures(self) -> dict[str, object]:
        """Return what was found, for people."""
        live = self._table.inspect.files()
        return {
            "snapshots": len(self._snapshots),
            "rewrites": len(self.rewrites),
            "read by": self.read_by,
            "rows": sum(self._wanted(self._head).values()),
            "files": live.num_rows,
            "files without a snapshot": len(files_on_disk(self._table) - referenced_files(self._table)),
        }

    @property
    def _head(self) -> int | None:
        current = self._table.current_snapshot()
        return None if current is None else current.snapshot_id

    def _wanted(self, snapshot: int | None) -> Rows:
        return rows_of(self._snapshots, snapshot)

    def _check_operations(self) -> None:
        """Each snapshot is a writer's or ours, and each confirmed operation that changes rows was made once."""
        made: Counter[str] = Counter()
        for one in self._table.metadata.snapshots:
            text, ours = _entry(one, OPERATION_KEY), commit_metadata.decode(_entry(one, COMMIT_KEY))
            if text is not None:
                made[text] += 1
            elif ours is None:
                self._add(f"snapshot {one.snapshot_id} has no operation and no mark of ours")
            else:
                self.rewrites[one.snapshot_id] = ours.write_id
        self.problems += [
            f"{self._name}: {count} snapshots of {text}"
            for text, count in made.items()
            if count > 1 and not is_in_parts(text)
        ]
        # A DELETE or an UPDATE without rows makes no snapshot.
        lost = [
            text for text in self._confirmed if text not in made and '"delete"' not in text and '"update"' not in text
        ]
        self.problems += [f"{self._name}: no snapshot of {text}, which was confirmed" for text in lost]
        doubled = [write for write, count in Counter(self.rewrites.values()).items() if count > 1]
        self.problems += [f"{self._name}: rewrite {write} has several snapshots" for write in doubled]

    def _check_rewrites(self) -> None:
        for snapshot, write in self.rewrites.items():
            found = self._readers["spark"](self._table, snapshot)
            if found is None or (text := difference(self._wanted(snapshot), found)):
                self._add(f"snapshot {snapshot} of rewrite {write}: {text}")

    def _check_head(self) -> None:
        if (head := self._head) is None:
            self._add("has no snapshot")
            return
        for reader, read in self._readers.items():
            found = read(self._table, head)
            if found is None:
                continue
            self.read_by.append(reader)
            if text := difference(self._wanted(head), found):
                self._add(f"read by {reader}: {text}; {self._origin()}")
        if len(self.read_by) < LEAST_READERS:
            self._add(f"was read by {self.read_by} alone")

    def _origin(self) -> str:
        """Return the first snapshot on the way to the newest whose rows are wrong, read by Spark."""
        wrong = ""
        snapshot = self._head
        while snapshot is not None:
            found = self._readers["spark"](self._table, snapshot)
            if found == self._wanted(snapshot):
                break
            made = self._table.metadata.snapshot_by_id(snapshot)
            wrong = f"snapshot {snapshot}, {None if made is None else made.summary}"
            snapshot = self._snapshots[snapshot].parent
        return f"first wrong in {wrong}" if wrong else "Spark reads every snapshot right"

    def _add(self, problem: str) -> None:
        self.problems.append(f"{self._name}: {problem}")


def _entry(snapshot: object, key: str) -> str | None:
    summary = getattr(snapshot, "summary", None)
    found = None if summary is None else summary.additional_properties.get(key)
    return None if found is None else str(found)
