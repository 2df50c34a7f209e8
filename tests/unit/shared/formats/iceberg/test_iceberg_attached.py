"""Which delete files apply to which data files, by sequence numbers, paths and partitions."""

from dataclasses import replace
from typing import Any

import pytest

from shared.formats.iceberg.deletes import DeleteIndex, deletes_id, has_same_places
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.table import DeleteKind, PartitionKey

P, Q = PartitionKey('{"g":"0"}'), PartitionKey('{"g":"1"}')
PLACES, VALUES, VECTOR = DeleteKind.POSITION, DeleteKind.EQUALITY, DeleteKind.VECTOR


def entry(path: str, sequence: int, *, kind: DeleteKind | None = None, of: str = "", **more: Any) -> Entry:
    offset = 7 if kind is VECTOR else None
    made = Entry(EntryStatus.EXISTING, 1, sequence, path, P, 9, 4, kind, 0, sequence, of, offset)
    return replace(made, **more)


def applied(file: Entry, *deletes: Entry, unpartitioned: tuple[int, ...] = ()) -> tuple[str | None, int]:
    found = DeleteIndex(deletes, unpartitioned).of(file)
    return found.id, found.rows


FILE = entry("f", 5, rows=10)


@pytest.mark.parametrize(
    ("delete", "rows"),
    [
        (entry("d", 5, kind=PLACES, of="f"), 4),
        (entry("d", 4, kind=PLACES, of="f"), None),
        (entry("d", 5, kind=PLACES, of="g"), None),
        (entry("d", 5, kind=PLACES), 0),
        (entry("d", 4, kind=PLACES), None),
        (entry("d", 5, kind=PLACES, partition=Q), None),
        (entry("d", 5, kind=VECTOR, of="f", rows=90), 10),
        (entry("d", 4, kind=VECTOR, of="f"), None),
    ],
)
def test_positions_apply_to_what_is_not_newer_and_count_where_they_are_of_one_file(
    delete: Entry, rows: int | None
) -> None:
    found = applied(FILE, delete)
    assert found == ((None, 0) if rows is None else (deletes_id([delete.delete_id], has_values=False), rows))


@pytest.mark.parametrize(
    ("sequence", "partition", "spec", "applies"),
    [(6, P, 0, True), (5, P, 0, False), (6, Q, 0, False), (6, Q, 1, True), (5, Q, 1, False)],
)
def test_values_apply_to_what_is_older_in_their_partition_or_everywhere(
    sequence: int, partition: PartitionKey, spec: int, applies: bool
) -> None:
    delete = entry("d", sequence, kind=VALUES, partition=partition, spec=spec)
    assert applied(FILE, delete, unpartitioned=(1,)) == (("+values" if applies else None), 0)


def test_a_vector_takes_the_place_of_all_files_of_positions() -> None:
    vector = entry("v", 7, kind=VECTOR, of="f", rows=3)
    older = (entry("d", 6, kind=PLACES, of="f"), entry("e", 6, kind=PLACES))
    assert applied(FILE, *older, vector) == (deletes_id(["v#7"], has_values=False), 3)


def test_positions_that_were_written_before_a_file_was_added_name_none_of_its_rows() -> None:
    """The output of a rewrite keeps the sequence number of its inputs, to which the delete file applied."""
    delete = entry("d", 5, kind=PLACES)
    assert applied(entry("out", 5, file_sequence=6), delete) == (None, 0)
    assert applied(entry("in", 5, file_sequence=5), delete) != (None, 0)
    late = entry("e", 6, kind=PLACES)
    assert applied(entry("out", 5, file_sequence=6), delete, late) == (deletes_id(["e"], has_values=False), 0)


def test_a_plan_stays_valid_while_deletes_by_position_are_those_that_it_knew() -> None:
    one, two = (deletes_id([path], has_values=False) for path in "ab")
    with_values = deletes_id(["a"], has_values=True)
    assert has_same_places(one, with_values)
    assert has_same_places(with_values, one)
    assert has_same_places(None, two)
    assert has_same_places("+values", two)
    assert not has_same_places(one, two)
    assert not has_same_places(one, None)
    assert deletes_id([], has_values=False) is None
