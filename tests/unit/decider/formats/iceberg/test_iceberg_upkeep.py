"""Delete files that a run refused do not count again, until something that it refused may have become possible."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from decider.formats.iceberg.upkeep import upkeep
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.positions import position_digest
from shared.layout.upkeep import CONVERT_DELETES, MERGE_DELETES, UpkeepFound, UpkeepKind
from shared.partitions import WHOLE_TABLE
from shared.table import DeleteKind, ExaminedTable, TableMetadata, TableProtocol


def snapshot(number: int, **summary: str) -> SnapshotRecord:
    return SnapshotRecord(number, number - 1 or None, number, number, f"list-{number}", "overwrite", summary)


def head_of(*snapshots: SnapshotRecord) -> TableHead:
    found = {one.id: one for one in snapshots}
    return TableHead("file:///t", TableMetadata("u"), TableProtocol(2, 2), 1, snapshots[-1].id, {}, found)


def delete(by: int | None, kind: DeleteKind = DeleteKind.EQUALITY) -> Entry:
    of = "a" if kind is DeleteKind.POSITION else ""
    return Entry(EntryStatus.EXISTING, by, 2, f"{kind}-{by}", WHOLE_TABLE, 10, 5, kind, referenced=of)


class Reader:
    """A reader of one snapshot's delete files."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    async def live(self, head: TableHead, newest: SnapshotRecord, *, only_deletes: bool) -> Sequence[Entry]:
        assert (newest.id, only_deletes) == (head.current, True)
        return self._entries


def found_in(
    head: TableHead, entries: Sequence[Entry], examined: ExaminedTable | None, kind: UpkeepKind = CONVERT_DELETES
) -> UpkeepFound:
    known = {} if examined is None else {kind.kind: examined}
    return asyncio.run(upkeep(Reader(entries), head, [kind.kind], known))[kind.kind]  # type: ignore[arg-type]


DELETES = [delete(1), delete(2), delete(3), delete(None)]
OF_SECOND = ExaminedTable(position_digest("u", 2))


def test_what_was_there_when_a_run_refused_it_does_not_count_and_what_came_later_does() -> None:
    head = head_of(*map(snapshot, (1, 2, 3)))
    assert found_in(head, DELETES, None) == UpkeepFound(4, 4)
    assert found_in(head, DELETES, OF_SECOND) == UpkeepFound(4, 2, refused=2)
    assert found_in(head, DELETES[:2], OF_SECOND) == UpkeepFound(2, 0, refused=2)


def test_files_of_positions_count_by_what_a_merge_of_the_new_ones_saves() -> None:
    """Of four files of a data file three are superfluous; one was when there were two."""
    head = head_of(*map(snapshot, (1, 2, 3, 4)))
    entries = [delete(number, DeleteKind.POSITION) for number in (1, 2, 3, 4)]
    assert found_in(head, entries, None, MERGE_DELETES) == UpkeepFound(4, 3)
    assert found_in(head, entries, OF_SECOND, MERGE_DELETES) == UpkeepFound(4, 2, refused=1)


@pytest.mark.parametrize(
    ("removed", "waits", "counts_again"),
    [("1", True, True), ("1", False, False), ("0", True, False), ("odd", True, True)],
)
def test_data_files_that_are_gone_let_what_waits_for_that_count_again(
    removed: str, waits: bool, counts_again: bool
) -> None:
    head = head_of(snapshot(1), snapshot(2), snapshot(3, **{"deleted-data-files": removed}))
    found = found_in(head, DELETES, replace(OF_SECOND, waits_for_data=waits))
    assert found == (UpkeepFound(4, 4) if counts_again else UpkeepFound(4, 2, refused=2))


def test_all_count_again_where_the_snapshot_is_no_longer_known() -> None:
    """It expired, main was rolled back to one before it, or the table was made again."""
    every = UpkeepFound(4, 4)
    assert found_in(head_of(snapshot(4), snapshot(5)), DELETES, OF_SECOND) == every
    assert found_in(head_of(snapshot(1)), DELETES, OF_SECOND) == every
    assert found_in(head_of(*map(snapshot, (1, 2, 3))), DELETES, ExaminedTable(position_digest("w", 2))) == every
