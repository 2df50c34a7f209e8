"""Whoever logs goes on: lines are lost and counted, floods are bounded, and control characters are shown as escapes."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from services.cli.checks.finding import Finding, FindingLevel
from services.cli.commands.doctor import show
from services.cli.render import Output
from services.log_limits import BURST, MAX_KINDS, PER_S, FloodLimit
from services.logs import configure_logs
from services.visible_text import visible, visible_json, visible_lines


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


HOSTILE = "a\x1b[2Jb\x1b]52;c;aGk=\x07c\r\nlakewright: all is well\x9b31m\u202e\u2028\x7f\ud800z"
FORBIDDEN = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2028", "\ud800"} - {"\n"}
OUTPUTS = {
    "rows": lambda out: out.rows(HOSTILE, ("a", "b"), [(HOSTILE, {HOSTILE: HOSTILE})]),
    "pairs": lambda out: out.pairs("title", {HOSTILE: HOSTILE}),
    "line": lambda out: out.line(HOSTILE),
    "raw": lambda out: out.raw({HOSTILE: HOSTILE}),
    "one_line": lambda out: out.one_line({HOSTILE: HOSTILE}),
    "console": lambda out: out.console.print(HOSTILE, markup=False),
    "doctor": lambda out: show([Finding("a", FindingLevel.OK, HOSTILE, HOSTILE, HOSTILE)], out.console),
}


@given(st.text())
def test_a_visible_text_is_one_line_without_control_characters_and_plain_words_stay(text: str) -> None:
    assert not set(visible(text)) & (FORBIDDEN | {"\n"})
    assert visible(visible(text)) == visible(text)
    assert visible("Zoë's 表 (a=1)") == "Zoë's 表 (a=1)"


@given(st.recursive(st.text() | st.none(), lambda inner: st.dictionaries(st.text(), inner, max_size=3)))
def test_visible_json_means_the_same(value: object) -> None:
    written = visible_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert json.loads(written) == value
    assert not set(written) & FORBIDDEN


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_output_of_the_command_line_passes_control_characters_on(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    OUTPUTS[name](Output(width=1_000, as_json=False))
    printed = capsys.readouterr().out
    assert "lakewright: all is well" in printed
    assert not set(printed) & FORBIDDEN
    assert not any(line.startswith("lakewright") for line in printed.splitlines() if name != "console")


def test_lines_of_a_message_cannot_pass_for_messages() -> None:
    assert visible_lines("a\nlakewright: ok\x1b") == "a\n  lakewright: ok\\u001b"


def fail(*, secret: str) -> None:
    raise ValueError(HOSTILE if secret else "")


@pytest.fixture
def _logging_restored() -> object:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, structlog.get_config())
    yield None
    root.handlers, root.level = before[0], before[1]
    structlog.configure(**before[2])


@pytest.mark.usefixtures("_logging_restored")
@pytest.mark.parametrize("form", ["console", "json"])
def test_no_log_passes_control_characters_on_and_no_traceback_shows_variables(form: str) -> None:
    stream = io.StringIO()
    configure_logs("info", form, stream)
    log = structlog.get_logger()
    log.info("event", value=HOSTILE, values=[HOSTILE], inner={HOSTILE: HOSTILE})
    logging.getLogger("a library").error(HOSTILE)
    try:
        fail(secret="x" + "not-for-logs" * 2)
    except ValueError:
        log.exception("failed")
    written = stream.getvalue()
    assert not set(written) & FORBIDDEN
    assert written.count("all is well") >= 4
    assert "not-for-logsnot" not in written
