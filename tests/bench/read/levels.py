"""A partition after thousands of small commits, without writing any: the planner and the rule of copying are real.

Only sizes are computed: a copy has the row groups and the bytes of its inputs, an encoded output has one row group.
What footers and compression change is left out: a few percent of the bytes. `rules.py` writes real files.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from actor.formats.delta.copy_choice import DeltaCandidate
from actor.formats.delta.log import TableShape
from actor.formats.parquet.copy_choice import reason_to_encode
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits
from actor.formats.parquet.footer_summary import FooterSummary
from shared.layout.planner import FileGroup, plan, plan_idle_compaction
from shared.policy.policy import KIB, Policy
from shared.table import DataFile, PartitionKey
from tests.bench.read.row_groups import Layout
from tests.bench.read.rows import COLUMNS
from tests.bench.read.stream import SIGMA

PARTITION = PartitionKey("{}")
_SHAPE = TableShape(
    json.dumps({"metaData": {"id": "u", "schemaString": '{"fields":[]}', "partitionColumns": []}}),
    json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
)


@dataclass(slots=True)
class SimulatedPartition:
    """Live files, and the row groups of each in bytes; bytes that were copied and decoded so far."""

    policy: Policy
    limits: CopyLimits = DEFAULT_LIMITS
    files: dict[str, DataFile] = field(default_factory=dict)
    row_groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    copied_bytes: int = 0
    decoded_bytes: int = 0
    rewrites: int = 0

    @property
    def layout(self) -> Layout:
        """Sizes of files and row groups."""
        sizes = sorted(size for groups in self.row_groups.values() for size in groups)
        return Layout(tuple(sorted(file.size_bytes for file in self.files.values())), tuple(sizes))

    def commit(self, name: str, size: int) -> None:
        """Add one file of one row group, and rewrite what the levels permit."""
        self._add(DataFile(name, size, PARTITION), (size,))
        for group in plan(PARTITION, list(self.files.values()), self.policy).groups:
            self._rewrite(group)

    def compact_idle(self) -> None:
        """Rewrite the small files of a partition that gets no more commits."""
        for group in plan_idle_compaction(PARTITION, list(self.files.values()), self.policy).groups:
            self._rewrite(group)

    def _add(self, file: DataFile, row_groups: tuple[int, ...]) -> None:
        self.files[file.path], self.row_groups[file.path] = file, row_groups

    def _rewrite(self, group: FileGroup) -> None:
        for file in group.files:
            del self.files[file.path]
        inputs = [self.row_groups.pop(file.path) for file in group.files]
        codecs = ("snappy",) * len(COLUMNS)
        summaries = [FooterSummary(codecs=codecs, row_groups=len(one), data_bytes=sum(one)) for one in inputs]
        candidate = DeltaCandidate(
            shape=_SHAPE,
            mode=group.mode,
            bytes=group.bytes,
            full_bytes=self.policy.size_levels.full_bytes,
            drops_rows=False,
            files=summaries,
        )
        is_copied = reason_to_encode(candidate, self.limits) is None
        self.rewrites += 1
        self.copied_bytes += group.bytes if is_copied else 0
        self.decoded_bytes += 0 if is_copied else group.bytes
        output = DataFile(f"rewritten-{self.rewrites}", group.bytes, PARTITION, tags=group.tags)
        self._add(output, tuple(size for one in inputs for size in one) if is_copied else (group.bytes,))


def commit_sizes(commits: int, file_kib: int, *, seed: int) -> Iterator[int]:
    """Return the bytes of the files of small commits, distributed as those that are really written."""
    dice = random.Random(seed)
    return (max(KIB, int(file_kib * KIB * dice.lognormvariate(0, SIGMA))) for _ in range(commits))


def simulate(commits: int, file_kib: int, policy: Policy, *, seed: int) -> SimulatedPartition:
    """Return a partition after so many commits of one file each."""
    partition = SimulatedPartition(policy)
    for number, size in enumerate(commit_sizes(commits, file_kib, seed=seed)):
        partition.commit(f"written-{number}", size)
    return partition
