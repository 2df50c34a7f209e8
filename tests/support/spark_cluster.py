"""A standalone cluster of Spark for tests: a real master, and workers of one core that have nothing of Lakewright.

Workers run in a mount namespace in which the actor's folders are empty, so that whatever their executors need has to be
sent to them. Their class path is Spark's own.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
import pyspark

from actor.jvm.java import find_java
from services.paths import java_search
from tests.soak.disk import wrapper_of_namespace
from tests.support.local_http import LOCAL
from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

HOST = "127.0.0.1"
_EXECUTOR = "CoarseGrainedExecutorBackend"


def spark_home(folder: Path) -> Path:
    """Return a Spark whose workers write below `folder`: they write beside their programs."""
    home = folder / "home"
    home.mkdir()
    for name in ("bin", "jars", "sbin"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


@dataclass(slots=True)
class SparkCluster:
    """A master and workers, with their logs and work folders in `folder`; workers do not see the folders `hidden`."""

    folder: Path
    hidden: Sequence[Path] = ()
    port: int = field(default_factory=free_port)
    web_port: int = field(default_factory=free_port)
    master: "subprocess.Popen[bytes] | None" = None
    workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    home: Path = Path()
    _started: int = 0

    @property
    def url(self) -> str:
        """What `LAKEWRIGHT_SPARK_MASTER` names."""
        return f"spark://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.home = spark_home(self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.master):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(scaled(30))

    def start(self, *, workers: int) -> None:
        """Start the master and workers with one core and 1 GiB each; returns when all are registered."""
        address = ["--host", HOST, "--port", str(self.port), "--webui-port", str(self.web_port)]
        self.master = self._start("master.Master", address)
        until("the master answers", self._is_up, seconds=60)
        for _ in range(workers):
            self._start_worker()
        self._await_workers()

    def add_worker(self) -> None:
        """Start another worker; returns when it is registered."""
        self._start_worker()
        self._await_workers()

    def remove_worker(self) -> None:
        """Kill the worker that was started last, with its executors; returns when the master knows."""
        worker = self.workers.pop()
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(scaled(30))
        self._await_workers()

    def state(self) -> Any:
        """Return what the master reports: workers, applications and their cores."""
        return httpx.get(f"http://{HOST}:{self.web_port}/json/", timeout=scaled(10), **LOCAL).json()

    def executors(self) -> list[psutil.Process]:
        """Return the processes of all executors."""
        children = (child for one in self.workers for child in psutil.Process(one.pid).children(recursive=True))
        return [child for child in children if any(_EXECUTOR in word for word in _command_line(child))]

    def executor_that_writes(self, table: Path) -> psutil.Process | None:
        """Return the executor that has a data file of a table open for writing."""
        return next((one for one in self.executors() if any(_is_written(one, table))), None)

    def _start_worker(self) -> None:
        self._started += 1
        work = ["--work-dir", str(self.folder / f"work-{self._started}"), "--webui-port", str(free_port())]
        offer = ["--host", HOST, "--cores", "1", "--memory", "1g", *work, self.url]
        self.workers.append(self._start("worker.Worker", offer, hides=True))

    def _await_workers(self) -> None:
        until("the workers are known", lambda: self.state()["aliveworkers"] == len(self.workers), seconds=120)

    def _is_up(self) -> bool:
        try:
            return bool(self.state()["status"] == "ALIVE")
        except httpx.TransportError:
            return False

    def _start(self, program: str, arguments: Sequence[str], *, hides: bool = False) -> "subprocess.Popen[bytes]":
        command = [str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *arguments]
        if hides and self.hidden:
            mounts = [f"mount -t tmpfs -o size=1m none {shlex.quote(str(one))}" for one in self.hidden]
            wrapper, _ = wrapper_of_namespace()
            command = [*wrapper, "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh", *command]
        local = self.folder / "local"
        local.mkdir(exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "JAVA_HOME": str(find_java(java_search(os.environ)).path),
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(local),
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_LOG_DIR": str(self.folder),
        }
        with (self.folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _is_written(process: psutil.Process, table: Path) -> list[str]:
    try:
        opened = process.open_files()
    except psutil.NoSuchProcess:
        return []
    return [
        one.path
        for one in opened
        if one.path.startswith(f"{table}/") and one.mode.startswith("w") and one.path.endswith(".parquet")
    ]


def why_nothing_can_be_hidden() -> str:
    """Return why workers cannot have a mount namespace of their own here, empty if they can."""
    return wrapper_of_namespace()[1]
