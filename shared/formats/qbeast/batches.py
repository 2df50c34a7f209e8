"""Batches of files by bytes, in the order in which files are rewritten."""

from collections.abc import Iterable, Iterator

from shared.errors import InvalidInput
from shared.formats.qbeast.files import IndexFile


def batches(files: Iterable[IndexFile], batch_bytes: int) -> Iterator[tuple[IndexFile, ...]]:
    """Yield files in order in batches that end with the file that reaches `batch_bytes`.

    So every batch has a file, and one that is larger than a batch holds up no other. Raises InvalidInput for a size
    below 1.
    """
    if batch_bytes < 1:
        raise InvalidInput(f"{batch_bytes} bytes in a batch: expected 1 or more", field="batchBytes")
    batch: list[IndexFile] = []
    total = 0
    for file in files:
        batch.append(file)
        total += file.size_bytes
        if total >= batch_bytes:
            yield tuple(batch)
            batch, total = [], 0
    if batch:
        yield tuple(batch)
