"""Which data files a delete file applies to, and delete files that apply to none; Iceberg's scan is a contract."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import DataFileContent

from shared.errors import Corrupt
from shared.formats.iceberg.dangling import DanglingSearch
from shared.formats.iceberg.deletes import DeleteIndex, deletes_id, has_same_places
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.formats.iceberg.metadata import decode_head, parse_metadata
from shared.table import DeleteKind, PartitionKey
from tests.support.iceberg_folder import IcebergFolder, Written

PLACES, VALUES = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES
A, B = (0,), (3,)


class Table(IcebergFolder):
    """A table with a file of partition B that is older than anything else."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, spec="bucket")
        self.create("00000000-0000-0000-0000-0000000000aa")
        self.oldest = self.add(values=B)
        self.search = DanglingSearch()
        self.read: list[str] = []

    def add(self, content: DataFileContent = DataFileContent.DATA, **more: Any) -> Written:
        one = self.file(1, content=content, **more)
        self.commit([one])
        return one

    def remove(self, *files: Written) -> None:
        self.commit(removed=[one.path for one in files], operation="delete")

    def dangling(self, *, again: bool = False) -> list[str]:
        """Search in the newest metadata, `again` by the search before, and note the files that were read."""
        self.search = self.search if again else DanglingSearch()
        newest = self.path / "metadata" / f"v{self._state.version}.metadata.json"
        walk = self.search.find(decode_head(parse_metadata(newest.read_bytes(), str(newest)), str(newest)))
        self.read = []
        try:
            wanted = next(walk)
            while True:
                self.read += wanted.paths
                places = [Path(path.removeprefix("file://")) for path in wanted.paths]
                wanted = walk.send([place.read_bytes() if place.exists() else None for place in places])
        except StopIteration as end:
            return [one.path for one in end.value]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


def test_places_of_one_file_go_with_it_wherever_older_files_are(table: Table) -> None:
    named, other = table.add(values=A), table.add(values=A)
    delete = table.add(PLACES, values=A, referenced=named.path)
    assert table.dangling() == []
    table.remove(other)
    assert table.dangling() == []
    table.remove(named)
    assert table.dangling() == [delete.path]


def test_places_of_several_files_go_with_the_last_file_of_their_partition_that_is_not_younger(table: Table) -> None:
    file = table.add(values=A)
    delete = table.add(PLACES, values=A)
    table.add(values=A)
    assert table.dangling() == []
    table.remove(file)
    assert table.dangling() == [delete.path]


def test_values_go_with_the_last_older_file_of_their_partition(table: Table) -> None:
    delete, first = table.file(1, values=A, content=VALUES), table.file(1, values=A)
    table.commit([delete, first])
    assert table.dangling() == [delete.path], "what is of the same commit is not older"
    later = table.add(VALUES, values=A)
    assert table.dangling() == [delete.path]
    table.remove(first)
    assert table.dangling() == sorted([delete.path, later.path])


def test_values_of_a_spec_without_partitions_are_needed_by_any_older_file(table: Table) -> None:
    table.evolve("none")
    delete = table.add(VALUES)
    table.add()
    assert table.dangling() == []
    table.remove(table.oldest)
    assert table.dangling() == [delete.path]


def test_a_search_that_is_repeated_reads_new_manifests_alone_and_takes_back_what_came_back(table: Table) -> None:
    file = table.add(values=A)
    delete = table.add(PLACES, values=A)
    with_file = table.snapshot
    table.remove(file)
    assert table.dangling() == [delete.path]
    of_data = len(table.read)
    assert table.dangling(again=True) == [delete.path]
    assert len(table.read) == of_data - 1, "the list, and the manifest of delete files"
    assert with_file is not None
    table.rollback(with_file)
    assert table.dangling(again=True) == []


def test_a_search_that_is_repeated_takes_no_delete_file_that_came_since(table: Table) -> None:
    """It has passed by the data files that such a delete file names."""
    named = table.add(values=A)
    table.add(VALUES, values=A)
    assert table.dangling() == []
    table.add(PLACES, values=A, referenced=named.path)
    assert table.dangling(again=True) == []


def test_what_is_not_there_any_more_is_not_found(table: Table) -> None:
    delete = table.add(VALUES, values=A)
    assert table.dangling() == [delete.path]
    table.remove(delete)
    assert table.dangling(again=True) == []


def test_without_delete_files_the_list_alone_is_read_and_without_a_snapshot_nothing(table: Table) -> None:
    assert (table.dangling(), len(table.read)) == ([], 1)
    empty = IcebergFolder(table.path.parent / "empty")
    empty.create("00000000-0000-0000-0000-0000000000bb")
    head = (empty.path / "metadata" / "v1.metadata.json").read_bytes()
    assert list(DanglingSearch().find(decode_head(parse_metadata(head, "t"), "t"))) == []


def test_a_manifest_that_is_missing_ends_the_search(table: Table) -> None:
    table.add(VALUES, values=A)
    assert table.dangling()
    Path(table.read[-1].removeprefix("file://")).unlink()
    with pytest.raises(Corrupt, match="is missing, and the newest snapshot needs it"):
        table.dangling()


P, Q = PartitionKey('{"g":"0"}'), PartitionKey('{"g":"1"}')
ATTACHED_PLACES, ATTACHED_VALUES, VECTOR = DeleteKind.POSITION, DeleteKind.EQUALITY, DeleteKind.VECTOR


def entry(path: str, sequence: int, *, kind: DeleteKind | None = None, of: str = "", **more: Any) -> Entry:
    offset = 7 if kind is VECTOR else None
    made = Entry(EntryStatus.EXISTING, 1, sequence, path, P, 9, 4, kind, 0, sequence, of, offset)
    return made._replace(**more)


def applied(file: Entry, *deletes: Entry, unpartitioned: tuple[int, ...] = ()) -> tuple[str | None, int]:
    found = DeleteIndex(deletes, unpartitioned).of(file)
    return found.id, found.rows


FILE = entry("f", 5, rows=10)


@pytest.mark.parametrize(
    ("delete", "rows"),
    [
        (entry("d", 5, kind=ATTACHED_PLACES, of="f"), 4),
        (entry("d", 4, kind=ATTACHED_PLACES, of="f"), None),
        (entry("d", 5, kind=ATTACHED_PLACES, of="g"), None),
        (entry("d", 5, kind=ATTACHED_PLACES), 0),
        (entry("d", 4, kind=ATTACHED_PLACES), None),
        (entry("d", 5, kind=ATTACHED_PLACES, partition=Q), None),
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
    delete = entry("d", sequence, kind=ATTACHED_VALUES, partition=partition, spec=spec)
    assert applied(FILE, delete, unpartitioned=(1,)) == (("+values" if applies else None), 0)


def test_a_vector_takes_the_place_of_all_files_of_positions() -> None:
    vector = entry("v", 7, kind=VECTOR, of="f", rows=3)
    older = (entry("d", 6, kind=ATTACHED_PLACES, of="f"), entry("e", 6, kind=ATTACHED_PLACES))
    assert applied(FILE, *older, vector) == (deletes_id(["v#7"], has_values=False), 3)


def test_positions_that_were_written_before_a_file_was_added_name_none_of_its_rows() -> None:
    """The output of a rewrite keeps the sequence number of its inputs, to which the delete file applied."""
    delete = entry("d", 5, kind=ATTACHED_PLACES)
    assert applied(entry("out", 5, file_sequence=6), delete) == (None, 0)
    assert applied(entry("in", 5, file_sequence=5), delete) != (None, 0)
    late = entry("e", 6, kind=ATTACHED_PLACES)
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
