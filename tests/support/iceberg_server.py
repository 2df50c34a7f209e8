"""Iceberg's own REST catalog server as a process, from the jars of Iceberg's tests: not written by us.

It keeps names in SQLite and metadata below a warehouse, and knows neither tokens nor faults (see `iceberg_gateway`).
`python -m tests.support.iceberg_server` fetches its jars (27 MB) into `.cache/iceberg-rest-server`, by the Ivy that
Spark ships and with the settings for mirrors in `~/.ivy2/ivysettings.xml`; a test fetches what is missing.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from actor.jvm.jars import S3, look_up
from actor.jvm.java import find_java
from actor.jvm.s3a import hadoop_settings
from services.actor.settings import ALLOW_S3
from services.bootstrap import prepare
from services.paths import ivy_dir, java_search
from shared.store_options import StoreOptions
from tests.support.catalog_process import catalog_process
from tests.support.stack import ROOT, free_port
from tests.support.time_limits import scaled

LISTS = ROOT / "tests" / "data" / "iceberg_rest_server"
FOLDER = ROOT / ".cache" / "iceberg-rest-server"
JARS = FOLDER / "jars"
FETCH_S = 300.0


def fetched_jars() -> Path:
    """Return the folder of the jars, fetched where they are missing or damaged; raises if what arrived differs."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / ".fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _differing():
            output = _fetch()
            assert not _differing(), f"{_differing()} did not arrive as listed in {LISTS}:\n{output[-2000:]}"
    return JARS


def _differing() -> list[str]:
    listed = (line.split() for line in (LISTS / "jars.sha256").read_text("ascii").splitlines())
    return [name for digest, name in listed if _digest(JARS / name) != digest]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def _fetch() -> str:
    for name in _differing():
        (JARS / name).unlink(missing_ok=True)
    (ivy,) = _spark_jars().glob("ivy-*.jar")
    mirrors = Path.home() / ".ivy2" / "ivysettings.xml"
    names = JARS / "[organisation]_[artifact]-[revision](-[classifier]).[ext]"
    command = [_java(), "-cp", str(ivy), "org.apache.ivy.Main", "-ivy", str(LISTS / "ivy.xml"), "-confs", "default"]
    command += ["-cache", str(FOLDER / "ivy"), "-retrieve", str(names)]
    command += ["-settings", str(mirrors)] if mirrors.is_file() else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(FETCH_S), check=False)
    return done.stdout + done.stderr


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
    command = [_java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]
    # S3 first: the jar of Iceberg's tests has a class of Hadoop's, too, which can do nothing.
    places = [*(() if store is None else _for_s3(folder, store)), f"{fetched_jars()}/*", f"{_spark_jars()}/*"]
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


def _java() -> str:
    return str(find_java(java_search(os.environ)).path / "bin" / "java")


def _spark_jars() -> Path:
    import pyspark  # Not where a machine without Spark collects tests.

    return Path(pyspark.__file__).parent / "jars"


if __name__ == "__main__":
    sys.stdout.write(f"[setup] Iceberg's REST server: {len(list(fetched_jars().glob('*.jar')))} jars in {JARS}\n")
