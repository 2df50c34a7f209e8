"""Words of others cannot steer a terminal, whatever prints them."""

import io
import json
import logging

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from services.cli.checks.finding import Finding, FindingLevel
from services.cli.commands.doctor import show
from services.cli.render import Output
from services.logs import configure_logs
from services.visible_text import visible, visible_json, visible_lines

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
