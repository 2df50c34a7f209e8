"""The jars that Delta and S3 add to Spark, pinned by name and digest: fetched once, used without a network.

Spark's own resolver (Ivy) fetches them, so that its settings for mirrors and proxies apply (`spark.jars.ivySettings`).
Most of what they declare is on Spark's class path already; without the excludes Delta would be 33 jars and 87 MB. The
jars for S3 are fetched only where tables on S3 are allowed.
"""

import fcntl
import hashlib
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from actor.jvm.java import JavaHome
from shared.errors import Corrupt, PermanentError

DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.4.2"
"""The file system `s3a`, of the same release as the Hadoop that Spark ships."""

AWS_SDK = "2.29.52"
"""The release of Amazon's SDK that HADOOP_AWS was built against."""


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that belong together: what Ivy resolves, what it leaves out, and what has to arrive.

    `listing` names a file beside this module in the format of `sha256sum`; it changes together with `packages`.
    """

    purpose: str
    packages: tuple[str, ...]
    excludes: tuple[str, ...]
    listing: str
    size_mb: int

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each jar by its file name in the ivy directory."""
        lines = files("actor.jvm").joinpath(self.listing).read_text("ascii").splitlines()
        return {name: digest for digest, name in (line.split() for line in lines)}


DELTA = JarSet(
    purpose="Delta",
    packages=(DELTA_PACKAGE,),
    excludes=(
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
    ),
    listing="delta.sha256",
    size_mb=13,
)

ICEBERG = JarSet(
    purpose="Iceberg",
    packages=("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
    excludes=(),  # One jar with relocated copies of all it needs.
    listing="iceberg.sha256",
    size_mb=50,
)

S3 = JarSet(
    purpose="S3",
    packages=(
        HADOOP_AWS,
        f"software.amazon.awssdk:s3:{AWS_SDK}",
        f"software.amazon.awssdk:s3-transfer-manager:{AWS_SDK}",
        f"software.amazon.awssdk:sts:{AWS_SDK}",
        f"software.amazon.awssdk:kms:{AWS_SDK}",  # Iceberg's own file IO does not load without; nothing calls it.
    ),
    # The bundle is the whole SDK with copies of its libraries. The transfer manager alone needs the asynchronous client
    # on netty, and we never copy or rename. The rest is on Spark's class path.
    excludes=(
        "software.amazon.awssdk:aws-json-protocol",
        "software.amazon.awssdk:bundle",
        "software.amazon.awssdk:netty-nio-client",
        "io.netty:*",
        "org.apache.httpcomponents:*",
        "commons-codec:*",
        "commons-logging:*",
        "org.slf4j:*",
    ),
    listing="s3.sha256",
    size_mb=14,
)
"""36 jars. Without the excludes the whole SDK would come in one bundle, with a second netty and HTTP client."""

COMPILER = JarSet(
    purpose="compiling Lakewright's Java classes",
    packages=("org.eclipse.jdt:ecj:3.38.0",),  # The newest that runs on Java 17.
    excludes=(),
    listing="compiler.sha256",
    size_mb=3,
)
"""Eclipse's compiler for Java, which needs no JDK. No actor needs it."""

_FETCH_TIMEOUT_S = 900  # 25 MB; a quarter of an hour is a line of 15 kB/s or a mirror that never answers.
_FETCH_ATTEMPTS = 3  # What arrived stays in Ivy's cache: another attempt only requests what a mirror dropped.
FETCH_LOCK = ".fetch.lock"  # In the ivy directory; Ivy does not lock its own cache, and two that share it both fail.
_TAIL_LINES = 20  # Of Ivy's output in an error: the report of what failed is at the end.


@dataclass(frozen=True, slots=True)
class Jars:
    """State of one set in the ivy directory: `missing` and `damaged` name files; Spark needs both to be empty."""

    directory: Path
    names: tuple[str, ...]
    missing: tuple[str, ...]
    damaged: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """True if every jar is there with its digest."""
        return not self.missing and not self.damaged

    @property
    def files(self) -> tuple[Path, ...]:
        """The jars as files, for `spark.jars`: a start that asks no resolver."""
        return tuple(self.directory / name for name in self.names)


def of_spark() -> list[Path]:
    """Return the jars that PySpark brings."""
    import pyspark  # noqa: PLC0415 - listing the jars must be possible without Spark

    return sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))


