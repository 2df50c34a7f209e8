"""The start of services: help instead of one, what an actor waits for, and whose scratch folder it removes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.actor.scratch import scratch_dir
from tests.support.fake_programs import fake_java
from tests.support.redis_server import RedisServer
from tests.support.stack import ROOT, lakewright
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.redis]


class Starting:
    """An actor whose Java, once it is started, leaves the file `java` and hangs; what it says is in `output`."""

    def __init__(self, folder: Path, redis_url: str, *, hangs_s: int) -> None:
        self.java, self.output = folder / "java-started", folder / "said"
        hangs = f'case "$*" in *XshowSettings*) ;; *) touch {self.java}; exec sleep {hangs_s};; esac'
        self._environment = {
            **os.environ,
            "LAKEWRIGHT_JAVA": str(fake_java(folder / "java", "17.0.1", then=hangs)),
            "LAKEWRIGHT_DATA_DIR": str(folder / "data"),
            "LAKEWRIGHT_REDIS_URL": redis_url,
        }

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run it; at the end it has Java, and ends when asked."""
        command = [sys.executable, "-m", "services.actor"]
        with (
            self.output.open("wb") as said,
            subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=said, stderr=said) as actor,
        ):
            try:
                yield actor
                until("Java is started", self.java.exists, seconds=60)
                actor.send_signal(signal.SIGTERM)
                until("the actor has ended", lambda: actor.poll() is not None, seconds=60)
            finally:
                actor.kill()


def test_a_starting_actor_ends_when_asked(tmp_path: Path, redis_url: str) -> None:
    with Starting(tmp_path, redis_url, hangs_s=5).running() as actor:
        pass
    assert actor.returncode == 0


def test_an_actor_without_redis_does_not_start_spark_until_redis_is_there(
    tmp_path: Path, own_redis_server: RedisServer
) -> None:
    own_redis_server.kill()
    starting = Starting(tmp_path, own_redis_server.url, hangs_s=600)
    with starting.running():
        until("it says what it waits for", lambda: "waiting_for_redis" in starting.output.read_text(), seconds=60)
        assert not starting.java.exists()
        own_redis_server.start()
    assert starting.output.read_text().count("waiting_for_redis") < 10


def test_a_living_owners_folder_is_left_alone_and_a_dead_ones_is_removed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from services.actor.scratch import scratch_dir\n"
        "with scratch_dir(Path(sys.argv[1])) as made: print(made, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        with scratch_dir(tmp_path):
            assert theirs.exists()
        other.kill()
        other.wait()
    assert theirs.exists()
    with scratch_dir(tmp_path) as mine:
        assert list(tmp_path.glob("actor-*")) == [mine]


def run(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return lakewright(*arguments, env={**os.environ, "LAKEWRIGHT_DATA_DIR": str(data)})


@pytest.mark.parametrize(
    ("service", "setting"),
    [("decider", "LAKEWRIGHT_ROOTS"), ("actor", "LAKEWRIGHT_SLOTS"), ("standalone", "--data-dir")],
)
def test_help_names_the_settings_and_starts_nothing(service: str, setting: str, tmp_path: Path) -> None:
    helped = run(tmp_path / "data", service, "--help")
    assert helped.returncode == 0, helped.stderr
    assert helped.stdout.startswith(f"usage: lakewright {service}")
    assert setting in helped.stdout
    assert helped.stderr == ""
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("service", ["decider", "actor", "standalone"])
def test_an_unknown_argument_is_refused(service: str, tmp_path: Path) -> None:
    refused = run(tmp_path / "data", service, "--port=1")
    assert refused.returncode == 2
    assert "--port=1" in refused.stderr
    assert not (tmp_path / "data").exists()
