"""A JVM that finds its classes already parsed starts in half the time; the archive is a by-product of an earlier run.

The JVM writes the archive when it exits (JDK 13+, "AppCDS", -XX:ArchiveClassesAtExit), each process to a file of its
own; the next start adopts a finished one by an atomic rename. The name carries a hash of the Java and of every jar, so
another Java or another Spark searches for another file. A JVM that rejects an archive runs without it: -Xshare:auto.
"""

import hashlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_SETTLED_S = 30  # A file that no process has written to for so long is complete, or was left by a process that died.
_QUIET = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")  # A refused archive is not worth a message.


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one Java with one set of jars; `directory` may contain others, and unfinished ones."""

    directory: Path
    key: str

    @property
    def file(self) -> Path:
        """The archive that a JVM may use."""
        return self.directory / f"{self.key}.jsa"

    def options(self, *, now_s: float, process: int) -> tuple[str, ...]:
        """Return the JVM options that use the archive, or make one if there is none yet.

        `process` is an id that no other live process on this machine has.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        self._adopt(now_s)
        if self.file.is_file():
            return (f"-XX:SharedArchiveFile={self.file}", *_QUIET)
        return (f"-XX:ArchiveClassesAtExit={self.directory / f'{self.key}.{process}.new'}", *_QUIET)

    def _adopt(self, now_s: float) -> None:
        """Take over one finished file if an archive is missing; delete what is left of others and of older keys."""
        for candidate in sorted(self.directory.glob("*.new")):
            if now_s - _modified_s(candidate) < _SETTLED_S:
                continue
            if candidate.name.startswith(f"{self.key}.") and not self.file.exists() and _is_finished(candidate):
                candidate.replace(self.file)
            else:
                candidate.unlink(missing_ok=True)
        if self.file.exists():
            for other in self.directory.glob("*.jsa"):
                if other != self.file:
                    other.unlink(missing_ok=True)


def class_archive(directory: Path, *, java_home: Path, jars: Iterable[Path]) -> ClassArchive:
    """Return the archive for this Java and these jars."""
    digest = hashlib.blake2b(digest_size=8)
    release = java_home / "release"
    digest.update(release.read_bytes() if release.is_file() else str(java_home).encode())
    for jar in sorted(jars):
        state = jar.stat()
        digest.update(f"{jar}:{state.st_size}:{state.st_mtime_ns}\n".encode())
    return ClassArchive(directory, digest.hexdigest())


def options_now(archive: ClassArchive) -> tuple[str, ...]:
    """Return the options for a JVM that this process starts now."""
    return archive.options(now_s=time.time(), process=os.getpid())


def _is_finished(file: Path) -> bool:
    """Return whether the JVM has written the header, which it does last."""
    with file.open("rb") as content:
        return any(content.read(4))


def _modified_s(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return float("inf")  # Another process has just adopted or deleted it.
