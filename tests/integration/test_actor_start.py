"""An actor that is asked to end while it still starts does so: in a container only a kill would end it else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_programs import fake_java
from tests.support.waiting import until


@pytest.mark.redis
def test_a_starting_actor_ends_when_asked(tmp_path: Path, redis_url: str) -> None:
    started = tmp_path / "started"
    hangs = f'case "$*" in *XshowSettings*) ;; *) touch {started}; exec sleep 5;; esac'
    java = fake_java(tmp_path / "java", "17.0.1", then=hangs)
    environment = {
        **os.environ,
        "LAKEWRIGHT_JAVA": str(java),
        "LAKEWRIGHT_DATA_DIR": str(tmp_path / "data"),
        "LAKEWRIGHT_REDIS_URL": redis_url,
    }
    with subprocess.Popen(
        [sys.executable, "-m", "services.actor"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as actor:
        try:
            until("Java is started", started.exists, seconds=60)
            actor.send_signal(signal.SIGTERM)
            until("the actor has ended", lambda: actor.poll() is not None, seconds=60)
        finally:
            actor.kill()
    assert actor.returncode == 0
