"""Reads the footers of a table's files in the JVM, several at once and in one call however many they are."""

import json
import threading
from collections.abc import Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from actor.formats.parquet.copy_rules import EncodeReason
from actor.formats.parquet.file_columns import DescribedFiles, decode_described
from actor.formats.parquet.footer_summary import THREADS, FooterSummary

_LOCAL = "file:"
"""Beginning of a folder whose files are read as fast one after the other: threads cost more than they gain."""


class FooterReader:
    """Reads the footers of the files of one rewrite, each set of files once. Safe to use from several threads."""

    def __init__(self, scala: DeltaScala, log: TableLog) -> None:
        self._scala = scala
        self._log = log
        self._lock = threading.Lock()
        self._read: dict[tuple[str, ...], DescribedFiles] = {}
        self._kept: dict[tuple[str, ...], Any] = {}

    def read(self, files: Sequence[LoggedFile]) -> tuple[FooterSummary, ...]:
        """Return the summaries in the order of the files; the JVM keeps the footers for a task (see `take`)."""
        return self.describe(files, is_kept=True).files

    def rows(self, files: Sequence[LoggedFile]) -> int | None:
        """Return how many rows the files hold, deleted ones included; None if a footer does not say it for certain."""
        found = self.describe(files).files
        if any(not one.schema or one.obstacle == EncodeReason.DAMAGED for one in found):
            return None
        return sum(one.rows for one in found)

    def take(self, files: Sequence[LoggedFile]) -> Any:
        """Return, once, what the JVM keeps of these files since `read`: a copy changes it. None if it keeps nothing."""
        with self._lock:
            return self._kept.pop(_paths(files), None)

    def forget(self, files: Sequence[LoggedFile]) -> None:
        """Let go of what was read of these files, alone or among others: their group is written."""
        gone = set(_paths(files))
        with self._lock:
            for known in (self._read, self._kept):
                for paths in [one for one in known if not gone.isdisjoint(one)]:
                    del known[paths]

    def describe(self, files: Sequence[LoggedFile], *, is_kept: bool = False) -> DescribedFiles:
        """Return what the footers say of each leaf column, too."""
        read_as = _paths(files)
        with self._lock:
            known = self._read.get(read_as)
        if known is not None:
            return known
        found = self._scala.group.footers(*self._given(files))
        described = decode_described(json.loads(found.text()))
        with self._lock:
            self._read[read_as] = described
            if is_kept:
                self._kept[read_as] = found
        return described

    def read_each(self, files: Sequence[LoggedFile]) -> None:
        """Read what `describe` says of each file alone, in one call; those that were read so are not read again."""
        with self._lock:
            unread = [file for file in files if _paths([file]) not in self._read]
        if not unread:
            return
        found = json.loads(self._scala.group.eachFooter(*self._given(unread)))
        with self._lock:
            self._read |= {_paths([file]): decode_described(one) for file, one in zip(unread, found, strict=True)}

    def _given(self, files: Sequence[LoggedFile]) -> tuple[Any, str, str, int]:
        threads = 1 if self._log.root.startswith(_LOCAL) else THREADS
        return self._log.hadoop_conf, *paths_and_sizes(self._log, files), threads


def paths_and_sizes(log: TableLog, files: Sequence[LoggedFile]) -> tuple[str, str]:
    """Return where files lie, as Hadoop spells it, and their sizes in bytes, each as a JSON array."""
    paths = [log.data_location(logged.key) for logged in files]
    return json.dumps(paths), json.dumps([logged.file.size_bytes for logged in files])


def _paths(files: Sequence[LoggedFile]) -> tuple[str, ...]:
    return tuple(logged.file.path for logged in files)
