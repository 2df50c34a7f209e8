"""Jars of other servers for tests, from a Maven repository: pinned by digest, fetched once, kept below `.cache`.

The Ivy that Spark ships fetches them, with the settings for mirrors in `~/.ivy2/ivysettings.xml`.
"""

import fcntl
import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from actor.jvm.java import find_java
from services.paths import java_search
from tests.support.stack import ROOT
from tests.support.time_limits import scaled

FETCH_S = 300.0


@dataclass(frozen=True, slots=True)
class MavenJars:
    """Jars that `tests/data/NAME` lists: `ivy.xml` names the modules, `jars.sha256` what has to arrive of them."""

    name: str

    @property
    def lists(self) -> Path:
        """Folder of both lists."""
        return ROOT / "tests" / "data" / self.name

    @property
    def folder(self) -> Path:
        """Folder of what is fetched."""
        return ROOT / ".cache" / self.name.replace("_", "-")

    @property
    def jars(self) -> Path:
        """Folder of the jars, which may be missing."""
        return self.folder / "jars"

    def fetched(self) -> Path:
        """Return the folder of the jars, fetched where they are missing or damaged; raises if what arrived differs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".fetch.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._differing():
                output = self._fetch()
                differing = self._differing()
                assert not differing, f"{differing} did not arrive as listed in {self.lists}:\n{output[-2000:]}"
        return self.jars

    def _differing(self) -> list[str]:
        listed = (line.split() for line in (self.lists / "jars.sha256").read_text("ascii").splitlines())
        return [name for digest, name in listed if _digest(self.jars / name) != digest]

    def _fetch(self) -> str:
        for name in self._differing():
            (self.jars / name).unlink(missing_ok=True)
        (ivy,) = spark_jars().glob("ivy-*.jar")
        mirrors = Path.home() / ".ivy2" / "ivysettings.xml"
        names = self.jars / "[organisation]_[artifact]-[revision](-[classifier]).[ext]"
        command = [java(), "-cp", str(ivy), "org.apache.ivy.Main", "-ivy", str(self.lists / "ivy.xml")]
        command += ["-confs", "default", "-cache", str(self.folder / "ivy"), "-retrieve", str(names)]
        command += ["-settings", str(mirrors)] if mirrors.is_file() else []
        done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(FETCH_S), check=False)
        return done.stdout + done.stderr


def java() -> str:
    """Return the program of the Java that Spark would use."""
    return str(find_java(java_search(os.environ)).path / "bin" / "java")


def spark_jars() -> Path:
    """Return the folder of Spark's own jars."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
