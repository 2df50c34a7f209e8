"""`python -m services.java_jar`: compiles the jar of our Java classes, unless it is current.

A wheel contains the jar (`hatch_build.py`), and `make setup` compiles it in a checkout. The compiler is Eclipse's, a
jar that runs on any Java, so that no JDK has to be installed. A warning of it is an error.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from actor.jvm import jars
from actor.jvm.java import find_java
from actor.jvm.own_jar import JAR, MANIFEST, digest, manifest, sources, state_of
from services.missing_jars import fetch_missing
from services.paths import ivy_dir, java_search
from services.visible_text import visible_lines
from shared.errors import LakewrightError, PermanentError

LIBRARIES = (jars.DELTA, jars.ICEBERG, jars.S3)
"""Jars that our classes use beside Spark, in whichever actor they run."""

WARNINGS = "deprecation,fallthrough,serial,static-access,unusedImport,unusedLocal,unusedPrivate"
_OLDEST_JAVA = "-17"
_COMPILE_TIMEOUT_S = 300  # It takes 3 s of CPU.
_DATE = (1980, 1, 1, 0, 0, 0)  # The same sources give the same bytes.


def build(environment: Mapping[str, str]) -> bool:
    """Compile unless the jar is current, and return whether anything was done.

    Raises:
        InvalidInput: no Java can be used.
        PermanentError: libraries cannot be fetched, or the sources cannot be compiled; carries the compiler's output.
    """
    state = digest()
    if state_of(JAR) == state:
        return False
    java = find_java(java_search(environment))
    for wanted in (*LIBRARIES, jars.COMPILER):
        fetch_missing(wanted, java, environment, _print)
    directory = ivy_dir(environment)
    (compiler,) = jars.look_up(directory, jars.COMPILER).files
    libraries = [file for wanted in LIBRARIES for file in jars.look_up(directory, wanted).files]
    with tempfile.TemporaryDirectory() as folder:
        _compile(java.path / "bin" / "java", compiler, [*jars.of_spark(), *libraries], Path(folder))
        _pack(Path(folder), state)
    _print(f"{len(sources())} Java classes of Lakewright, compiled into {JAR}")
    return True


def _compile(java: Path, compiler: Path, libraries: Sequence[Path], folder: Path) -> None:
    """Compile all sources into a folder of classes."""
    command = [str(java), "-XX:TieredStopAtLevel=1", "-cp", str(compiler)]
    command += ["org.eclipse.jdt.internal.compiler.batch.Main", _OLDEST_JAVA, "-g", "-proc:none", "-encoding", "UTF-8"]
    command += [f"-warn:{WARNINGS}", "-failOnWarning", "-classpath", os.pathsep.join(map(str, libraries))]
    command += ["-d", str(folder), *map(str, sources())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_TIMEOUT_S, check=False)
    if done.returncode:
        output = f"{done.stdout}{done.stderr}".expandtabs(2)
        raise PermanentError(f"the Java classes cannot be compiled:\n{output}")


def _pack(folder: Path, state: str) -> None:
    """Pack a folder of classes as the jar, which another process may be reading."""
    made = JAR.with_suffix(f".{os.getpid()}")
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(zipfile.ZipInfo(MANIFEST, _DATE), manifest(state))
        for file in sorted(folder.rglob("*.class")):
            archive.writestr(zipfile.ZipInfo(str(file.relative_to(folder)), _DATE), file.read_bytes())
    made.replace(JAR)


def _print(line: str) -> None:
    print(f"[setup] {line}", flush=True)


def main() -> int:
    """Build with this process's environment; 1 and a sentence on standard error if it cannot be done."""
    try:
        build(os.environ)
    except LakewrightError as error:
        print(f"[setup] error: {visible_lines(str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
