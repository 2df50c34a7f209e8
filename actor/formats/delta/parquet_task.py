"""Runs the Java tasks that write one Parquet file out of a group's inputs, with the statistics of its inputs.

A task (`ParquetTask.java`) leaves no file behind if it fails or is cancelled.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footer_reader import FooterReader, paths_and_sizes
from actor.formats.delta.footers import Footers, Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog
from actor.formats.delta.merged_statistics import merged
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths
from actor.jvm.scala import jvm_context

_SUFFIXES = {"uncompressed": "", "gzip": ".gz", "lz4_raw": ".lz4raw"}  # As Spark names files; the others are `.name`.
_FLOATS = frozenset({"float", "double"})


class ParquetTasks:
    """Tasks on groups of one table. Safe to use from several threads."""

    def __init__(
        self,
        scala: DeltaScala,
        log: TableLog,
        paths: OutputPaths,
        caches: DeltaCaches,
    ) -> None:
        self.log = log
        self.paths = paths
        self.classes, self.index_rules = caches.classes, caches.index_rules
        self.footers = FooterReader(scala, log)
        self._stored = Footers(scala, log, self.footers, caches.schemas)
        self.format = OutputFormat(self._stored, paths.shape, log.location)
        self._scala = scala
        self._partition_columns = paths.shape.metadata.partition_columns

    def run(
        self,
        name: str,
        live: LiveGroup,
        values: dict[str, str | None],
        codec: str,
        *settings: Any,
    ) -> Mapping[str, Any]:
        """Run the task of this name, with its own last settings; returns what it says of its files, or its `obstacle`.

        The task carries the job tags of this thread, so that cancelling the job ends it.
        """
        folder = self.paths.folder_for(values, [logged.file.path for logged in live.inputs])
        suffix = f".c000{_SUFFIXES.get(codec, f'.{codec}')}.parquet"
        files = paths_and_sizes(self.log, live.inputs)
        run = getattr(self._scala.group, name)
        where = folder, self.paths.prefix, suffix
        result = json.loads(run(jvm_context(self.log.session), self.log.hadoop_conf, *files, *where, *settings))
        if result["attempt"] > 0:
            self.paths.note_lost_attempt()
        for made in (*result.get("outputs", ()), result):
            if "name" in made:
                made["path"] = self.paths.logged_path(folder, made["name"])
        return result  # type: ignore[no-any-return]

    def output(
        self,
        live: LiveGroup,
        result: Mapping[str, Any],
        values: dict[str, str | None],
        schema: str,
        *,
        is_checked: bool = False,
    ) -> LoggedFile:
        """Return the task's file as the log will have it; its statistics are merged from the inputs'.

        If that fails, the file is deleted. schema: digest of the inputs' one schema. is_checked: raise Unsupported for
        an output that stores columns otherwise than its inputs.
        """
        add = {
            "path": result["path"],
            "partitionValues": values,
            "size": result["size"],
            "modificationTime": result["modification"],
            "dataChange": False,
        }
        if live.group.tags:
            add["tags"] = dict(live.group.tags)
        bare = LoggedFile(decode_add(add, self._partition_columns), encode(add))
        try:
            storage = Storage((self._stored.columns(schema, live.inputs[0]),), {})
            if is_checked:
                self.format.check(storage, [bare])
            given = [json.loads(logged.json).get("stats") or "" for logged in live.inputs]
            hides_rows = any(logged.file.dv_id is not None for logged in live.inputs)
            add["stats"] = merged(given, storage.schemas[0], rows=result["rows"], hides_rows=hides_rows)
            output = LoggedFile(decode_add(add, self._partition_columns), encode(add))
            (output,) = self.format.complete(live.inputs, [output], _without_floats(storage))
        except BaseException:
            self.log.delete([bare.key])
            raise
        return output


def _without_floats(storage: Storage) -> Storage:
    """Return the columns that a footer may complete: other writers leave not-a-number out of its bounds.

    Readers of Delta take it for the greatest value, and would skip the file.
    """
    kept = (tuple(column for column in schema if column.kind not in _FLOATS) for schema in storage.schemas)
    return replace(storage, schemas=tuple(kept))
