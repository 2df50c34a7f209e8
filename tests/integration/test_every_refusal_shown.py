"""Every kind of refusal is shown with table, partition, file and remedy wherever people look.

The kinds are those of docs/refusals.md (`tests.support.every_refusal`); `tests/page/test_every_refusal.py` looks at the
page.
"""

from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.checks import decider as doctor
from services.cli.cli_context import CliContext
from services.cli.render import Output
from services.cli.tables_view import show_decisions, show_table
from shared.refusals import RefusalReason
from tests.support.every_refusal import every_refusal, missing
from tests.support.live_decider import LiveDecider

pytestmark = pytest.mark.redis

WIDE = 3_000
"""Columns in which no text is broken."""


def printed(decider: LiveDecider, *arguments: str) -> str:
    with patch.object(CliContext, "output", lambda setting: Output(WIDE, setting.as_json)):
        result = CliRunner().invoke(app, ["--url", decider.url, *arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_every_kind_of_refusal_is_shown_with_its_remedy_everywhere(
    decider: LiveDecider,
    tmp_path: Path,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = every_refusal(decider, tmp_path, redis_url)
    tables = [one for one in refused if not one.files]
    assert len({one.table for one in tables}) == len(tables) > 25
    assert {one.code for one in refused if one.files} == set(RefusalReason)

    for one in tables:
        answer = decider.get(f"/v1/tables/{one.table}")
        assert (answer["refusal"]["code"], one.table) == (one.code, one.table)
        decisions = decider.get(f"/v1/tables/{one.table}/decisions")
        for show, body in ((show_table, answer), (show_decisions, decisions)):
            show(Output(WIDE, as_json=False), body)
            assert missing([one], capsys.readouterr().out) == []
    for command in (("show", tables[0].table), ("decisions", tables[0].table), ("why", tables[0].table)):
        assert missing(tables[:1], printed(decider, "tables", *command)) == [], command
    of_files = [one for one in refused if one.files]
    for command in (("show", "of-files"), ("decisions", "of-files"), ("why", "of-files"), ("refused",)):
        assert missing(of_files, printed(decider, "tables", *command)) == [], command

    first = [one.what for one in doctor.check_service(decider.url, None) if one.check == "refused tables"]
    assert (len(first), first[-1]) == (doctor.SHOWN + 1, f"{len(tables) - doctor.SHOWN} more")
    monkeypatch.setattr(doctor, "SHOWN", 500)
    found = [f"{one.what} {one.action}" for one in doctor.check_service(decider.url, None)]
    for one in refused:
        named = " ".join(text for text in found if text.startswith((f"{one.table}:", f"{one.table},")))
        assert missing([one], named) == []

    metrics = decider.client.get("/metrics").text
    assert f"lakewright_tables_refused {float(len(tables))}" in metrics
    assert "lakewright_partitions_with_refused_files 1.0" in metrics
