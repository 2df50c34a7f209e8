"""Every whole command of an append-only file is found, in whatever state a full disk, a crash or a bit left it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.standalone.append_only_commands import Commands, Ending, read_commands


def command(*parts: bytes) -> bytes:
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def kept(data: bytes) -> tuple[bytes, Ending]:
    found = read_commands(data)
    return b"".join(data[start:end] for start, end in found.ranges), found.ending


PARTS = st.binary(max_size=20) | st.sampled_from([b"\0\0", b"\r\n\0", b"*1\r\n", b"$1\r\n\0\r\n"])
COMMANDS = st.lists(st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: command(b"SET", *parts)), max_size=6)


@given(COMMANDS, st.lists(st.integers(min_value=0, max_value=70_000), max_size=6))
def test_zeros_between_commands_are_left_out_and_every_command_is_kept(commands: list[bytes], holes: list[int]) -> None:
    data = b"".join(b"\0" * hole + one for one, hole in zip(commands, holes + [0] * len(commands), strict=False))
    assert kept(data) == (b"".join(commands), Ending.WHOLE)
    assert read_commands(data).has_zeros == (any(holes[: len(commands)]))


@given(COMMANDS, st.data())
def test_a_file_that_ends_within_a_command_is_torn_and_keeps_those_before(
    commands: list[bytes], data: st.DataObject
) -> None:
    last = command(b"SET", b"key", b"a longer value")
    cut = data.draw(st.integers(min_value=1, max_value=len(last) - 1))
    assert kept(b"".join(commands) + last[:cut]) == (b"".join(commands), Ending.TORN)


@pytest.mark.parametrize(
    "damage", [b"damage", b"*x\r\n", b"*1\r\n$1\r\nabc\r\n", b"*1\r\n#1\r\na\r\n", b"*" + b"1" * 2_000]
)
def test_what_is_no_command_ends_what_is_kept(damage: bytes) -> None:
    whole = command(b"SET", b"a", b"1")
    assert kept(whole + damage + whole * 100) == (whole, Ending.DAMAGED)


def test_a_transaction_counts_with_its_end_only() -> None:
    before, opened, inside, closed = (
        command(b"SET", b"a", b"1"),
        command(b"MULTI"),
        command(b"DEL", b"a"),
        command(b"exec"),
    )
    assert kept(before + opened + inside + closed) == (before + opened + inside + closed, Ending.WHOLE)
    assert kept(before + opened + inside) == (before, Ending.TORN)
    assert kept(before + opened + inside + b"damage" * 500) == (before, Ending.DAMAGED)


def test_annotations_of_time_are_kept() -> None:
    data = b"#TS:1700000000\r\n" + command(b"SET", b"a", b"1")
    assert kept(data) == (data, Ending.WHOLE)


def test_an_empty_file_has_no_commands() -> None:
    assert read_commands(b"") == Commands((), Ending.WHOLE)
