"""Row expiry on real Delta: what of it only Delta has."""

from itertools import product
from typing import Any

import pytest

from shared.errors import Unsupported
from tests.support.aged_rows import AgedDelta, days_ago
from tests.support.delta_lab import DeltaLab
from tests.support.long_suites import beyond

pytestmark = pytest.mark.spark


@pytest.mark.long("contracts")
def test_the_history_shows_a_delete_and_the_change_feed_its_rows(lab: DeltaLab) -> None:
    table = AgedDelta(lab, properties={"delta.enableChangeDataFeed": "true"})
    table.append((1, days_ago(91)), (2, days_ago(200)))
    table.append((3, days_ago(1)))
    table.run()
    marked, deleted = table.sql("DESCRIBE HISTORY {} LIMIT 2")
    assert (marked["operation"], marked["operationMetrics"]["numDeletedRows"]) == ("DELETE", "0")
    assert (deleted["operation"], deleted["operationMetrics"]["numDeletedRows"]) == ("DELETE", "2")
    assert "ts < 20" in deleted["operationParameters"]["predicate"]
    assert table.changes(deleted["version"]) == [("delete", 1), ("delete", 2)]
    assert table.changes(marked["version"]) == []


KINDS = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")
FEATURES = {
    "vectors and feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "mapped columns": {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    "row ids": {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"},
}
ONCE = list(zip(KINDS, FEATURES, strict=True))
"""Each type and each features once."""


@pytest.mark.parametrize(
    ("kind", "features"), [*beyond(0, ONCE), *beyond(0, sorted({*product(KINDS, FEATURES)} - {*ONCE}), "care")]
)
def test_exactly_the_files_that_are_over_go_whatever_the_tables_features(
    lab: DeltaLab, kind: str, features: str
) -> None:
    def spelled(days: float) -> Any:
        return days_ago(days).date() if kind == "DATE" else days_ago(days)

    properties = FEATURES[features]
    table = AgedDelta(lab, kind=kind, properties=properties)
    table.append(*((number, spelled(92 + number)) for number in range(10)))
    table.append(*((number, spelled(85 + number)) for number in range(10, 20)), (20, spelled(80)))
    table.append((30, spelled(100)), (31, spelled(1)))
    # The file of these rows is over for its readers; its statistics still count the hidden one, so it stays.
    table.sql("DELETE FROM {} WHERE id IN (0, 31)")
    before, (version,) = table.ids(), table.refs()
    has_vectors = properties.get("delta.enableDeletionVectors") == "true"
    expected = [*range(10, 21), *([30] if has_vectors else [])]
    done = table.run()
    assert table.ids() == expected
    assert done.figures["rows_removed"] == len(before) - len(expected)
    assert table.at(version) == before
    if "delta.enableChangeDataFeed" in properties:
        gone = sorted(set(before) - set(expected))
        assert table.changes(done.commits[0]) == [("delete", number) for number in gone]


@pytest.mark.long("contracts")
def test_a_stream_that_skips_changes_goes_on_and_sees_no_row_again(lab: DeltaLab) -> None:
    table = AgedDelta(lab)
    table.append((1, days_ago(100)))
    seen: list[int] = []

    def read() -> None:
        stream = lab.spark.readStream.format("delta").option("skipChangeCommits", "true").load(str(table.path))
        writer = stream.writeStream.option("checkpointLocation", str(lab.directory / "at")).trigger(availableNow=True)
        writer.foreachBatch(
            lambda frame, _: seen.extend(row["id"] for row in frame.collect())
        ).start().awaitTermination()

    read()
    table.append((2, days_ago(1)))
    assert table.run().figures["rows_removed"] == 1
    table.append((3, days_ago(0)))
    read()
    assert sorted(seen) == [1, 2, 3]


@pytest.mark.long("contracts")
def test_a_table_that_is_only_appended_to_is_refused(lab: DeltaLab) -> None:
    table = AgedDelta(lab, properties={"delta.appendOnly": "true"})
    table.append((1, days_ago(100)))
    with pytest.raises(Unsupported, match="appendOnly"):
        table.run()