def look_up(ivy_dir: Path, wanted: JarSet = DELTA) -> Jars:
    """Compare the ivy directory with the list by reading every jar (13 MB, some 10 ms)."""
    directory = ivy_dir / "jars"
    digests = wanted.digests()
    missing, damaged = [], []
    for name, digest in digests.items():
        file = directory / name
        if not file.is_file():
            missing.append(name)
        elif hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            damaged.append(name)
    return Jars(directory, tuple(digests), tuple(missing), tuple(damaged))


def resolver_settings(ivy_dir: Path, wanted: JarSet = DELTA) -> Mapping[str, str]:
    """The Spark settings with which any session resolves the same jars from the same directory."""
    return {
        "spark.jars.packages": ",".join(wanted.packages),
        "spark.jars.excludes": ",".join(wanted.excludes),
        "spark.jars.ivy": str(ivy_dir.resolve()),
    }


def fetch(
    ivy_dir: Path,
    java: JavaHome,
    *,
    environment: Mapping[str, str],
    progress: Callable[[str], None],
    wanted: JarSet = DELTA,
) -> Jars:
    """Let Spark resolve the jars into `ivy_dir`; `progress` is called with one line for each jar that arrived.

    Processes that share an ivy directory fetch one after the other; the later one finds what the earlier one fetched.

    Raises:
        PermanentError: Spark could not fetch them (no network, no mirror); carries the end of its output.
        Corrupt: they arrived with content other than the list requires.
    """
    (ivy_dir / "jars").mkdir(parents=True, exist_ok=True)
    output: list[str] = []
    with _fetch_lock(ivy_dir, progress):
        for attempt in range(1, _FETCH_ATTEMPTS + 1):
            found = look_up(ivy_dir, wanted)
            if found.complete:
                return found
            if attempt > 1:
                missing = f"{len(found.missing)} of {len(found.names)} jars did not arrive"
                progress(f"{missing}; attempt {attempt} of {_FETCH_ATTEMPTS}")
            for name in found.damaged:
                (found.directory / name).unlink()  # Ivy would take a file of that name for fetched.
            output = _resolve(resolver_settings(ivy_dir, wanted), java, environment, progress)
        found = look_up(ivy_dir, wanted)
    if found.damaged:
        raise Corrupt(
            f"{', '.join(found.damaged)} in {found.directory} differ from the known digests: delete {ivy_dir} and "
            "fetch again; if it stays so, the mirror serves other files"
        )
    if found.missing:
        tail = "\n".join(output[-_TAIL_LINES:])
        raise PermanentError(
            f"{len(found.missing)} of {len(found.names)} jars did not arrive in {found.directory}: is Maven's central "
            "repository or your mirror reachable? Or set LAKEWRIGHT_IVY_DIR to a directory that has them. "
            f"Output of Spark:\n{tail}"
        )
    return found


@contextmanager
def _fetch_lock(ivy_dir: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of an ivy directory; the end of its holder releases it in any case."""
    with (ivy_dir / FETCH_LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that fetches into {ivy_dir}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _resolve(
    resolver: Mapping[str, str], java: JavaHome, environment: Mapping[str, str], progress: Callable[[str], None]
) -> list[str]:
    """Run spark-submit on a class that Spark ships and that only prints a version: resolving is all that remains."""
    import pyspark  # noqa: PLC0415 - listing the jars must be possible without Spark

    settings = [part for key, value in resolver.items() for part in ("--conf", f"{key}={value}")]
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
