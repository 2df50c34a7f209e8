"""Iceberg's own REST catalog server as a process, from the jars of Iceberg's tests: not written by us.

It keeps names in SQLite and metadata below a warehouse, and knows neither tokens nor faults (see `iceberg_gateway`).
`python -m tests.support.iceberg_server` fetches its jars (27 MB) into `.cache/iceberg-rest-server`; a test fetches what
is missing.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import httpx

from actor.jvm.jars import S3, look_up
from actor.jvm.s3a import hadoop_settings
from services.actor.settings import ALLOW_S3
from services.bootstrap import prepare
from services.paths import ivy_dir
from shared.paths.store_options import StoreOptions
from tests.support.local_http import LOCAL
from tests.support.maven_jars import MavenJars, java, spark_jars
from tests.support.stack import ROOT, free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

START_S = 300.0
"""Longest wait for a catalog while its process lives: it takes seconds where no others compute."""


@contextmanager
def catalog_process(
    command: Sequence[str], url: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a command that serves a catalog at `url`, with its output in `log`; None: this process' environment."""
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)

    def is_up() -> bool:
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            return httpx.get(f"{url}/v1/config", timeout=scaled(20), **LOCAL).is_success
        except httpx.TransportError:
            return False

    try:
        until(f"the catalog at {url} answers", is_up, seconds=START_S)
        yield
    finally:
        server.kill()
        server.wait()


JARS = MavenJars("iceberg_rest_server")


@contextmanager
def iceberg_server(
    folder: Path, options: Mapping[str, str] | None = None, store: StoreOptions | None = None
) -> Iterator[str]:
    """Run the server with its warehouse below a folder, and yield its address.

    `options` are those of its catalog, such as another `warehouse`; names in them are Iceberg's. `store`: where its
    warehouse is, if that is S3.
    """
    port = free_port()
    given = {"warehouse": folder.as_uri(), "uri": f"jdbc:sqlite:{folder}/server.db", **(options or {})}
    # Iceberg's spelling: two underscores are a hyphen, and one is a dot.
    variables = {
        f"CATALOG_{name.replace('-', '__').replace('.', '_').upper()}": value
        for name, value in (given | {"rest.port": str(port)}).items()
    }
    command = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]
    # S3 first: the jar of Iceberg's tests has a class of Hadoop's, too, which can do nothing.
    places = [*(() if store is None else _for_s3(folder, store)), f"{JARS.fetched()}/*", f"{spark_jars()}/*"]
    command += [os.pathsep.join(places), "org.apache.iceberg.rest.RESTCatalogServer"]
    url = f"http://127.0.0.1:{port}"
    with catalog_process(command, url, folder / "server.log", {**os.environ, **variables}):
        yield url


def _for_s3(folder: Path, store: StoreOptions) -> list[str]:
    """Return what the class path needs besides: Hadoop's settings as a file, and the actor's jars for S3."""
    prepare({**os.environ, ALLOW_S3: "true"})  # Fetches the jars where no actor has done so before.
    values = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in hadoop_settings(store).items()
    )
    settings = folder / "hadoop"
    settings.mkdir()
    (settings / "core-site.xml").write_text(f"<configuration>{values}</configuration>", encoding="utf-8")
    return [str(settings), *map(str, look_up(ivy_dir(os.environ), S3).files)]


if __name__ == "__main__":
    sys.stdout.write(f"[setup] Iceberg's REST server: {len(list(JARS.fetched().glob('*.jar')))} jars in {JARS.jars}\n")
