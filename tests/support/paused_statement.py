"""A statement of Spark that has read a table and writes: it waits, before its commit, until others have committed."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.time_limits import scaled
from tests.support.waiting import until


class PausedStatement:
    """Runs SQL in a thread of its own; a value `pause(text)` in it, which is that text, waits until the block ends.

    Entered, it has read its table, whose snapshot it keeps. error: of a statement that failed; None: it committed.
    """

    def __init__(self, session: SparkSession, folder: Path, sql: str) -> None:
        started, may_go = str(folder / "started"), str(folder / "may-go")
        limit_s = scaled(300)
        self._started, self._may_go = Path(started), Path(may_go)

        def pause(text: str) -> str:
            import os
            import time

            open(started, "w").close()  # noqa: PTH123
            deadline_s = time.monotonic() + limit_s
            while not os.path.exists(may_go) and time.monotonic() < deadline_s:  # noqa: PTH110
                time.sleep(0.02)
            return text

        session.udf.register("pause", pause, "string")
        self._session, self._sql = session, sql
        self._thread = threading.Thread(target=self._run, name="paused statement")
        self.error: str | None = None

    def _run(self) -> None:
        try:
            self._session.sql(self._sql).collect()
        except (PySparkException, Py4JJavaError) as failed:
            self.error = str(failed)

    def __enter__(self) -> Self:
        """Start it, and wait until it writes."""
        self._started.unlink(missing_ok=True)
        self._may_go.unlink(missing_ok=True)
        self._thread.start()
        until("the statement writes", lambda: self._started.exists() or not self._thread.is_alive(), seconds=120)
        assert self._thread.is_alive(), self.error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Let it commit, and wait until it has ended."""
        self._may_go.touch()
        self._thread.join(scaled(300))
        assert not self._thread.is_alive()
