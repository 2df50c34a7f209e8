"""Vacuums of an Iceberg table as the decider sees them: what one would delete, what can be deleted, and which ended.

The dry run walks through the same metadata as an actor, by the same generators (`shared.formats.iceberg.vacuum_plan`).
"""

import asyncio
from collections.abc import Generator, Iterator, Mapping
from typing import TypeVar

from decider.formats.iceberg.source import MetadataSource
from decider.formats.table_format import Deletion, VacuumPreview
from shared.formats.iceberg.dangling import DanglingSearch
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import VACUUM_KEY
from shared.formats.iceberg.orphans import young_since_ms
from shared.formats.iceberg.other_entries import metadata_folder, read_other_entries
from shared.formats.iceberg.positions import newest_position
from shared.formats.iceberg.retention import check_may_expire, own_retention_s, plan_expiry
from shared.formats.iceberg.vacuum_plan import (
    Stage,
    StoreListing,
    UnneededFile,
    find_unneeded,
    name_below,
    read_past,
)
from shared.formats.iceberg.walk import Bodies, Read
from shared.formats.retention import retention_of_run_ms
from shared.formats.table_marks import left_out_note
from shared.jobs.options import VacuumOptions
from shared.layout import commit_metadata
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy
from shared.table import VacuumMark
from shared.whole_numbers import whole_number

T = TypeVar("T")


class IcebergVacuums:
    """Plans vacuums of one table; `boundary`: which files may be deleted, None: any in the table's folder."""

    def __init__(self, source: MetadataSource, boundary: Boundary | None) -> None:
        self._source = source
        self._boundary = boundary

    async def plan(self, policy: Policy, options: VacuumOptions, now_ms: int) -> VacuumPreview:
        """Return exactly what a vacuum that began now would delete; raises what an actor raises, too."""
        # The store before the metadata: what was committed before the listing is then known as such.
        folder = metadata_folder(await self._source.head())
        metadata = await self._source.metadata_files(folder)
        listed = await self._source.files() if options.with_orphans else None
        head = await self._source.head()
        check_may_expire(head.metadata.configuration, self._source.location)
        cutoff_ms = now_ms - retention_of_run_ms(policy, options, head.metadata.configuration, own_retention_s)
        versions = await self._drive(read_past(head))
        expiry = plan_expiry(versions, cutoff_ms, now_ms)
        listing = None if listed is None else StoreListing(listed, young_since_ms(cutoff_ms, now_ms))
        others = await self._drive(read_other_entries(head, folder, metadata))
        found = await self._drive(find_unneeded(versions, expiry, listing, others))
        candidates = found.ordered()
        existing = await self._source.existing([one.path for one in candidates])
        deletions = tuple(_deletion(one, head.location) for one in candidates if one.path in existing)
        dangling = await self._drive(DanglingSearch().find(head))
        if self._boundary is not None:
            self._boundary.check_not_linked(head.location, (one.name for one in deletions))
        return VacuumPreview(
            newest_position(head).version,
            cutoff_ms,
            deletions,
            snapshots=len(expiry.snapshots),
            delete_files=len(dangling),
            left_out=left_out_note(found.left_out, found.unrecognized),
        )

    async def _drive(self, walk: Generator[Read, Bodies, T]) -> T:
        try:
            wanted = next(walk)
            while True:
                reads = (self._source.read_if_present(path, wanted.length) for path in wanted.paths)
                wanted = walk.send(await asyncio.gather(*reads))
        except StopIteration as end:
            result: T = end.value
            return result


def removals(head: TableHead) -> Iterator[tuple[int, int]]:
    """Yield time in ms and size in bytes of each file that snapshots of main removed, by their summaries."""
    for snapshot in head.chain():
        files, size = (_count(snapshot.summary, name) for name in ("deleted-data-files", "removed-files-size"))
        for number in range(files):
            yield snapshot.timestamp_ms, size // files + (size % files if number == 0 else 0)
        superseded = int(snapshot.parent is not None) + _count(snapshot.summary, "removed-delete-files")
        yield from ((snapshot.timestamp_ms, 0) for _ in range(superseded))


def vacuum_mark(before: Mapping[str, str], after: Mapping[str, str]) -> VacuumMark | None:
    """Return the vacuum that ended between two states of a table's properties, None if none did."""
    text = after.get(VACUUM_KEY)
    mark = None if text == before.get(VACUUM_KEY) else commit_metadata.decode(text)
    if mark is None or mark.vacuumed_until_ms is None:
        return None
    return VacuumMark(mark.vacuumed_until_ms, bool(mark.vacuumed_orphans))


def _count(summary: Mapping[str, str], name: str) -> int:
    return whole_number(summary.get(name, "")) or 0


def _deletion(candidate: UnneededFile, location: str) -> Deletion:
    name = name_below(location, candidate.path) or candidate.path
    return Deletion(name, candidate.size_bytes, is_orphan=candidate.stage is Stage.ORPHAN)
