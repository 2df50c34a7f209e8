"""Whoever logs goes on: lines are lost and counted, floods are bounded, and both are said."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from services.log_limits import BURST, MAX_KINDS, PER_S, FloodLimit
from services.logs import configure_logs


class Disk(io.StringIO):
    """A stream whose disk may be full."""

    is_full = False

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().write(text)


class Unspeakable:
    """A value without a text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__


@pytest.fixture
def disk() -> Iterator[Disk]:
    handlers, level = logging.root.handlers[:], logging.root.level
    stream = Disk()
    configure_logs("info", "json", stream)
    yield stream
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def events(disk: Disk) -> list[dict[str, Any]]:
    return [json.loads(line) for line in disk.getvalue().splitlines()]


def test_a_full_disk_loses_lines_of_ours_and_of_libraries_and_no_one_else_notices(disk: Disk) -> None:
    log, library = structlog.get_logger(), logging.getLogger("a.library")
    disk.is_full = True
    log.warning("refresh_failed", table="orders")
    library.error("lost connection %s", 7)
    log.error("crashed", exc_info=KeyError("a bug"))
    disk.is_full = False
    log.info("refreshed")
    log.info("refreshed")
    assert [(one["event"], one.get("lines")) for one in events(disk)] == [
        ("refreshed", None), ("log_lines_lost", 3), ("refreshed", None),
    ]  # fmt: skip


def test_a_closed_stream_and_a_value_without_a_text_lose_their_line_only(disk: Disk) -> None:
    log = structlog.get_logger()
    log.warning("odd", value=Unspeakable())
    log.info("sound")
    disk.close()
    log.info("to nowhere")
    logging.getLogger("a.library").error("to nowhere")


def test_a_flood_of_one_kind_is_bounded_said_and_costs_other_kinds_nothing(disk: Disk) -> None:
    log = structlog.get_logger()
    for _ in range(3 * BURST):
        log.warning("connection_refused")
        logging.getLogger("asyncio").error("socket.accept() out of system resource")
    log.warning("another")
    log.info("connection_refused")
    counts = [one["event"] for one in events(disk)]
    assert counts.count("connection_refused") <= BURST + 2
    assert counts.count("socket.accept() out of system resource") <= BURST + 2
    assert counts[-2:] == ["another", "connection_refused"], "and what is no warning is not counted"


def test_the_next_line_of_a_flood_says_how_many_were_left_out() -> None:
    now_s = 0.0
    flood = FloodLimit(lambda: now_s)
    passed = [flood.passes("kind") for _ in range(BURST + 30)]
    assert passed == [0] * BURST + [None] * 30
    now_s = 1 / PER_S
    assert flood.passes("kind") == 30
    assert flood.passes("kind") is None
    now_s += 1_000
    assert flood.passes("kind") == 1
    assert [flood.passes("kind") for _ in range(BURST)][-1] is None, "an allowance never grows above the burst"


def test_the_memory_of_kinds_is_bounded() -> None:
    flood = FloodLimit(lambda: 0.0)
    for number in range(MAX_KINDS + 10):
        flood.passes(f"kind {number}")
    assert len(flood._kinds) == MAX_KINDS
