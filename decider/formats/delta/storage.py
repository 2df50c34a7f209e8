"""Reads what a Delta table's store holds beyond its live files: for the dry run of a vacuum, and to restore its signal.

It reads what an actor reads, in the same order, and plans by the same rule (`shared.formats.delta_vacuum_plan`).
"""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Any

from decider.formats.delta.checkpoint import DAMAGE, CheckpointPart
from decider.formats.delta.damage import split_lines
from decider.formats.delta.listing import LOG_DIRECTORY, commit_version
from decider.formats.delta.log import DeltaLog
from decider.formats.table_format import Deletion, VacuumPreview
from decider.storage.object_reads import ObjectReader
from shared.errors import RetryableError
from shared.formats.delta_orphans import Kept, orphan_cutoff_ms
from shared.formats.delta_references import FileReference, reference
from shared.formats.delta_vacuum import LoggedCommit, Tombstone, decode_commit, in_order
from shared.formats.delta_vacuum_plan import VacuumInputs, plan_vacuum, retention_ms, tombstone_retention_s
from shared.formats.table_marks import left_out_note
from shared.jobs.options import VacuumOptions
from shared.paths.stored_file import StoredFile
from shared.policy.policy import Policy
from shared.table import DataFile

_OFFSET = re.compile(r"@\d+$")
_TOMBSTONE = ("remove.path", "remove.deletionTimestamp", "remove.size", "remove.deletionVector")


class DeltaStorage:
    """Store and log of one table, as a vacuum reads them."""

    def __init__(self, log: DeltaLog, reads: ObjectReader) -> None:
        self._log = log
        self._reads = reads

    async def removals(self) -> list[tuple[int, int]]:
        """Return time and size of each removal that the newest checkpoint or a later commit has."""
        version, parts = await self._log.checkpoint_parts()
        tombstones = await asyncio.to_thread(_tombstones, parts, self._log.location)
        found = [(one.deleted_ms or 0, _size(one.reference)) for one in tombstones]
        for commit in await self._commits(await self._commit_times(), after=version):
            again = {name for one in commit.added for name in one.kept}
            gone = (one for one in commit.removed if not any(name in again for name, _ in one.own[:1]))
            found += [(commit.time_ms, _size(one)) for one in gone]
        return found

    async def plan_vacuum(self, policy: Policy, options: VacuumOptions, now_ms: int) -> VacuumPreview:
        """Return exactly what a vacuum that began now would delete."""
        # The store before the log: what was committed before the listing is then known as such.
        stored = {name: StoredFile(name, size, at_ms) for name, size, at_ms in await self._reads.entries()}
        snapshot = await self._log.snapshot()
        times = await self._commit_times()
        if snapshot.version not in times:
            raise RetryableError(f"{self._log.location}: the newest commit {snapshot.version} is gone")
        commits = await self._commits({one: times[one] for one in times if one <= snapshot.version}, after=-1)
        _, parts = await self._log.checkpoint_parts(snapshot.version)
        found = await asyncio.to_thread(_tombstones, parts, self._log.location)
        # Delta's own snapshot, from which the actor plans, forgets them then.
        own_s = tombstone_retention_s(snapshot.metadata.configuration)
        known = [one for one in found if one.deleted_ms is None or one.deleted_ms > now_ms - own_s * 1000]
        inputs = VacuumInputs(
            snapshot.version,
            tuple(column.physical for column in snapshot.metadata.partition_columns),
            [one for file in snapshot.files for one in _references(file, self._log.location)],
            known,
            commits,
            tuple(stored.values()) if options.with_orphans else None,
        )
        plan = plan_vacuum(inputs, retention_ms(policy, snapshot.metadata, options), now_ms)
        named = (stored[name] for name in plan.removed if name in stored)
        young_ms = orphan_cutoff_ms(plan.cutoff_ms, now_ms)
        deletions = [Deletion(file.name, file.size_bytes) for file in named if file.modified_ms < plan.cutoff_ms]
        deletions += [
            Deletion(file.name, file.size_bytes, is_orphan=True) for file in plan.orphans if file.modified_ms < young_ms
        ]
        self._log.check_not_linked(one.name for one in deletions)
        left_out = left_out_note(plan.left_out, plan.kept.get(Kept.FOREIGN, 0))
        return VacuumPreview(snapshot.version, plan.cutoff_ms, tuple(deletions), snapshot.refusal, left_out=left_out)

    async def _commit_times(self) -> dict[int, int]:
        entries = await self._reads.entries(LOG_DIRECTORY)
        found = ((commit_version(name), at_ms) for name, _, at_ms in entries)
        return {version: at_ms for version, at_ms in found if version is not None}

    async def _commits(self, times: dict[int, int], *, after: int) -> tuple[LoggedCommit, ...]:
        """Read the commits above a version; raises RetryableError if log cleanup deletes one meanwhile."""
        wanted = sorted(version for version in times if version > after)
        commits: list[LoggedCommit] = []
        names = [f"{LOG_DIRECTORY}/{version:020d}.json" for version in wanted]
        async with aclosing(self._reads.get_each(names)) as bodies:
            for version in wanted:
                body = await anext(bodies)
                if body is None:
                    raise RetryableError(f"{self._log.location}: commit {version} vanished while the log was read")
                actions = [json.loads(line) for line in split_lines(body) if line.strip()]
                commits.append(decode_commit(actions, version, times[version], self._log.location))
        return in_order(commits)


def _references(file: DataFile, location: str) -> Iterator[FileReference]:
    """Yield the files that a live file needs; its vector's id does not say whether it ends with an offset."""
    if file.dv_id is None:
        yield reference({"path": file.path}, location)
        return
    for place in {file.dv_id[1:], _OFFSET.sub("", file.dv_id[1:])}:
        vector = {"storageType": file.dv_id[0], "pathOrInlineDv": place}
        try:
            yield reference({"path": file.path, "deletionVector": vector}, location)
        except ValueError:
            yield reference({"path": file.path}, location)


def _tombstones(parts: Sequence[CheckpointPart], location: str) -> list[Tombstone]:
    """Read the removals of a checkpoint; raises Corrupt for one that is damaged."""
    found: list[Tombstone] = []
    for part in parts:
        for row in _removes(part):
            vector = row.get("deletionVector")
            action = {**row, "deletionVector": vector if vector and vector.get("storageType") else None}
            found.append(Tombstone(reference(action, location), row.get("deletionTimestamp")))
    return found


def _removes(part: CheckpointPart) -> Iterator[dict[str, Any]]:
    if part.is_json:
        actions = (json.loads(line) for line in part.lines() if line.strip())
        yield from (action["remove"] for action in actions if action.get("remove"))
        return
    try:
        file = part.parquet(_TOMBSTONE)
        if "remove" not in file.schema_arrow.names:
            return
        for batch in file.iter_batches(columns=list(_TOMBSTONE)):
            removes = batch.column("remove")
            yield from removes.filter(removes.is_valid()).to_pylist()
    except DAMAGE as problem:
        raise part.log.corrupt(0, f"expected a checkpoint in Parquet: {problem}") from problem


def _size(one: FileReference) -> int:
    return sum(size for _, size in one.own)
