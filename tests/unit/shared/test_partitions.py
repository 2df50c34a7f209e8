"""Two spellings of one partition value name one partition; a file is its path with its deletion vector."""

import pytest

from shared.errors import InvalidInput
from shared.partitions import WHOLE_TABLE, partition_key, partition_label, partition_values
from shared.table import (
    BEFORE_FIRST,
    Commit,
    DataFile,
    FileKey,
    PartitionColumn,
    Position,
    RemovedFile,
    Snapshot,
    TableMetadata,
    TableProtocol,
)

DAY = PartitionColumn("dt", "dt", "date")
MOMENT = PartitionColumn("at", "col-7f", "timestamp")
WORD = PartitionColumn("w", "w", "string")


def test_null_and_empty_are_one_value() -> None:
    assert partition_key([WORD], {"w": ""}) == partition_key([WORD], {"w": None})
    assert partition_label(partition_key([WORD], {"w": None})) == "w=null"


@pytest.mark.parametrize(
    "spelling",
    ["2026-01-01 10:00:00", "2026-01-01 10:00:00.0", "2026-01-01T10:00:00.000000Z", "2026-01-01T12:00:00.000000+02:00"],
)
def test_timestamp_spellings_meet_in_one_partition(spelling: str) -> None:
    assert partition_values(partition_key([MOMENT], {"col-7f": spelling})) == {"col-7f": "2026-01-01T10:00:00.000000"}


def test_fractions_of_a_second_stay_apart() -> None:
    assert partition_key([MOMENT], {"col-7f": "2026-01-01 10:00:00.5"}) != partition_key(
        [MOMENT], {"col-7f": "2026-01-01 10:00:00"}
    )


def test_order_of_columns_does_not_matter() -> None:
    values = {"w": "x", "dt": "2026-01-01"}
    assert partition_key([DAY, WORD], values) == partition_key([WORD, DAY], values)


def test_unpartitioned_tables_have_one_partition() -> None:
    assert partition_key([], {}) == WHOLE_TABLE
    assert partition_label(WHOLE_TABLE) == "(whole table)"


def test_a_missing_value_is_not_guessed_to_be_null() -> None:
    with pytest.raises(InvalidInput, match="dt"):
        partition_key([DAY], {"day": "2026-01-01"})


def test_a_strange_timestamp_is_kept_as_it_is() -> None:
    assert partition_values(partition_key([MOMENT], {"col-7f": "yesterday"})) == {"col-7f": "yesterday"}


@pytest.mark.parametrize(
    "spelled",
    [
        "10000-01-01 00:00:00+01:00",
        "9999-12-31 23:00:00-02:00",
        "0001-01-01 00:00:00+02:00",
        "0000-01-01 00:00:00+00:00",
        "2026-02-30 00:00:00+00:00",
        "2026-01-01 24:00:00+00:00",
        "2026-01-01 00:00:00+99:99",
    ],
)
def test_a_moment_that_python_has_no_date_for_is_kept_as_it_is(spelled: str) -> None:
    """One such value once kept a whole table from being read."""
    assert partition_values(partition_key((MOMENT,), {"col-7f": spelled})) == {"col-7f": spelled}


def test_early_years_have_four_digits_in_each_spelling() -> None:
    spellings = ("0999-01-01 00:00:00", "0999-01-01T00:00:00Z", "0999-01-01 01:00:00+01:00")
    assert {partition_key((MOMENT,), {"col-7f": one}) for one in spellings} == {
        '{"col-7f":"0999-01-01T00:00:00.000000"}'
    }


@pytest.mark.parametrize("dv_id", [None, "u1"])
def test_a_file_and_its_removal_have_one_key(dv_id: str | None) -> None:
    assert DataFile("a", 1, WHOLE_TABLE, dv_id).key == RemovedFile("a", dv_id).key == FileKey("a", dv_id)


def test_positions_are_ordered_by_version_whatever_their_digests() -> None:
    commit = Commit(4, 0, "WRITE", digest="b")
    snapshot = Snapshot(4, 0, TableMetadata("t"), TableProtocol(1, 2), (), "b")
    assert commit.position == snapshot.position == Position(4, "b")
    assert BEFORE_FIRST < Position(0, "z") < commit.position
    assert not Position(4, "a") < commit.position
