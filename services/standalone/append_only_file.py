"""A server that refuses its append-only file gets it back repaired, with as little lost as its bytes allow.

A full disk damages the file in one way. After a rewrite, the servers write it without O_APPEND: a write that finds half
of its room is undone by cutting the file, and the next one continues at the old position. That leaves zeros between two
commands, which the server refuses as a bad format (Redis 7.0, Valkey 8 and 9). Every command is still there, so the
zeros are taken out. The servers' own tool would cut all that follows (`valkey-check-aof --fix`), and calls healthy
files damaged (valkey-io/valkey pull request 4739).

Other damage is cut off with what follows it, as after a power cut. If the base file or the manifest is damaged, the
copy of the last good start is put back. What was replaced stays in the folder `damaged` until the next repair.

`python -m services.standalone.append_only_file FOLDER` repairs the file of a server that others run and that is down.
"""

import mmap
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import structlog

from services.standalone.append_only_commands import Commands, Ending, read_commands
from services.visible_text import visible_lines
from shared.errors import LakewrightError, PermanentError

FOLDER = "appendonlydir"
DAMAGED = "damaged"
LAST_GOOD = "last-good"

COPY_ROOM_FACTOR = 2
"""Free space that a copy needs, in its own sizes: a copy must not be what fills the disk."""

COPY_CHUNK_BYTES = 1 << 20
"""Bytes copied at once, whatever the size of a file."""

_REFUSAL = re.compile(
    r"reading the append only file|reading the RDB|RDB file|rdb file|AOF MANIFEST|truncated file is not the last"
    r"|append log file \S+ doesn't exist|AOF file \S+ length. stat: No such file|RDB checksum|CRC error"
)
"""How servers say that they refuse what is there; no other end is a reason to touch a file."""
_LOADED = "Ready to accept connections"
_INCREMENT = re.compile(r"^file (\S+) seq \d+ type i\b", re.MULTILINE)

log = structlog.get_logger()


class Repair(StrEnum):
    """How a file that the server refused was repaired."""

    ZEROS_REMOVED = "zeros of a full disk removed, nothing is lost"
    CUT = "cut before the damage"
    RESTORED = "replaced by the copy of the last good start"


@dataclass(frozen=True, slots=True)
class AppendOnlyFile:
    """The append-only file in a server's folder: manifest, base and increments."""

    data_dir: Path

    def repair(self, printed: str) -> bool:
        """Repair what the server refused by what it printed; returns whether another start may succeed.

        A file that the server has loaded is never touched. Raises PermanentError if the repair cannot be written.
        """
        if _LOADED in printed or not _REFUSAL.search(printed):
            return False
        return self.repair_increments() or self._reported(self._restore)

    def repair_increments(self) -> bool:
        """Repair the increments as far as they need it; returns whether they did. Raises what `repair` raises."""
        return self._reported(self._repair_increments)

    def _reported(self, repair: Callable[[], Repair | None]) -> bool:
        try:
            done = repair()
        except OSError as problem:
            raise PermanentError(
                f"{self._folder} is damaged, and its repair cannot be written ({problem.strerror}): make room on its "
                "disk and start again"
            ) from problem
        if done is not None:
            report = log.warning if done is Repair.ZEROS_REMOVED else log.error
            report("redis_file_repaired", how=done.value, file=str(self._folder), before=str(self.data_dir / DAMAGED))
        return done is not None

    def keep_copy(self) -> None:
        """Keep a copy of what the server has just loaded; if that fails, the copy before stays."""
        new, kept = self.data_dir / f"{LAST_GOOD}.new", self.data_dir / LAST_GOOD
        try:
            size = sum(file.stat().st_size for file in self._folder.iterdir())
            if shutil.disk_usage(self.data_dir).free < COPY_ROOM_FACTOR * size:
                log.warning("redis_copy_skipped", folder=str(self.data_dir), missing="room on the disk")
                return
            shutil.rmtree(new, ignore_errors=True)
            shutil.copytree(self._folder, new)
            shutil.rmtree(kept, ignore_errors=True)
            new.rename(kept)
        except OSError as problem:
            log.warning("redis_copy_skipped", folder=str(self.data_dir), missing=str(problem))

    @property
    def _folder(self) -> Path:
        return self.data_dir / FOLDER

    def _repair_increments(self) -> Repair | None:
        """Repair the first increment that needs it; behind a cut, later ones are emptied, as they continue it."""
        files = self._increments()
        for number, file in enumerate(files):
            found, later = _commands_of(file), files[number + 1 :]
            if found.ending is Ending.DAMAGED or (found.ending is Ending.TORN and later):
                self._replace({file: found} | dict.fromkeys(later, Commands((), Ending.WHOLE)))
                return Repair.CUT
            if found.has_zeros:
                self._replace({file: found})
                return Repair.ZEROS_REMOVED
        return None

    def _increments(self) -> Sequence[Path]:
        """Return the increments that the manifest lists and that are there, in order."""
        listed = [
            self._folder / name
            for manifest in self._folder.glob("*.manifest")
            for name in _INCREMENT.findall(manifest.read_text(errors="replace"))
        ]
        return [file for file in listed if file.parent == self._folder and file.is_file()]

    def _replace(self, contents: dict[Path, Commands]) -> None:
        """Leave only these commands in files, each replaced at once, the last file first."""
        kept = self._empty_damaged_folder()
        for file, commands in reversed(contents.items()):
            new = file.with_suffix(".repaired")
            with file.open("rb") as old, new.open("wb") as repaired:
                for start, end in commands.ranges:
                    _copy(old, repaired, start, end)
                repaired.flush()
                os.fsync(repaired.fileno())
            os.link(file, kept / file.name)
            new.replace(file)
        _sync(self._folder)

    def _restore(self) -> Repair | None:
        copy, new = self.data_dir / LAST_GOOD, self.data_dir / f"{FOLDER}.new"
        if not copy.is_dir():
            return None
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(copy, new)
        kept = self._empty_damaged_folder()
        if self._folder.is_dir():
            self._folder.rename(kept / FOLDER)
        new.rename(self._folder)
        _sync(self.data_dir)
        return Repair.RESTORED

    def _empty_damaged_folder(self) -> Path:
        kept = self.data_dir / DAMAGED
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(mode=0o700)
        return kept


def _commands_of(file: Path) -> Commands:
    if not file.stat().st_size:
        return Commands((), Ending.WHOLE)
    with file.open("rb") as opened, closing(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)) as data:
        return read_commands(data)


def _copy(source: BinaryIO, target: BinaryIO, start: int, end: int) -> None:
    source.seek(start)
    while some := source.read(min(COPY_CHUNK_BYTES, end - start)):
        target.write(some)
        start += len(some)


def _sync(folder: Path) -> None:
    """Have the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def main(arguments: Sequence[str]) -> int:
    """Repair the file below a folder that is given; 0 if the server can be started."""
    if len(arguments) != 1 or not (Path(arguments[0]) / FOLDER).is_dir():
        print(f"usage: append_only_file FOLDER, where FOLDER contains {FOLDER}", file=sys.stderr)
        return 2
    try:
        is_repaired = AppendOnlyFile(Path(arguments[0])).repair_increments()
    except LakewrightError as problem:
        print(visible_lines(str(problem)), file=sys.stderr)
        return 1
    print("repaired" if is_repaired else "nothing to repair")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
