"""How old statistics of columns are by the summaries of snapshots, and which snapshots they hold for."""

import pytest

from shared.formats.iceberg.column_statistics import changed_rows, source_of_statistics
from shared.formats.iceberg.metadata import TableHead, decode_head
from shared.formats.iceberg.names import CONVERTED_KEY
from shared.layout.upkeep import UpkeepFound

TOTALS = {"total-records": "100", "total-files-size": "5000"}


def head(*snapshots: tuple[str, dict[str, str]], statistics: tuple[int, ...] = (), partitions: int = 0) -> TableHead:
    """A table of these operations with their summaries; statistics of the first one are of the number 1."""
    ids = range(1, len(snapshots) + 1)
    raw = {
        "format-version": 2,
        "table-uuid": "t",
        "location": "s3://lake/t",
        "last-updated-ms": 9,
        "schemas": [{"schema-id": 0, "fields": []}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "snapshots": [
            {
                "snapshot-id": id_,
                "timestamp-ms": id_,
                "manifest-list": "l",
                "summary": {"operation": operation, **summary},
            }
            | ({"parent-snapshot-id": id_ - 1} if id_ > 1 else {})
            for id_, (operation, summary) in zip(ids, snapshots, strict=True)
        ],
        **({"current-snapshot-id": len(snapshots)} if snapshots else {}),
        "statistics": [{"snapshot-id": id_, "statistics-path": "p", "file-size-in-bytes": 1} for id_ in statistics],
        "partition-statistics": [{"snapshot-id": partitions, "statistics-path": "q", "file-size-in-bytes": 1}],
    }
    return decode_head(raw, "s3://lake/t", "m")


def changes(**counts: int) -> dict[str, str]:
    return TOTALS | {name.replace("_", "-"): str(count) for name, count in counts.items()}


@pytest.mark.parametrize(
    ("snapshots", "statistics", "found"),
    [
        ((), (), None),
        ([("append", {})], (), None),
        ([("append", changes(added_records=7))], (), UpkeepFound(100, 100, 5000)),
        ([("append", changes(added_records=7))], (1,), UpkeepFound(100, 0, 5000)),
        (
            [("append", TOTALS), ("overwrite", changes(added_records=3, deleted_records=4))],
            (1,),
            UpkeepFound(100, 7, 5000),
        ),
        (
            [
                ("append", TOTALS),
                ("overwrite", changes(added_position_deletes=3, added_equality_deletes=4)),
                ("replace", changes(added_records=90, deleted_records=90)),
                ("delete", changes(added_position_deletes=50) | {CONVERTED_KEY: "2"}),
                ("delete", TOTALS),
            ],
            (1,),
            UpkeepFound(100, 7, 5000),
        ),
    ],
    ids=["empty", "not counted", "none", "newest", "changed", "rewrites change nothing"],
)
def test_rows_that_changed_since_the_newest_statistics_are_counted(
    snapshots: list[tuple[str, dict[str, str]]], statistics: tuple[int, ...], found: UpkeepFound | None
) -> None:
    assert changed_rows(head(*snapshots, statistics=statistics, partitions=len(snapshots))) == found


def test_statistics_hold_for_snapshots_that_change_no_data() -> None:
    made = head(("append", {}), ("append", {}), ("replace", {}), ("replace", {}))
    assert source_of_statistics(made, {1}) is None
    assert source_of_statistics(made, {1, 2}) == 2
    assert source_of_statistics(made, {2, 3}) == 3
    assert source_of_statistics(head(("replace", {})), ()) is None
    converted = {CONVERTED_KEY: "2"}
    assert source_of_statistics(head(("append", {}), ("delete", converted)), {1}) == 1
    copied = converted | {"added-data-files": "1"}
    assert source_of_statistics(head(("append", {}), ("overwrite", copied)), {1}) is None
