"""Files that are not indexed yet: which of them the next iteration indexes, oldest first."""

from collections.abc import Iterable

from shared.formats.qbeast.batches import batches
from shared.formats.qbeast.files import FileClass, IndexFile

DEFAULT_BATCH_BYTES = 10_000_000_000
"""Bytes of one iteration, by the documents of the Unified Storage Engine."""


def select_unindexed(
    files: Iterable[IndexFile], batch_bytes: int = DEFAULT_BATCH_BYTES, from_ms: int = 0
) -> tuple[IndexFile, ...]:
    """Return the oldest files that are not indexed, up to the one that reaches `batch_bytes`; none where none is left.

    Files modified before `from_ms` are ignored. Raises InvalidInput for a batch below 1 byte.
    """
    candidates = [file for file in files if file.kind is FileClass.UNINDEXED and file.modified_ms >= from_ms]
    candidates.sort(key=lambda file: (file.modified_ms, file.path))
    return next(batches(candidates, batch_bytes), ())
