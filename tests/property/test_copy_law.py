"""The law of copied row groups, on random streams with the real planner: bytes are decoded once."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.delta.copy_choice import CopyCandidate, CopyLimits, EncodeReason, reason_to_encode
from actor.formats.delta.footer_summary import FooterSummary
from actor.formats.delta.log import TableShape
from shared.layout.planner import FileGroup, plan, plan_idle_compaction
from shared.policy import KIB, Policy
from shared.table import DataFile, PartitionKey

PARTITION = PartitionKey("{}")
COLUMNS = 7
FOOTER_BYTES = 60
UNLIMITED = 1 << 60
SHAPE = TableShape(
    json.dumps({"metaData": {"id": "u", "schemaString": '{"fields":[]}', "partitionColumns": []}}),
    json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
)


@dataclass
class Stored:
    """A file: its row groups, and how often the bytes of each ingested file in it were decoded."""

    file: DataFile
    row_groups: int
    decoded: dict[str, int]
    is_single: bool  # As its writer wrote it.

    @property
    def summary(self) -> FooterSummary:
        data_bytes = max(1, self.file.size_bytes - FOOTER_BYTES)
        return FooterSummary(codecs=("snappy",) * COLUMNS, row_groups=self.row_groups, data_bytes=data_bytes)


@dataclass
class Table:
    """One partition under the planner; `shrink`: what encoding leaves of a full output, which stays full."""

    policy: Policy
    limits: CopyLimits
    shrink: Fraction
    stored: dict[str, Stored] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=count)
    reasons: Counter[str] = field(default_factory=Counter)

    def ingest(self, size_bytes: int) -> None:
        name = f"i{next(self.names)}"
        self.stored[name] = Stored(DataFile(name, size_bytes, PARTITION), 1, {name: 0}, is_single=True)

    def compact(self, *, idle: bool = False) -> None:
        files = [one.file for one in self.stored.values()]
        made = plan_idle_compaction(PARTITION, files, self.policy) if idle else plan(PARTITION, files, self.policy)
        for group in made.groups:
            self._rewrite(group)

    def _rewrite(self, group: FileGroup) -> None:
        inputs = [self.stored.pop(file.path) for file in group.files]
        full_bytes = self.policy.size_levels.full_bytes
        summaries = [one.summary for one in inputs]
        reason = reason_to_encode(CopyCandidate(SHAPE, group.bytes, full_bytes, False, files=summaries), self.limits)
        self.reasons[reason or "copied"] += 1
        size, row_groups, times = group.bytes, sum(one.row_groups for one in inputs), 0
        if reason is not None:
            row_groups, times = 1, 1
            size = max(int(size * self.shrink), full_bytes) if size >= full_bytes else size
        decoded = {name: old + times for one in inputs for name, old in one.decoded.items()}
        name = f"r{next(self.names)}"
        self.stored[name] = Stored(
            DataFile(name, size, PARTITION, tags=group.tags), row_groups, decoded, is_single=False
        )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    fan_in = draw(st.integers(2, 16))
    ratio = Fraction(draw(st.integers(51, 100)), 100)
    assume(ratio * fan_in > 1)
    return Policy(
        target_bytes=draw(st.sampled_from([64 * KIB, 100_003, 1 << 20])),
        fan_in=fan_in,
        full_file_threshold=ratio,
        tolerance=Fraction(draw(st.integers(0, 50)), 100),
        min_input_files=draw(st.integers(2, 12)),
    )


sizes = st.one_of(st.integers(100, 2_000_000), st.integers(100, 3_000), st.integers(30_000, 66_000))
streams = st.lists(st.lists(sizes, min_size=1, max_size=5), max_size=20)


def play(table: Table, commits: list[list[int]], dice: random.Random) -> Iterator[Table]:
    """Ingest the commits, and then steadily files around one size, enough for a full file or two."""
    size, files = dice.choice([(table.policy.target_bytes // 8, 2), (table.policy.target_bytes // 50, 8)])
    steady = [[max(100, size // dice.randint(1, 3)) for _ in range(files)] for _ in range(20)]
    for added in commits + steady:
        for size in added:
            table.ingest(size)
        table.compact()
        if dice.random() < 0.1:
            table.compact(idle=True)
        yield table


def test_no_byte_is_decoded_twice_on_its_way_to_a_full_file_and_full_files_have_large_row_groups() -> None:
    seen: Counter[str] = Counter()

    @given(policies(), streams, st.randoms(use_true_random=False), st.integers(50, 100))
    def law(policy: Policy, commits: list[list[int]], dice: random.Random, percent: int) -> None:
        bound = policy.target_bytes // dice.choice([8, 32])
        table = Table(policy, CopyLimits(bound, max_column_chunks=UNLIMITED), Fraction(percent, 100))
        for _ in play(table, commits, dice):
            for one in table.stored.values():
                assert max(one.decoded.values()) <= 1
                if one.file.size_bytes >= policy.size_levels.full_bytes and not one.is_single:
                    assert one.summary.data_bytes >= bound * one.row_groups
        seen.update(table.reasons)

    law()
    print(f"groups by reason: {dict(seen)}")
    # A law says nothing where nothing happens: groups were copied, and groups were encoded.
    assert min(seen["copied"], seen[EncodeReason.SMALL_ROW_GROUPS]) >= 50


def test_no_copy_has_a_footer_beyond_the_limit_and_no_byte_is_decoded_more_often_than_there_are_levels() -> None:
    seen: Counter[str] = Counter()

    @given(policies(), streams, st.randoms(use_true_random=False))
    def law(policy: Policy, commits: list[list[int]], dice: random.Random) -> None:
        limits = CopyLimits(policy.target_bytes // 32, max_column_chunks=10 * COLUMNS)
        table = Table(policy, limits, Fraction(1))
        for _ in play(table, commits, dice):
            for one in table.stored.values():
                assert one.row_groups <= 10
                assert max(one.decoded.values()) <= 7  # Once for each level, and once idle.
        seen.update(table.reasons)

    law()
    print(f"groups by reason: {dict(seen)}")
    assert seen[EncodeReason.LARGE_FOOTER] >= 50
