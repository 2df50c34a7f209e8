"""The class of a file follows from its tags, as the library's own filters do; damaged tags never raise."""

import json

import pytest

from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, FileClass, IndexFile, index_file, tagged_blocks
from shared.formats.qbeast.revisions import Revisions, decode_revisions
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.support.qbeast_tree import configuration

REVISIONS: Revisions = decode_revisions(configuration(500))
BLOCK = {"cubeId": "wQ", "minWeight": -5, "maxWeight": 7, "elementCount": 30, "replicated": False}


def found(tags: dict[str, str]) -> IndexFile:
    return index_file(DataFile("f", 11, WHOLE_TABLE, modified_ms=13, tags=tags), REVISIONS)


def blocks(*raw: object) -> dict[str, str]:
    return {"revision": "1", "blocks": json.dumps(raw)}


def test_an_indexed_file_has_its_blocks() -> None:
    file = found(blocks(BLOCK, {"cubeId": ""}))
    assert (file.kind, file.revision, file.problem) == (FileClass.INDEXED, 1, "")
    assert file.blocks == (Block("wQ", -5, 7, 30), Block("", MIN_WEIGHT, MAX_WEIGHT, 0)), "defaults of the library"
    assert (file.path, file.size_bytes, file.modified_ms, file.rows) == ("f", 11, 13, 30)


def test_unknown_fields_of_a_block_are_ignored_and_a_file_without_blocks_is_indexed() -> None:
    assert found(blocks(BLOCK | {"replicated": None, "new": 1})).kind is FileClass.INDEXED
    assert found(blocks()).blocks == ()


@pytest.mark.parametrize(
    ("tags", "kind"),
    [
        ({}, FileClass.UNINDEXED),
        ({"revision": "0"}, FileClass.UNINDEXED),
        ({"revision": "0", "blocks": "[]"}, FileClass.UNINDEXED),  # What 0.7.1 makes of such files when it merges them.
        ({"ZCUBE_ID": "x"}, FileClass.FOREIGN_TAGS),
        ({"INSERTION_TIME": "1"}, FileClass.FOREIGN_TAGS),
        ({"blocks": "[]"}, FileClass.FOREIGN_TAGS),
        ({"cube": "w", "revision": "1", "state": "FLOODED"}, FileClass.LEGACY),
    ],
)
def test_a_file_that_is_not_indexed_is_of_the_class_that_the_library_gives_it(
    tags: dict[str, str], kind: FileClass
) -> None:
    file = found(tags)
    assert (file.kind, file.revision, file.blocks) == (kind, 0, ())


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        (blocks(BLOCK) | {"revision": "2"}, "no revision"),
        (blocks(BLOCK) | {"revision": "one"}, "no revision"),
        ({"revision": "1"}, "no JSON"),
        ({"revision": "1", "blocks": "{}"}, "a list of blocks"),
        (blocks("w"), "a cubeId"),
        (blocks({"cubeId": None}), "a cubeId"),
        (blocks(BLOCK | {"cubeId": "w="}), "no symbol"),
        (blocks(BLOCK | {"elementCount": -1}), "elementCount is -1"),
        (blocks(BLOCK | {"elementCount": 2**63}), "elementCount"),
        (blocks(BLOCK | {"elementCount": True}), "elementCount"),
        (blocks(BLOCK | {"minWeight": 1.5}), "minWeight"),
        (blocks(BLOCK | {"maxWeight": 2**31}), "maxWeight"),
    ],
)
def test_a_file_whose_tags_cannot_be_used_is_malformed_with_the_reason(tags: dict[str, str], problem: str) -> None:
    file = found(tags)
    assert (file.kind, file.blocks) == (FileClass.MALFORMED, ())
    assert problem in file.problem


def test_blocks_are_read_from_tags_alone_where_no_revision_is_known() -> None:
    block = {"cubeId": "no cube of ours", "elementCount": 3}
    assert tagged_blocks({"blocks": json.dumps([block])}) == (Block("no cube of ours", MIN_WEIGHT, MAX_WEIGHT, 3),)
    odd: list[object] = [None, [], {}, {"blocks": 3}, {"blocks": "["}, {"blocks": '[{"cubeId": 1}]'}]
    assert [tagged_blocks(tags) for tags in odd] == [None] * len(odd)
