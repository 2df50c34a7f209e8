"""Lines of a log are read by a fast parser; what it refuses is accepted or reported as the standard library does."""

import pytest

from decider.formats.delta.actions import decode_commit
from decider.formats.delta.damage import LogFile
from decider.formats.delta.lines import parsed_lines, split_lines
from shared.errors import Corrupt
from shared.table import TableMetadata

LOG = LogFile("file:///lake/t", 12, f"{12:020d}.json")


def read(data: bytes) -> list[tuple[int, dict[str, object]]]:
    return list(parsed_lines(split_lines(data), LOG))


def test_the_last_of_two_equal_keys_counts() -> None:
    assert read(b'{"a":1,"a":2}') == [(1, {"a": 2})]


def test_what_no_one_needs_may_be_no_number_or_half_a_character() -> None:
    commit = decode_commit(b'{"commitInfo":{"operation":"WRITE","x":NaN,"y":"\\ud800"}}', LOG, TableMetadata("id"))
    assert commit.operation == "WRITE"


def test_a_size_beyond_64_bits_is_refused() -> None:
    """Delta's sizes are 64-bit integers; until orjson read them, a larger one was accepted unchanged."""
    line = '{"add":{"path":"p","partitionValues":{},"size":%d,"modificationTime":1,"dataChange":true}}'
    assert decode_commit((line % (2**63 - 1)).encode(), LOG, TableMetadata("id")).added[0].size_bytes == 2**63 - 1
    with pytest.raises(Corrupt, match=r"add.size is 1.1\d+e\+21, expected a number of bytes"):
        decode_commit((line % 2**70).encode(), LOG, TableMetadata("id"))


def test_a_time_beyond_64_bits_is_no_time() -> None:
    body = b'{"commitInfo":{"timestamp":99999999999999999999999}}'
    assert decode_commit(body, LOG, TableMetadata("id")).timestamp_ms == 0


def test_bytes_that_are_not_utf8_are_damage_with_their_line() -> None:
    with pytest.raises(Corrupt, match=r"line 2: expected UTF-8"):
        read(b'{}\n{"add":"\xff"}')


def test_blank_lines_count_and_are_passed_over() -> None:
    assert read(b'\n \t\r\n{"a":1}\r\n') == [(3, {"a": 1})]
