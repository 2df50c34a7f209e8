"""Remembered refusals of some partitions of a table, and how they change: pure.

The stored text is kept beside the value, because a change is written only over the text that it was made from: an actor
may refuse more in the meantime.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from shared.partition_refusals import PartitionRefusals, TableFingerprint, file_id
from shared.queue.decode import text
from shared.queue.model import RefusalsChange
from shared.table import Commit, PartitionKey


@dataclass(frozen=True, slots=True)
class RefusedPartitions:
    """Partitions with something remembered, by their stored texts."""

    stored: Mapping[PartitionKey, str] = field(default_factory=dict)

    @staticmethod
    def of(found: Iterable[tuple[PartitionKey, bytes | str | None]]) -> "RefusedPartitions":
        """Return what was read; None: nothing."""
        return RefusedPartitions({partition: text(raw) for partition, raw in found if raw})

    def in_force(self, fingerprint: TableFingerprint, version: int) -> dict[PartitionKey, PartitionRefusals]:
        """Return what holds for a table with this fingerprint at a version."""
        return {
            partition: PartitionRefusals.decode(raw).in_force(fingerprint).after_hold(version)
            for partition, raw in self.stored.items()
        }

    def after(
        self, commits: Iterable[Commit], fingerprint: TableFingerprint, version: int
    ) -> dict[PartitionKey, PartitionRefusals]:
        """Return what holds after commits: a refusal is lifted where one of its files was removed."""
        if not self.stored:
            return {}
        removed: dict[PartitionKey | None, set[str]] = {}
        for commit in commits:
            for file in commit.removed:
                removed.setdefault(file.partition, set()).add(file_id(file.path))
        anywhere = removed.get(None, set())
        return {
            partition: known.after_removal(removed.get(partition, set()) | anywhere)
            for partition, known in self.in_force(fingerprint, version).items()
        }

    def among(
        self, live: Mapping[PartitionKey, Mapping[str, str]], fingerprint: TableFingerprint, version: int
    ) -> dict[PartitionKey, PartitionRefusals]:
        """Return what holds where these files are live, each with the digest of its deletes, by partition."""
        known = self.in_force(fingerprint, version)
        return {partition: one.among(live.get(partition, {})) for partition, one in known.items()}

    def changes(self, after: Mapping[PartitionKey, PartitionRefusals]) -> Iterator[RefusalsChange]:
        """Yield what is to be written."""
        for partition, known in after.items():
            if (new := known.encode()) != self.stored[partition]:
                yield RefusalsChange(partition, self.stored[partition], new)


NO_REFUSALS = RefusedPartitions()
"""The value of nearly every table."""
