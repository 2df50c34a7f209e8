"""A delete file by value goes only with all data files that it applies to, the oldest first, as many as may be held."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from actor.formats.iceberg import value_groups
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.value_groups import LiveValues, with_vectors
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, PartitionKey

P0, P1 = PartitionKey('{"g":"0"}'), PartitionKey('{"g":"1"}')
OF_ALL = 5
"""Id of a spec without partitions."""


def value(name: str, sequence: int, where: PartitionKey = P0, *, rows: int = 1, spec: int = 0) -> AppliedDelete:
    size = 10 * rows
    return AppliedDelete(
        name, DeleteKind.EQUALITY, rows, False, partition=where, sequence=sequence, spec=spec, size_bytes=size
    )


def vector(name: str) -> AppliedDelete:
    return AppliedDelete(name, DeleteKind.VECTOR, 1, is_exact=True)


def found(
    deletes: Sequence[AppliedDelete],
    files: Mapping[str, tuple[int, PartitionKey]],
    vectors: Mapping[str, AppliedDelete] | None = None,
) -> LiveValues:
    """Return a snapshot with these deletes by value, and data files by number and partition."""
    inputs = tuple(
        LiveInput(
            *(path, 10, 1, 0),
            (vectors[path],) if vectors and path in vectors else (),
            DataFile(path, 10, where, rows=1),
        )
        for path, (_, where) in files.items()
    )
    numbers = {path: number for path, (number, _) in files.items()}
    return LiveValues(7, inputs, numbers, tuple(deletes), {OF_ALL})


def groups(live: LiveValues, *refused: set[str]) -> list[tuple[list[str], dict[str, list[str]]]]:
    """Return the delete files of each group, and those that apply to each of its data files."""
    return [
        ([one.path for one in each.group.files], {one.path: [d.path for d in one.deletes] for one in each.inputs})
        for each in value_groups.value_groups(live, live.deletes, {*map(frozenset, refused)}).groups
    ]


FILES = {"old": (1, P0), "same": (3, P0), "late": (5, P0), "other": (1, P1)}


def test_a_delete_applies_to_older_data_files_of_its_partition_alone() -> None:
    live = found([value("a", 3), value("b", 5), value("c", 2, P1), value("d", 1, P1)], FILES)
    assert groups(live) == [
        (["c"], {"other": ["c"]}),
        (["a", "b"], {"old": ["a", "b"], "same": ["b"]}),
    ]


def test_one_of_a_spec_without_partitions_applies_to_those_of_all_and_goes_alone() -> None:
    live = found([value("a", 3), value("all", 4, WHOLE_TABLE, spec=OF_ALL)], FILES)
    assert groups(live) == [(["all"], {"old": ["all"], "other": ["all"], "same": ["all"]})]
    assert value_groups.value_groups(live, live.deletes, ()).groups[0].group.partition == WHOLE_TABLE
    assert groups(found([value("all", 1, WHOLE_TABLE, spec=OF_ALL)], FILES)) == [], "older than all of them"


def test_the_oldest_go_first_and_those_that_alone_are_too_large_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    live = found([value("c", 5), value("large", 2, rows=4), value("a", 2), value("b", 3, rows=2)], FILES)
    monkeypatch.setattr(value_groups, "MOST_KEYS", 3)
    assert [names for names, _ in groups(live)] == [["a", "b"]]
    assert value_groups.value_groups(live, live.deletes, ()).left == {"large"}
    monkeypatch.setattr(value_groups, "MOST_KEYS", 2)
    assert [names for names, _ in groups(live)] == [["a"]]
    monkeypatch.undo()
    monkeypatch.setattr(value_groups, "MOST_KEY_BYTES", 30)
    assert [names for names, _ in groups(live)] == [["a", "b"]]
    monkeypatch.undo()
    monkeypatch.setattr(value_groups, "MOST_DATA_FILES", 1)
    assert value_groups.value_groups(live, live.deletes, ()).left == {"c"}
    monkeypatch.undo()
    monkeypatch.setattr(value_groups, "MOST_PAIRS", 3)
    assert [names for names, _ in groups(live)] == [["a", "large", "b"]]


def test_the_delete_files_of_a_refused_group_are_tried_alone_and_the_later_ones_keep_their_turn() -> None:
    live = found([value("a", 2), value("b", 3), value("c", 4), value("d", 5)], FILES)
    refused = {"a", "b", "c"}
    for done, following in (
        ([], ["a"]),
        ([{"a"}], ["b"]),
        ([{"a"}, {"b"}], ["c"]),
        ([{"a"}, {"b"}, {"c"}], ["d"]),
        ([{"a"}, {"b"}, {"c"}, {"d"}], None),
    ):
        assert [names for names, _ in groups(live, refused, *done)] == ([] if following is None else [following])
    assert [names for names, _ in groups(found([value("b", 3), value("d", 5)], FILES), refused)] == [["b"]]
    assert [names for names, _ in groups(found([value("d", 1), value("b", 3)], FILES), refused)] == [["b"]]
    assert [names for names, _ in groups(found([value("d", 2), value("b", 3)], FILES), refused)] == [["d"]]


def test_a_refused_one_of_all_keeps_no_partition_from_its_turn() -> None:
    live = found([value("a", 3), value("all", 4, WHOLE_TABLE, spec=OF_ALL)], FILES)
    assert [names for names, _ in groups(live, {"all"})] == [["a"]]


def test_after_so_many_refusals_no_more_of_a_refused_group_are_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_groups, "MOST_TRIED", 2)
    live = found([value("a", 2), value("b", 3), value("c", 4), value("d", 5)], FILES)
    refused = {"a", "b", "c"}
    assert [names for names, _ in groups(live, refused, {"a"})] == [["b"]]
    assert [names for names, _ in groups(live, refused, {"a"}, {"b"})] == [["d"]]


def group(live: LiveValues, *names: str) -> InputGroup:
    return live.group([live.by_name[name] for name in names])


def test_a_group_is_in_a_later_snapshot_only_with_the_same_data_files_and_what_went_into_vectors() -> None:
    deletes = [value("a", 3), value("b", 5)]
    live = found(deletes, FILES, {"old": vector("v#1")})
    read = group(live, "a", "b")
    assert live.those_in([read]) == {read.group}
    assert replace(live, uncovered=lambda _: "old").those_in([read]) == frozenset()
    later = [*deletes, value("new", 9)]
    assert found(later, FILES | {"newer": (8, P0)}, {"old": vector("v#1")}).those_in([read]) == {read.group}
    for changed in (
        found(deletes[1:], FILES, {"old": vector("v#1")}),
        found(deletes, FILES),
        found(deletes, FILES, {"old": vector("v#2")}),
        found(deletes, FILES | {"output": (2, P0)}, {"old": vector("v#1")}),
        found(deletes, FILES | {"old": (4, P0)}, {"old": vector("v#1")}),
        found(deletes, {"old": (1, P0)}, {"old": vector("v#1")}),
        found([value("a", 4), deletes[1]], FILES, {"old": vector("v#1")}),
    ):
        assert changed.those_in([read]) == frozenset()


def test_a_vector_goes_where_another_one_was_written() -> None:
    places = AppliedDelete("p", DeleteKind.POSITION, 1, is_exact=False)
    live = found([value("a", 4)], FILES, {"old": vector("v#1"), "same": vector("w#1")})
    read = group(live, "a")
    assert [one.path for one in with_vectors(read, ["new", None]).group.files] == ["a", "v#1"]
    assert [one.path for one in with_vectors(read, [None, None]).group.files] == ["a"]
    of_places = group(found([value("a", 4)], FILES, {"old": places}), "a")
    assert [one.path for one in with_vectors(of_places, ["new", None]).group.files] == ["a"]
    assert live.by_name.keys() == {"a", "v#1", "w#1"}
