"""Files of statistics of columns, such as sketches of distinct values: which snapshots they hold for.

Each belongs to one snapshot, and Spark uses it for no other. It holds for later ones that changed no data, too.
"""

from collections.abc import Collection

from shared.formats.iceberg.metadata import TableHead
from shared.layout.upkeep import UpkeepFound
from shared.whole_numbers import whole_number

_CHANGES = ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes")
"""Entries of a snapshot's summary that count rows which it added or deleted."""


def source_of_statistics(head: TableHead, known: Collection[int]) -> int | None:
    """Return which of these snapshots with statistics has the data of the newest one; None if none has."""
    for one in head.chain():
        if one.id in known:
            return one.id
        if not one.changes_no_row:
            break
    return None


def changed_rows(head: TableHead) -> UpkeepFound | None:
    """Return all rows, and those that were added or deleted since the newest statistics; None where no summary says.

    Where there are no statistics, all rows were added.
    """
    if head.current is None:
        return None
    newest = head.snapshots[head.current].summary
    rows, size = (whole_number(newest.get(name, "")) for name in ("total-records", "total-files-size"))
    if rows is None or size is None:
        return None
    known, changed = {one.snapshot for one in head.records.statistics if one.is_of_columns}, 0
    for one in head.chain():
        if one.id in known:
            return UpkeepFound(rows, changed, size)
        if not one.changes_no_row:
            changed += sum(whole_number(one.summary.get(name, "")) or 0 for name in _CHANGES)
    return UpkeepFound(rows, rows, size)
