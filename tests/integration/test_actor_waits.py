"""An actor requests Redis before it starts Spark, and says rarely that it is away."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_programs import fake_java
from tests.support.redis_server import RedisServer
from tests.support.stack import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.redis


def test_an_actor_without_redis_does_not_start_spark_until_redis_is_there(
    tmp_path: Path, own_redis_server: RedisServer
) -> None:
    own_redis_server.kill()
    started, output = tmp_path / "spark-started", tmp_path / "said"
    hangs = f'case "$*" in *XshowSettings*) ;; *) touch {started}; exec sleep 600;; esac'
    java = fake_java(tmp_path / "java", "17.0.1", then=hangs)
    environment = {
        **os.environ,
        "LAKEWRIGHT_JAVA": str(java),
        "LAKEWRIGHT_DATA_DIR": str(tmp_path / "data"),
        "LAKEWRIGHT_REDIS_URL": own_redis_server.url,
    }
    with (
        output.open("wb") as stated,
        subprocess.Popen(
            [sys.executable, "-m", "services.actor"], cwd=ROOT, env=environment, stdout=stated, stderr=stated
        ) as actor,
    ):
        try:
            until("it says what it waits for", lambda: "waiting_for_redis" in output.read_text(), seconds=60)
            assert not started.exists()
            own_redis_server.start()
            until("Spark is started", started.exists, seconds=60)
            actor.send_signal(signal.SIGTERM)
            until("the actor has ended", lambda: actor.poll() is not None, seconds=60)
        finally:
            actor.kill()
    assert output.read_text().count("waiting_for_redis") < 10
