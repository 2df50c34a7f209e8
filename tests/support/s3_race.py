"""Two writers commit the same versions to S3: the actor's log store in a JVM, and another client by conditional puts.

A program of its own, because a process can have one Spark only, and the one of the other tests has no jars for S3.
Prints one JSON object: the versions that each believes it won, and what two faults led to.
"""

import json
import os
import random
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store
from py4j.protocol import Py4JJavaError

from actor.jvm.java import find_java
from actor.jvm.log_stores import CONDITIONAL_PUT
from actor.jvm.s3a import hadoop_settings
from actor.jvm.scala import Scala
from actor.jvm.spark import SparkSettings, build_session, stop_session
from services.actor.settings import ALLOW_S3
from services.bootstrap import prepare
from services.paths import ivy_dir, java_search
from shared.paths.store_options import StoreOptions


class Jvm:
    """The log store inside a Spark of its own; the options of stores are given by place."""

    def __init__(self, options: dict[str, dict[str, str]], work_dir: Path) -> None:
        prepare({**os.environ, ALLOW_S3: "true"})  # Fetches the jars where no actor has done so before.
        settings = SparkSettings(
            work_dir=work_dir,
            ivy_dir=ivy_dir(os.environ),
            s3=hadoop_settings(StoreOptions(options)),
            extra={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        )
        self.spark = build_session(settings, java_home=find_java(java_search(os.environ)).path)
        self._scala = Scala(self.spark)
        self._conf = self.spark._jsc.hadoopConfiguration()
        loader = self._scala.resolve("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
        found = self._scala.resolve("java.lang.Class").forName(
            CONDITIONAL_PUT["spark.delta.logStore.s3a.impl"], True, loader
        )
        arguments = self.spark.sparkContext._gateway.new_array(self._scala.resolve("java.lang.Object"), 1)
        arguments[0] = self._conf
        self._store: Any = found.getConstructors()[0].newInstance(arguments)

    def write(self, uri: str, lines: list[object], *, overwrite: bool = False) -> str:
        """Write a commit; return `""`, or the name of the Java exception."""
        try:
            path = self._scala.path(uri)
            self._store.write(path, self._scala.java_list(lines).iterator(), overwrite, self._conf)
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getSimpleName())
        return ""


def race(jvm: Jvm, rival: S3Store, versions: int, seed: int) -> tuple[list[int], list[int]]:
    """Let both commit every version at about the same time; return the versions that each won."""
    rng, start = random.Random(seed), threading.Barrier(2)
    ours: list[int] = []
    theirs: list[int] = []
    pause_s = [0.004]

    def rival_commits() -> None:
        for version in range(versions):
            start.wait()
            # Whoever is first too often waits longer, so that both stay close together.
            threading.Event().wait(rng.random() * 2 * pause_s[0])
            try:
                obstore.put(rival, f"race/_delta_log/{version:020d}.json", b"theirs", mode="create")
                theirs.append(version)
                pause_s[0] *= 1.25
            except AlreadyExistsError:
                pause_s[0] *= 0.8

    other = threading.Thread(target=rival_commits)
    other.start()
    for version in range(versions):
        start.wait()
        stated = jvm.write(f"s3://lake/race/_delta_log/{version:020d}.json", ["ours"])
        assert stated in ("", "FileAlreadyExistsException"), stated
        if not stated:
            ours.append(version)
    other.join()
    return ours, theirs


def main() -> None:
    """Race, then overwrite, then fail in the middle of a commit."""
    options, versions, seed = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    http: Any = {"allow_http": True}
    config: Any = {name: value for name, value in options.items() if name != "allow_http"}
    rival = S3Store("lake", config=config, client_options=http)
    with tempfile.TemporaryDirectory() as folder:
        jvm = Jvm({"": options}, Path(folder))
        ours, theirs = race(jvm, rival, versions, seed)
        again = jvm.write(f"s3a://lake/race/_delta_log/{0:020d}.json", ["late"])
        overwritten = jvm.write("s3a://lake/race/_delta_log/_last_checkpoint", ["1"], overwrite=True)
        # A number is no line: the store fails after it took the first one.
        cut = jvm.write(f"s3a://lake/cut/_delta_log/{0:020d}.json", ["first", 5])
        print(json.dumps({"ours": ours, "theirs": theirs, "again": again, "overwritten": overwritten, "cut": cut}))
        stop_session(jvm.spark)


if __name__ == "__main__":
    main()
