"""The commands of README's "Your own tables" run as they are written, in their order, against a real decider.

Those that need Spark or a machine of their own are named with the test that runs them.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.stack import ROOT

pytestmark = pytest.mark.redis

SECTION = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Your own tables")[2].partition("\n## ")[0]
ELSEWHERE = {
    "lakewright standalone": "tests/integration/test_standalone.py",
    "lakewright doctor": "tests/integration/test_doctor.py",
    "lakewright optimize /data/lake/events": "tests/integration/test_adhoc.py",
}


def shown() -> Iterator[str]:
    for block in SECTION.split("```sh\n")[1:]:
        for line in block.partition("```")[0].splitlines():
            command = line.partition("#")[0].strip()
            if command:
                yield command


def test_readme_s_commands_run_as_they_are_written(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = WrittenTable(tmp_path / "events")
    table.append(11)
    monkeypatch.chdir(tmp_path)
    ran = set()
    for command in shown():
        known = next((one for one in ELSEWHERE if command.removesuffix(" &") == one), None)
        if known or not command.startswith("lakewright"):
            ran.add(known or command.split(" ", maxsplit=1)[0])
            continue
        arguments = shlex.split(command.replace("/data/lake/events", str(table.path)))[1:]
        result = CliRunner().invoke(app, ["--url", decider.url, *arguments], env={"COLUMNS": "200"})
        decider.drain()
        assert result.exit_code == 0, (command, result.output, result.exception)
        ran.add(arguments[0])
    assert ran >= {*ELSEWHERE, "tables", "optimize", "what-if", "optimizations", "events"}
    assert all((ROOT / place).exists() for place in ELSEWHERE.values())


def test_readme_s_call_of_the_webhook_is_accepted(decider: LiveDecider, tmp_path: Path) -> None:
    decider.register(WrittenTable(tmp_path / "events").path, "sales.events")
    (line,) = [command for command in shown() if command.startswith("curl")]
    words = shlex.split(line.replace("localhost:7420", decider.url.removeprefix("http://")))
    body, url = words[words.index("-d") + 1], next(word for word in words if "/v1/" in word)
    answer = httpx.post(f"http://{url}", content=body, headers={"content-type": "application/json"}, trust_env=False)
    assert answer.json()["accepted"] == 1
