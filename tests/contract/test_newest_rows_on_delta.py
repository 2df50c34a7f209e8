"""Newest row per key on real Delta, in one short story: which rows go, what others may do meanwhile, and what stays."""

import pytest

from shared.jobs.options import DeduplicateOptions
from tests.support.delta_lab import DeltaLab
from tests.support.keyed_table import KeyedTable
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark


@pytest.mark.long("contracts")
def test_older_rows_go_and_no_row_of_others_is_lost_meanwhile(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t")
    table.append((1, 1, "a", None), (2, 1, "b", None), (3, 1, "c", None), (None, 1, "x", None))
    table.append((1, 2, "aa", None), (2, 2, "bb", True), (None, 2, "y", True), (3, None, "z", True))
    table.append((1, 3, "aaa", None))
    table.append((4, 1, "d", None))
    before, version = table.count(), table.history(1)[0]["version"]
    dry = table.run(options=DeduplicateOptions(dry_run=True))
    assert (dry.figures["rows_removed"], dry.commits, table.count()) == (4, (), before)

    control = Control()

    def others(change: int) -> None:
        """Before the first commit a file goes that is only read; before the second one, rows are appended."""
        if change == 1:
            lab.sql(f"DELETE FROM {table.name} WHERE ts = 3")
        if change == 2:
            table.append((1, 9, "late", None), (5, 1, "e", None))

    control.before_change = others
    done = table.run(control=control)
    # The deletion made another row of key 1 the newest; the appended one is compared by the next run.
    assert (done.figures["conflicts"], done.figures["rows_removed"]) == (1, 3)
    kept = [(None, 1, "x"), (None, 2, "y"), (3, 1, "c"), (3, None, "z"), (4, 1, "d"), (5, 1, "e"), (1, 9, "late")]
    assert table.rows() == sorted([*kept, (1, 2, "aa")], key=repr)
    assert table.count(version) == before
    mark = table.history(1)[0]
    assert (mark["operation"], mark["operationMetrics"]["numDeletedRows"]) == ("DELETE", "0")
    again = table.run(options=DeduplicateOptions(since_version=done.version))
    assert again.figures["rows_removed"] == 1
    assert table.rows() == sorted(kept, key=repr)
    nothing = table.run(options=DeduplicateOptions(since_version=again.commits[-1]))
    assert (nothing.figures, nothing.commits) == ({}, ())
