"""Qbeast's library in a process of its own environment, as tests call it; they skip where there is none."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.stack import ROOT
from tests.support.time_limits import scaled

PYTHON = ROOT / ".cache" / "qbeast" / "bin" / "python"
JAR = "LAKEWRIGHT_QBEAST_JAR"


def require_qbeast() -> None:
    """Skip a test where `make setup-qbeast` was not run, or the jar is not named."""
    if not PYTHON.exists() or not Path(os.environ.get(JAR, "/none")).is_file():
        pytest.skip(f"Qbeast: no environment in .cache/qbeast (make setup-qbeast), or {JAR} names no jar")


class QbeastProcess:
    """`process.append(path=…)` calls `Server.append` in the other process; raises AssertionError with its error."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._log = folder / "server.log"
        with self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                [str(PYTHON), "-m", "tests.support.qbeast_server", str(folder)],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._answer()

    def __getattr__(self, name: str) -> Any:
        def call(**arguments: Any) -> Any:
            assert self._popen.stdin is not None
            self._popen.stdin.write(json.dumps({"do": name, "with": arguments}) + "\n")
            self._popen.stdin.flush()
            return self._answer()

        return call

    def _answer(self) -> Any:
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        assert line, self._log.read_text()[-4000:]
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["answer"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with self._popen:  # Closes the pipes, and waits.
            assert self._popen.stdin is not None
            self._popen.stdin.close()
            self._popen.wait(scaled(60))
