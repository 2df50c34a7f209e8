"""Every kind of refusal is shown wherever people look: REST, command line, doctor and metrics name file and remedy."""

from pathlib import Path
from unittest.mock import patch

import pytest
import redis
from typer.testing import CliRunner

from actor.queue_executor import SyncQueueExecutor, connect
from decider.store.tables.table_state import TableState
from services.cli.__main__ import app
from services.cli.checks import decider as doctor
from services.cli.checks.decider import check_service
from services.cli.cli_context import CliContext
from services.cli.render import Output
from services.cli.tables_view import show_decisions, show_table
from shared.errors import Difference, RefusedFiles
from shared.partition_refusals import NOTHING, TableFingerprint
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.queue import commands, keys
from shared.queue.model import RunResult
from shared.refusals import RefusalReason
from shared.table import DataFile
from tests.support.delta_tables import HandTable
from tests.support.every_refusal import every_refusal, missing
from tests.support.live_decider import LiveDecider

pytestmark = pytest.mark.redis


def test_refused_files_are_named_with_partition_file_and_remedy_everywhere(
    decider: LiveDecider, tmp_path: Path, redis_url: str
) -> None:
    table = HandTable(tmp_path / "t")
    table.append(12)
    name = decider.register(table.path, "t")
    (job,) = decider.get("/v1/jobs")["jobs"]
    client = redis.Redis.from_url(redis_url)
    table_id = decider.get(f"/v1/tables/{name}")["id"]
    state = TableState.decode(client.hgetall(keys.table_state("default", table_id)))
    error = RefusedFiles("part-0: an unsigned column", reason=RefusalReason.TYPES)
    live = [DataFile(path, 1_000, WHOLE_TABLE) for path in ("part-0", "part-1")]
    known = NOTHING.in_force(TableFingerprint.of(state.metadata, Policy()))
    known = known.added(error, live, Policy(), now_ms=1_767_225_600_000)
    known = known.after_job("cluster", Difference("column v differs"), 1, now_ms=1_767_225_600_000)
    queue = SyncQueueExecutor(connect(redis_url), "default")
    (claim,) = queue.run(commands.claim("default", worker="w", nonce="c", slots=1, lease_ms=60_000))
    assert claim.id == job["id"]
    end = {"run_result": RunResult.DONE, "cost_bytes": 0, "seen_version": claim.version, "refusals": known.encode()}
    queue.run(commands.finish("default", worker="w", nonce="f", id=claim.id, token=claim.token, **end))

    shown, of_job = decider.get(f"/v1/tables/{name}")["refused_files"]
    assert (of_job["reason"], of_job["files"], of_job["message"]) == ("difference", 0, "column v differs")
    assert (shown["reason"], shown["files"], shown["paths"]) == ("types", 2, ["part-0", "part-1"])
    assert (shown["message"], shown["remedy"]) == (str(error), RefusalReason.TYPES.remedy)
    assert decider.get("/v1/refused-files") == {"partitions": 1, "refused": [shown, of_job]}
    assert decider.get("/v1/status")["partitions_with_refused_files"] == 1
    assert "lakewright_partitions_with_refused_files 1.0" in decider.client.get("/metrics").text
    for command in (("tables", "show", name), ("tables", "refused"), ("status",)):
        result = CliRunner().invoke(app, ["--url", decider.url, *command], env={"COLUMNS": "300"})
        assert result.exit_code == 0, result.output
        assert "unsigned column" in result.stdout or command == ("status",)
    found = [one for one in check_service(decider.url, None) if one.check == "refused files"]
    assert [(one.action, "part-0" in one.what) for one in found] == [
        *((RefusalReason.TYPES.remedy, True), (RefusalReason.DIFFERENCE.remedy, False))
    ]


WIDE = 3_000
"""Columns in which no text is broken."""


def printed(decider: LiveDecider, *arguments: str) -> str:
    with patch.object(CliContext, "output", lambda setting: Output(WIDE, setting.as_json)):
        result = decider.command(*arguments)
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
