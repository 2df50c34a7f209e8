"""An Apache Kafka broker as a process, in KRaft mode: a node that is broker and controller, with a log of its own.

`python -m tests.support.kafka_broker` fetches its jars (43 MB) into `.cache/kafka-broker`.
"""

import subprocess
import time
from pathlib import Path
from typing import IO

from tests.support.maven_jars import MavenJars, java
from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

JARS = MavenJars("kafka_broker")
START_S = 120.0
"""Longest wait for a start while the process lives: three seconds where no others compute."""

_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/log
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""


class KafkaBroker:
    """One broker below a folder; after a kill, it starts again with what it had."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._settings = folder / "server.properties"
        self._output: IO[str] | None = None
        self._process: subprocess.Popen[str] | None = None
        self.port = free_port()
        self._settings.write_text(_SETTINGS.format(port=self.port, controller=free_port(), folder=folder))
        run = [*self._java(), "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._settings)]
        subprocess.run(run, check=True, capture_output=True)

    @property
    def servers(self) -> str:
        """Its address, for `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers for its topics."""
        log = self._folder / "broker.log"
        self._output = log.open("a")
        command = [*self._java(), "kafka.Kafka", str(self._settings)]
        self._process = subprocess.Popen(command, stdout=self._output, stderr=self._output, text=True)
        process = self._process

        def answers() -> bool:
            assert process.poll() is None, log.read_text()[-2000:]
            return _answers(self.servers)

        until(f"Kafka answers at {self.servers}", answers, seconds=START_S)

    def kill(self) -> None:
        """End it at once."""
        assert self._process is not None
        assert self._output is not None
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _java(self) -> list[str]:
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [java(), *options, "-cp", f"{JARS.fetched()}/*"]


def _answers(servers: str) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        return bool(AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=scaled(1)).brokers)
    except KafkaException:
        return False


if __name__ == "__main__":
    started_s = time.monotonic()
    print(f"{JARS.fetched()}: all jars, in {time.monotonic() - started_s:.1f} s")
