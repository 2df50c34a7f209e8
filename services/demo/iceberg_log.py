"""The history of the demonstration's Iceberg table, read from its snapshots by pyiceberg, which wrote them."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decider.whatif.baselines import PEERS
from decider.whatif.simulator import replay_peer
from decider.whatif.trace import CommitTrace
from services.demo.commit_log import CommitLogSums
from shared.policy.policy import Policy
from shared.table import Commit, DataFile, PartitionKey

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_RULE = next(rule for rule in PEERS if rule.name == "iceberg_defaults")


@dataclass(slots=True)
class IcebergLogSums(CommitLogSums):
    """Sums over a table's snapshots, whose ids are `read`; `changed_ms`: when the table changed last."""

    others_title: str = "Iceberg's rewrite_data_files after every commit"
    changed_ms: int = 0
    read: set[int] = field(default_factory=set)

    @property
    def newest_version(self) -> int:
        """The version that Lakewright has reached at least once it knows the newest change."""
        return self.changed_ms

    def others_rewrite_bytes(self, policy: Policy) -> int:
        """Return the bytes that Iceberg's own rule would have rewritten after every commit."""
        commits = tuple(
            Commit(number, number, "APPEND", tuple(_files(number, added)))
            for number, added in enumerate(self.added_by_commit)
        )
        return replay_peer(CommitTrace(commits=commits), policy, _RULE).bytes_rewritten


def add_new_snapshots(sums: IcebergLogSums, table: "Table") -> None:
    """Add the snapshots of main that are not in the sums yet, oldest first."""
    from pyiceberg.table.snapshots import ancestors_of  # noqa: PLC0415 - half a second to import

    chain = ancestors_of(table.current_snapshot(), table.metadata)
    for snapshot in [one for one in chain if one.snapshot_id not in sums.read][::-1]:
        _add(sums, table, snapshot)
        sums.read.add(snapshot.snapshot_id)
    sums.changed_ms = table.metadata.last_updated_ms


def _add(sums: IcebergLogSums, table: "Table", snapshot: "Snapshot") -> None:
    from pyiceberg.manifest import ManifestEntryStatus  # noqa: PLC0415 - half a second to import

    changes = [
        entry
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        if entry.snapshot_id == snapshot.snapshot_id
    ]
    added = [entry.data_file for entry in changes if entry.status == ManifestEntryStatus.ADDED]
    removed = [entry.data_file for entry in changes if entry.status == ManifestEntryStatus.DELETED]
    for file in removed:
        del sums.live[file.file_path]
    sums.live.update({file.file_path: file.file_size_in_bytes for file in added})
    if removed:
        sums.rewrites += 1
        sums.files_replaced += len(removed)
        sums.bytes_replaced += sum(file.file_size_in_bytes for file in removed)
    elif added:
        sums.commits += 1
        sums.files_added += len(added)
        sums.bytes_added += sum(file.file_size_in_bytes for file in added)
        partitions: dict[str, list[int]] = defaultdict(list)
        for file in added:
            partitions[json.dumps({"partition": repr(file.partition)})].append(file.file_size_in_bytes)
        sums.added_by_commit.append(dict(partitions))


def _files(commit: int, added: dict[str, list[int]]) -> list[DataFile]:
    return [
        DataFile(f"{commit}-{partition}-{number}", size, PartitionKey(partition))
        for partition, sizes in added.items()
        for number, size in enumerate(sizes)
    ]
