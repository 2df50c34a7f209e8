"""The jars that Delta adds to Spark are exactly these, by name and digest: fetched once, then used without a network.

Spark's own resolver (Ivy) fetches them, so that its settings for mirrors and proxies apply (`spark.jars.ivySettings`).
Most of what Delta declares is on Spark's class path already; without the excludes it would be 33 jars and 87 MB.
"""

import hashlib
import re
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from actor.delta.java import JavaHome
from shared.errors import Corrupt, PermanentError

PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
EXCLUDES = (
    "com.fasterxml.jackson*:*",
    "com.github.luben:*",
    "com.google.code.findbugs:*",
    "commons-logging:*",
    "commons-pool:*",
    "io.airlift:*",
    "javax.annotation:*",
    "org.apache.hadoop:*",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.locationtech.jts:*",
    "org.roaringbitmap:*",
    "org.slf4j:*",
    "org.xerial.snappy:*",
)
# File name in the ivy directory -> SHA-256. Changes together with PACKAGE.
DIGESTS = {
    "io.delta_delta-kernel-api-4.4.0.jar": "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    "io.delta_delta-kernel-defaults-4.4.0.jar": "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    "io.delta_delta-kernel-unitycatalog-4.4.0.jar": "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    "io.delta_delta-spark_4.1_2.13-4.4.0.jar": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "io.delta_delta-storage-4.4.0.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    "io.unitycatalog_unitycatalog-client-0.6.0.jar": "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    "io.unitycatalog_unitycatalog-hadoop-0.6.0.jar": "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
}
_FETCH_TIMEOUT_S = 900  # 13 MB; a quarter of an hour is a line of 15 kB/s or a mirror that never answers.
_TAIL_LINES = 20  # Of Ivy's output in an error: the report of what failed is at the end.


@dataclass(frozen=True, slots=True)
class Jars:
    """What lies in the ivy directory: `missing` and `damaged` name files; both empty is what Spark needs."""

    directory: Path
    missing: tuple[str, ...]
    damaged: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """True if every jar is there with its digest."""
        return not self.missing and not self.damaged

    @property
    def files(self) -> tuple[Path, ...]:
        """The jars as files, for `spark.jars`: a start that asks no resolver."""
        return tuple(self.directory / name for name in DIGESTS)


def look_up(ivy_dir: Path) -> Jars:
    """Compare the ivy directory with the list, reading every jar (13 MB, some 10 ms)."""
    directory = ivy_dir / "jars"
    missing, damaged = [], []
    for name, digest in DIGESTS.items():
        file = directory / name
        if not file.is_file():
            missing.append(name)
        elif hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            damaged.append(name)
    return Jars(directory, tuple(missing), tuple(damaged))


def resolver_settings(ivy_dir: Path) -> Mapping[str, str]:
    """The Spark settings with which any session resolves the same jars from the same directory."""
    return {
        "spark.jars.packages": PACKAGE,
        "spark.jars.excludes": ",".join(EXCLUDES),
        "spark.jars.ivy": str(ivy_dir.resolve()),
    }


def fetch(ivy_dir: Path, java: JavaHome, *, environment: Mapping[str, str], progress: Callable[[str], None]) -> Jars:
    """Let Spark resolve the jars into `ivy_dir`; `progress` is called with one line for each jar that arrived.

    Raises:
        PermanentError: Spark could not fetch them (no network, no mirror); carries the end of its output.
        Corrupt: they arrived with another content than the list says.
    """
    ivy_dir.mkdir(parents=True, exist_ok=True)
    for name in look_up(ivy_dir).damaged:
        (ivy_dir / "jars" / name).unlink()  # Ivy would take a file of that name for fetched.
    output = _resolve(ivy_dir, java, environment, progress)
    found = look_up(ivy_dir)
    if found.damaged:
        raise Corrupt(
            f"{', '.join(found.damaged)} in {found.directory} differ from the known digests: delete {ivy_dir} and "
            "fetch again; if it stays so, the mirror serves other files"
        )
    if found.missing:
        tail = "\n".join(output[-_TAIL_LINES:])
        raise PermanentError(
            f"{len(found.missing)} of {len(DIGESTS)} jars did not arrive in {found.directory}: is Maven's central "
            "repository or your mirror reachable? Or set LAKEWRIGHT_IVY_DIR to a directory that has them. "
            f"Spark said:\n{tail}"
        )
    return found


def _resolve(
    ivy_dir: Path, java: JavaHome, environment: Mapping[str, str], progress: Callable[[str], None]
) -> list[str]:
    """Run spark-submit on a class that Spark ships and that only prints a version: resolving is all that remains."""
    import pyspark  # noqa: PLC0415 - listing the jars must be possible without Spark

    settings = [part for key, value in resolver_settings(ivy_dir).items() for part in ("--conf", f"{key}={value}")]
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        "--master",
        "local[1]",
        *settings,
        "--class",
        "org.apache.hadoop.util.VersionInfo",
        "spark-internal",
    ]
    variables = {**environment, "JAVA_HOME": str(java.path), "SPARK_LOCAL_IP": "127.0.0.1"}
    variables.pop("SPARK_HOME", None)  # Another Spark of the machine must not take the place of the locked one.
    output: list[str] = []
    with subprocess.Popen(
        command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        overdue = threading.Timer(_FETCH_TIMEOUT_S, process.kill)
        overdue.start()
        for line in process.stdout or ():
            output.append(line.rstrip())
            arrived = re.search(r"\[SUCCESSFUL ?\] (\S+?)!.* \((\d+)ms\)", line)
            if arrived:
                progress(f"{arrived[1].replace('#', ':').replace(';', ':')} in {arrived[2]} ms")
        overdue.cancel()
    return output
