"""Encoding a group column by column: one task (`ColumnMerge.java`), without SQL, that puts no row together.

For groups that could be copied but for the layout of their files: small row groups, dictionaries, another codec. Each
value is decoded and encoded as the file stores it, so types cannot change. What speaks against that leaves the group to
Spark.
"""

from collections import Counter

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.output_format import choose_codec
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.parquet.copy_rules import EncodeReason, NotCopied
from shared.errors import Unsupported

LAYOUT_REASONS = frozenset(
    {
        EncodeReason.SMALL_ROW_GROUPS,
        EncodeReason.SMALL_COLUMN_CHUNKS,
        EncodeReason.DICTIONARIES,
        EncodeReason.LARGE_FOOTER,
        EncodeReason.MIXED_CODECS,
        EncodeReason.OTHER_CODEC,
    }
)
"""Reasons not to copy that are known last: the inputs have one schema, and nothing else of them is unusual."""


class ColumnMerger:
    """Encodes groups of one table column by column. Safe to use from several threads."""

    def __init__(self, tasks: ParquetTasks) -> None:
        self._tasks = tasks

    def merge(self, live: LiveGroup, found: NotCopied, values: dict[str, str | None]) -> LoggedFile | None:
        """Encode the group, which was not copied for the reason found; None if Spark has to."""
        codec = self._codec(found) if found.reason in LAYOUT_REASONS else None
        if codec is None:
            return None
        try:
            result = self._tasks.run("ColumnMerge", live, values, codec, codec.upper())
        except Exception as problem:  # noqa: BLE001 - raised again unless a JVM refused the classes
            self._tasks.classes.give_up_if_refused(self._tasks.log.session, problem)
            return None
        if "obstacle" in result:
            return None
        try:
            return self._tasks.output(live, result, values, found.files[0].schema, is_checked=True)
        except Unsupported:
            return None

    def _codec(self, found: NotCopied) -> str | None:
        """Return the table's codec, else that of most bytes, going by the first column; None for files without rows."""
        codec_bytes: Counter[str] = Counter()
        for file in found.files:
            if file.codecs and file.codecs[0]:
                codec_bytes[file.codecs[0]] += file.data_bytes
        return choose_codec(self._tasks.paths.shape.metadata.configuration, codec_bytes)
