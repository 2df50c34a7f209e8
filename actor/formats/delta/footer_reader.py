"""Reads the footers of a table's files in the JVM, several at once and in one call however many they are."""

import json
from collections.abc import Sequence

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.log import TableLog
from actor.formats.parquet.footer_summary import THREADS, FooterSummary, decode_summary
from actor.jvm.scala import Scala


class FooterReader:
    """Reads the footers of one table's files. Safe to use from several threads."""

    def __init__(self, scala: Scala, log: TableLog) -> None:
        self._scala = scala
        self._log = log

    def read(self, files: Sequence[LoggedFile]) -> tuple[FooterSummary, ...]:
        """Return the summaries in the order of the files."""
        paths = self._scala.java_list(self._log.data_location(logged.key) for logged in files)
        sizes = self._scala.java_list(logged.file.size_bytes for logged in files)
        summaries = self._scala.resolve("io.lakewright.ParquetFooter.summaries")
        found = summaries(self._log.hadoop_conf, paths, sizes, THREADS)
        return tuple(map(decode_summary, json.loads(self._scala.to_json(found))))
