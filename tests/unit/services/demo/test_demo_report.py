"""The demonstration says what it waits for, what it found, and what becomes of its folder."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from services.demo import __main__ as demo
from services.demo.commit_log import CommitLogSums
from services.demo.demo_run import DemoRun, waiting_text
from services.demo.report import figures, show
from services.demo.row_checksum import Fingerprint
from shared.policy.policy import Policy

RESULT = figures(CommitLogSums(), Policy(), {}, Fingerprint(), Fingerprint())


def test_titles_of_its_tables_are_never_broken() -> None:
    output = io.StringIO()
    show(Console(file=output, width=80), RESULT)
    lines = [line.strip() for line in output.getvalue().splitlines()]
    for title in ("The table, without and with Lakewright", "The funnel", "Bytes rewritten per byte ingested"):
        assert title in lines


def test_the_wait_shows_how_long_it_has_lasted() -> None:
    assert "(12 s;" in waiting_text(12.3)


@pytest.mark.parametrize("is_kept", [False, True])
def test_it_says_that_its_folder_is_deleted_and_how_to_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_kept: bool
) -> None:
    monkeypatch.setattr(DemoRun, "run", lambda _self: RESULT)
    monkeypatch.setattr(sys, "argv", ["demo", *(["--keep", str(tmp_path)] if is_kept else [])])
    assert demo.main() == 0
    assert ("--keep DIR" in capsys.readouterr().out) is not is_kept
