"""Encoding a group column by column: one task (`ColumnMerge.java`), without SQL, that puts no row together.

For groups that could be copied but for the layout of their files (small row groups, dictionaries, another codec), or
because other programs wrote them. Each value is decoded and encoded as the file stores it, so types cannot change. What
speaks against that leaves the group to Spark.
"""

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.output_format import choose_codec
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.parquet.copy_rules import MERGED_REASONS, NotCopied
from actor.formats.parquet.footer_summary import codec_bytes
from shared.errors import Unsupported


class ColumnMerger:
    """Encodes groups of one table column by column. Safe to use from several threads."""

    def __init__(self, tasks: ParquetTasks) -> None:
        self._tasks = tasks

    def merge(self, live: LiveGroup, found: NotCopied, values: dict[str, str | None]) -> LoggedFile | None:
        """Encode the group, which was not copied for the reason found; None if Spark has to."""
        codec = self._codec(found) if found.reason in MERGED_REASONS else None
        if codec is None:
            return None
        result = self._tasks.classes.run(lambda: self._tasks.run("merged", live, values, codec, codec.upper(), None))
        if result is None or "obstacle" in result:
            return None
        try:
            return self._tasks.output(live, result, values, found.files[0].schema, is_checked=True)
        except Unsupported:
            return None

    def _codec(self, found: NotCopied) -> str | None:
        """Return the table's codec, else the codec of most bytes, by the first column; None for files without rows."""
        return choose_codec(self._tasks.paths.shape.metadata.configuration, codec_bytes(found.files))
