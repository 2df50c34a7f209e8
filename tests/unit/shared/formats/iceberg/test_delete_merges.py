"""Which delete files are merged: all that are more than one per data file, or that vectors replace, and none twice."""

from hypothesis import given
from hypothesis import strategies as st

from shared.formats.iceberg.delete_merges import MOST_ROWS, LiveDelete, superfluous
from shared.layout.delete_files import DeleteFileCount
from shared.table import DeleteKind, PartitionKey

P0, P1 = PartitionKey('{"g":"0"}'), PartitionKey('{"g":"1"}')


def deletes(*given: tuple[str, str, PartitionKey]) -> list[LiveDelete]:
    return [LiveDelete(name, DeleteKind.POSITION, of, where, 1) for name, of, where in given]


def test_several_of_one_data_file_or_of_one_partition_are_merged() -> None:
    found = deletes(("a", "f", P0), ("b", "f", P0), ("c", "g", P0), ("d", "", P0), ("e", "", P1), ("x", "", P1))
    merged = superfluous(found, 2)
    assert merged.names == {"a", "b", "e", "x"}
    assert merged.files == DeleteFileCount(6, 2)


def test_from_version_3_on_every_file_of_positions_is_replaced_by_vectors() -> None:
    vector = LiveDelete("v#4", DeleteKind.VECTOR, "h", P0, 1)
    merged = superfluous([*deletes(("a", "f", P0), ("c", "g", P0), ("e", "", P1)), vector], 3)
    assert (merged.names, merged.files) == ({"a", "c", "e"}, DeleteFileCount(4, 3))


def test_deletes_by_value_stay_and_so_do_files_that_name_too_many_rows_together() -> None:
    values = [LiveDelete(name, DeleteKind.EQUALITY, "", P0, 1) for name in "ab"]
    allowed = [LiveDelete(name, DeleteKind.POSITION, "", P0, MOST_ROWS // 2) for name in "cd"]
    assert superfluous([*values, *allowed], 2).names == {"c", "d"}
    many = [*allowed, LiveDelete("one more", DeleteKind.POSITION, "", P0, 1)]
    assert superfluous([*values, *many], 2) == (
        frozenset(),
        DeleteFileCount(3, 0, 2),
        frozenset({"c", "d", "one more"}),
    )
    assert superfluous([one._replace(of="f") for one in many], 2).left == {"c", "d", "one more"}
    assert superfluous(many[:1], 2).left == frozenset()


def test_beside_shared_files_that_stay_none_of_a_partition_becomes_a_vector() -> None:
    own = deletes(("a", "f", P0), ("b", "f", P0), ("c", "h", P1), ("e", "", P1))
    found = [*own, LiveDelete("many", DeleteKind.POSITION, "", P0, MOST_ROWS + 1)]
    assert superfluous(found, 3) == (frozenset("ce"), DeleteFileCount(5, 2), {"a", "b", "many"})
    assert superfluous(found, 2).names == {"a", "b"}


NAMED = st.lists(st.tuples(st.sampled_from(["", "f", "g"]), st.sampled_from([P0, P1])), max_size=8)


@given(NAMED, st.sampled_from([2, 3]))
def test_what_is_merged_is_not_merged_again(named: list[tuple[str, PartitionKey]], version: int) -> None:
    """Of what stays, and of one for each data file that the others name rows of."""
    found = deletes(*((f"d{number}", of, where) for number, (of, where) in enumerate(named)))
    merged = superfluous(found, version)
    stay = [one for one in found if one.name not in merged.names]
    kind = DeleteKind.POSITION if version == 2 else DeleteKind.VECTOR
    files = {(one.of or "h", one.partition) for one in found if one.name in merged.names}
    new = [LiveDelete(f"new-{of}-{where}", kind, of, where, 1) for of, where in files]
    assert superfluous([*stay, *new], version).names == frozenset()
    assert superfluous([*stay, *new], version).files.excess == 0
