"""Writing a group's output by copying the inputs' row groups as bytes: one Spark task, and nothing is decoded.

The task (`RowGroupCopy.java`) leaves no file behind if it fails or is cancelled. What it finds to be an obstacle only
while it copies, as pages that do not fit their footer, sends the group to the encoder like what is known before.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.copy_choice import DEFAULT_LIMITS, CopyCandidate, CopyLimits, EncodeReason, reason_to_encode
from actor.formats.delta.footer_summary import FooterReader, FooterSummary
from actor.formats.delta.footers import Footers, Storage
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog
from actor.formats.delta.merged_statistics import merged
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_classes import ParquetClasses
from actor.jvm.scala import Scala, jvm_context
from shared.layout.row_order import INPUT_ORDER

_SUFFIXES = {"uncompressed": "", "gzip": ".gz", "lz4_raw": ".lz4raw"}  # As Spark names files; the others are `.name`.
_GREW_FULL = "full"  # The task's word for an output that did not stay below the full size.
_FLOATS = frozenset({"float", "double"})


@dataclass(frozen=True, slots=True)
class CopyRule:
    """Whether row groups may be copied at all, and into what: see `copy_choice`.

    full_bytes: size from which an output of the levels counts as full; 0: each does.
    """

    is_allowed: bool = True
    full_bytes: int = 0
    limits: CopyLimits = DEFAULT_LIMITS


class GroupCopier:
    """Copies groups of one table, where that is exact. Safe to use from several threads."""

    def __init__(self, scala: Scala, log: TableLog, paths: OutputPaths, classes: ParquetClasses) -> None:
        self.format = OutputFormat(Footers(scala, log, classes), paths.shape, log.location)
        self._scala = scala
        self._log = log
        self._shape = paths.shape
        self._paths = paths
        self._footers = FooterReader(scala, log)
        self._classes = classes

    def copy(self, live: LiveGroup, rule: CopyRule, values: dict[str, str | None]) -> LoggedFile | EncodeReason:
        """Copy the group into one file with these partition values, or return why it has to be encoded."""
        try:
            candidate = self._choose(live, rule, values)
            if isinstance(candidate, EncodeReason):
                return candidate
            # Row groups may be small because the output stays below the full size: the task makes sure that it does.
            if_full = reason_to_encode(replace(candidate, full_bytes=0), rule.limits)
            result = self._run(live, candidate.files or (), values, end_bytes=rule.full_bytes if if_full else 0)
        except Exception as problem:  # noqa: BLE001 - raised again unless a JVM refused the classes
            self._classes.give_up_if_refused(self._log, problem)
            return EncodeReason.UNAVAILABLE
        if result["attempt"] > 0:
            self._paths.note_lost_attempt()
        if "obstacle" in result:
            return if_full if if_full and result["obstacle"] == _GREW_FULL else EncodeReason(result["obstacle"])
        return self._add(live, result, values)

    def _choose(self, live: LiveGroup, rule: CopyRule, values: dict[str, str | None]) -> EncodeReason | CopyCandidate:
        candidate = CopyCandidate(
            shape=self._shape,
            mode=live.group.mode,
            bytes=live.group.bytes,
            full_bytes=rule.full_bytes,
            has_deletion_vectors=any(logged.file.dv_id is not None for logged in live.inputs),
            is_sorted=live.group.order not in (None, INPUT_ORDER),
            is_allowed=rule.is_allowed,
            loses_folder=self._paths.loses_folder(values, [logged.file.path for logged in live.inputs]),
        )
        reason = reason_to_encode(candidate, rule.limits)
        if reason is None:
            candidate = replace(candidate, is_available=self._classes.are_usable(self._log))
            reason = reason_to_encode(candidate, rule.limits)
        if reason is not None:
            return reason
        candidate = candidate.with_footers(self._footers.read(live.inputs))
        return reason_to_encode(candidate, rule.limits) or candidate

    def _run(
        self, live: LiveGroup, summaries: Sequence[FooterSummary], values: dict[str, str | None], *, end_bytes: int
    ) -> Mapping[str, Any]:
        """Run the task; its Spark job carries the tag of this thread, so that cancelling the job ends it."""
        folder = self._paths.folder_for(values, [logged.file.path for logged in live.inputs])
        codec = next((file.codecs[0] for file in summaries if file.codecs and file.codecs[0]), "uncompressed")
        task = self._scala.resolve("io.lakewright.RowGroupCopy")(
            self._log.hadoop_conf,
            self._scala.java_list(self._log.data_path(logged.key).toString() for logged in live.inputs),
            self._scala.java_list(logged.file.size_bytes for logged in live.inputs),
            folder,
            self._paths.prefix,
            f".c000{_SUFFIXES.get(codec, f'.{codec}')}.parquet",
            end_bytes,
        )
        context = self._scala.resolve("org.apache.spark.api.java.JavaSparkContext")(jvm_context(self._log.session))
        one_task = 1
        collected = context.parallelize(self._scala.java_list([1]), one_task).map(task).collect()
        (result,) = json.loads(self._scala.to_json(collected))
        return {**result, "path": self._paths.logged_path(folder, result["name"])} if "name" in result else result

    def _add(self, live: LiveGroup, result: Mapping[str, Any], values: dict[str, str | None]) -> LoggedFile:
        columns = self._shape.metadata.partition_columns
        add = {
            "path": result["path"],
            "partitionValues": values,
            "size": result["size"],
            "modificationTime": result["modification"],
            "dataChange": False,
        }
        if live.group.tags:
            add["tags"] = dict(live.group.tags)
        bare = LoggedFile(decode_add(add, columns), encode(add))
        try:
            storage = self.format.storage(live.inputs[:1])  # One schema for all.
            given = [json.loads(logged.json).get("stats") or "" for logged in live.inputs]
            leaves = [column for schema in storage.schemas for column in schema]
            add["stats"] = merged(given, leaves, rows=result["rows"])
            output = LoggedFile(decode_add(add, columns), encode(add))
            (output,) = self.format.complete(live.inputs, [output], _without_floats(storage))
        except BaseException:
            self._log.delete([bare.key])
            raise
        return output


def _without_floats(storage: Storage) -> Storage:
    """Return the columns that a footer may complete: other writers leave not-a-number out of its bounds.

    Readers of Delta take it for the greatest value, and would skip the file.
    """
    kept = (tuple(column for column in schema if column.kind not in _FLOATS) for schema in storage.schemas)
    return replace(storage, schemas=tuple(kept))
