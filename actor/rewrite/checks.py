"""Checks of any table and its groups: its id, room on its disk, one entry of each path, sorted outputs."""

import shutil
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from actor.rewrite.model import ResolvedGroup
from shared.errors import Corrupt, OtherTable, RefusedFiles, RetryableError
from shared.paths.locations import canonical_location, decoded_path
from shared.policy.row_order import RowOrder
from shared.refusals import RefusalReason
from shared.table import DataFile, TableMetadata

MIB = 1 << 20

OUTPUT_RATIO = Fraction(5, 4)
"""Bytes of output expected at most for a byte of input: merged files compress alike, other encodings may cost some."""


def check_identity(location: str, metadata: TableMetadata, table_uuid: str) -> None:
    """Raise OtherTable unless the table has this id; an empty `table_uuid` means any table."""
    if table_uuid and metadata.table_uuid != table_uuid:
        raise OtherTable(
            f"{location} holds the table {metadata.table_uuid}, and the job is about {table_uuid}: it was dropped and "
            "created again since; nothing was changed, and the decider decides again when it next reads the log",
            field="table_uuid",
            allowed=table_uuid,
        )


def free_bytes(location: str) -> int | None:
    """Return the bytes that may still be written to the disk of a folder, None for a store that shows no such limit.

    A folder need not be there: tables of a catalog may keep all their files elsewhere.
    """
    if not location.startswith(("file:", "/")):
        return None
    place = Path(decoded_path(canonical_location(location)))
    return shutil.disk_usage(next(one for one in (place, *place.parents) if one.exists())).free


def require_free_space(
    location: str,
    input_bytes: int,
    *,
    reserved_bytes: int,
    free_bytes: Callable[[str], int | None] = free_bytes,
) -> None:
    """Raise RetryableError unless outputs of these inputs would leave `reserved_bytes` free on the table's disk.

    A full disk stops the table's writers.
    """
    free = free_bytes(location)
    needed = int(input_bytes * OUTPUT_RATIO) + reserved_bytes
    if free is not None and free < needed:
        raise RetryableError(
            f"the disk of {location} has {free // MIB} MiB left, and rewriting {input_bytes // MIB} MiB takes up "
            f"to {needed // MIB} MiB with the {reserved_bytes // MIB} MiB kept for the table's writers; nothing was "
            "written. Free space (a vacuum removes files that no version needs), then it is tried again",
        )


def require_single_entries(location: str, live: ResolvedGroup, groups: Sequence[ResolvedGroup]) -> None:
    """Raise RefusedFiles if a path of a group is live under several deletion vectors, in it or another of `groups`.

    A commit, which all groups share, can remove a path only once. Writers leave that behind which remove a file without
    naming its vector, as Trino does.
    """
    paths = {one.file.path for one in live.inputs}
    found: dict[str, set[str | None]] = {path: set() for path in paths}
    for one in (one for group in groups for one in group.inputs if one.file.path in paths):
        found[one.file.path].add(one.file.dv_id)
    doubled = tuple(sorted(path for path, vectors in found.items() if len(vectors) > 1))
    if doubled:
        vectors = sorted(str(one) for one in found[doubled[0]])
        raise RefusedFiles(
            f"{doubled[0]} of {location} is live {len(vectors)} times, with the deletion vectors {', '.join(vectors)}, "
            "and a commit can remove a path only once: nothing was rewritten. A writer removed the file without naming "
            "its vector (as Trino does), and its rows are there twice: restore the table to the version before, or "
            "delete these rows with Spark",
            reason=RefusalReason.DOUBLED,
            files=doubled,
        )


def require_disjoint(outputs: Sequence[DataFile], order: RowOrder | None, key: str, doing: str) -> None:
    """Raise Corrupt if ranges of sorted outputs overlap by their own statistics; to be called before the commit.

    What a reader skips files by is checked, and not what the plan or Spark says of it. Ends may touch: of texts only
    the beginning is compared. `key`: name of the column of the ranges.
    """
    if order is None or not order.columns or order.is_interleaved:
        return
    ranges = sorted(output.key_range for output in outputs if output.key_range is not None)
    for (low, high), (next_low, next_high) in pairwise(ranges):
        if high > next_low:
            raise Corrupt(
                f"{doing} was stopped before its commit: two outputs overlap in {key!r}, from {low} to {high} and "
                f"from {next_low} to {next_high}, although the rows were sorted. The table is unchanged"
            )
