"""What the lines of a commit in the log are read as."""

import json

from actor.formats.qbeast.index_commit import RemovedIndexFile, decode_commit
from shared.layout.commit_metadata import CommitMetadata
from shared.table import CommitOrigin

ADD = {"add": {"path": "b", "size": 7, "stats": '{"numRecords": 3}', "tags": {"revision": "1"}}}
REMOVES = [{"remove": {"path": "a", "size": 5}}, {"remove": {"path": "c"}}]


def lines(*actions: object) -> list[str]:
    return [json.dumps(action) for action in actions]


def test_files_figures_and_mark_of_a_commit_of_ours_are_read() -> None:
    mark = CommitMetadata(CommitOrigin("j", 7), round=2, mode="index").encode()
    found = decode_commit(4, lines({"commitInfo": {"userMetadata": mark}}, *REMOVES, ADD))
    assert (found.version, found.write_id) == (4, "j/7/2")
    assert found.removed == (RemovedIndexFile("a", 5), RemovedIndexFile("c", 0))
    assert [(file.path, file.rows) for file in found.added] == [("b", 3)]
    assert found.figures() == {"files_replaced": 2, "bytes_replaced": 5, "files_written": 1, "bytes_written": 7}


def test_a_commit_of_others_has_no_mark() -> None:
    assert not decode_commit(1, lines(ADD)).changes_table
    assert decode_commit(1, lines({"protocol": {}}, ADD)).changes_table
    assert decode_commit(1, lines({"metaData": {}}, ADD)).changes_table
    for info in ({"commitInfo": {"userMetadata": "theirs"}}, {"commitInfo": None}, {"protocol": {}}):
        assert decode_commit(1, lines(info, ADD)).write_id == ""
