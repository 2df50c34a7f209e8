"""Writing a group's output by copying the inputs' row groups as bytes: one task, and nothing is decoded.

What the task (`RowGroupCopy.java`) finds to be an obstacle only while it copies, as pages that do not fit their footer,
sends the group to the encoder like what is known before.
"""

from dataclasses import replace

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.copy_choice import CopyCandidate, reason_to_encode
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.parquet.copy_rules import CopyRule, EncodeReason, NotCopied
from shared.layout.row_order import INPUT_ORDER

_GREW_FULL = "full"  # The task's word for an output that did not stay below the full size.


class GroupCopier:
    """Copies groups of one table, where that is exact. Safe to use from several threads."""

    def __init__(self, tasks: ParquetTasks) -> None:
        self._tasks = tasks

    def copy(self, live: LiveGroup, rule: CopyRule, values: dict[str, str | None]) -> LoggedFile | NotCopied:
        """Copy the group into one file with these partition values, or return why it has to be encoded."""
        try:
            candidate = self._choose(live, rule, values)
            if isinstance(candidate, NotCopied):
                return candidate
            # Row groups may be small because the output stays below the full size: the task makes sure that it does.
            if_full = reason_to_encode(replace(candidate, full_bytes=0), rule.limits)
            files = candidate.files or ()
            codec = next((file.codecs[0] for file in files if file.codecs and file.codecs[0]), "uncompressed")
            result = self._tasks.run("RowGroupCopy", live, values, codec, rule.full_bytes if if_full else 0)
        except Exception as problem:  # noqa: BLE001 - raised again unless a JVM refused the classes
            self._tasks.classes.give_up_if_refused(self._tasks.log.session, problem)
            return NotCopied(EncodeReason.UNAVAILABLE)
        if "obstacle" in result:
            grew = if_full if result["obstacle"] == _GREW_FULL else None
            return NotCopied(grew or EncodeReason(result["obstacle"]), files)
        return self._tasks.output(live, result, values, files[0].schema)

    def _choose(self, live: LiveGroup, rule: CopyRule, values: dict[str, str | None]) -> NotCopied | CopyCandidate:
        candidate = CopyCandidate(
            shape=self._tasks.paths.shape,
            mode=live.group.mode,
            bytes=live.group.bytes,
            full_bytes=rule.full_bytes,
            has_deletion_vectors=any(logged.file.dv_id is not None for logged in live.inputs),
            is_sorted=live.group.order not in (None, INPUT_ORDER),
            is_allowed=rule.is_allowed,
            loses_folder=self._tasks.paths.loses_folder(values, [logged.file.path for logged in live.inputs]),
        )
        reason = reason_to_encode(candidate, rule.limits)
        if reason is None:
            candidate = replace(candidate, is_available=self._tasks.classes.are_usable(self._tasks.log.session))
            reason = reason_to_encode(candidate, rule.limits)
        if reason is not None:
            return NotCopied(reason)
        files = self._tasks.footers.read(live.inputs)
        candidate = candidate.with_footers(files)
        reason = reason_to_encode(candidate, rule.limits)
        return candidate if reason is None else NotCopied(reason, files)
