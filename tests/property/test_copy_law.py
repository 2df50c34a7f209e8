"""The law of copied row groups, on random streams with the real planner: the levels decode a byte once.

A rewrite whose output is final may decode it once more: an idle compaction, which happens to a byte at most once, and
each full rewrite that someone requests. What is copied there has large row groups, what is encoded has one row group.

The promotion rule holds with measured sizes, too: outputs shrink as they like, and each missed prediction costs one
rewrite more.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.formats.delta.copy_choice import DeltaCandidate
from actor.formats.delta.log import TableShape
from actor.formats.parquet.copy_choice import reason_to_encode
from actor.formats.parquet.copy_rules import CopyLimits, EncodeReason
from actor.formats.parquet.footer_summary import FooterSummary
from decider.decide.calibration import UNCALIBRATED, Calibration
from shared.jobs.payload import RewriteKind
from shared.layout.partition_stats import stats_of_files
from shared.layout.planner import FileGroup, RewriteMode, plan, plan_rewrite
from shared.partitions import WHOLE_TABLE
from shared.policy.levels import SMALL_LEVELS
from shared.policy.policy import KIB, MIB, Policy
from shared.table import DataFile, PartitionKey
from tests.support.decisions import decide_on_state
from tests.support.policies import policies

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")


PARTITION = PartitionKey("{}")
COLUMNS = 7
FINAL = {RewriteMode.IDLE: RewriteKind.IDLE, RewriteMode.FULL: RewriteKind.FULL}
FOOTER_BYTES = 60
UNLIMITED = 1 << 60
SHAPE = TableShape(
    json.dumps({"metaData": {"id": "u", "schemaString": '{"fields":[]}', "partitionColumns": []}}),
    json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
)


@dataclass
class Stored:
    """A file: its row groups, and how often rewrites of each kind decoded the bytes of each ingested file in it.

    mode: of the rewrite that wrote it; None: its writer did, as a single file.
    """

    file: DataFile
    row_groups: int
    decoded: dict[str, Counter[RewriteKind]]
    mode: RewriteMode | None = None
    was_copied: bool = False

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
        self.stored[name] = Stored(DataFile(name, size_bytes, PARTITION), 1, {name: Counter()})

    def compact(self, kind: RewriteKind = RewriteKind.LEVELS) -> None:
        files = [one.file for one in self.stored.values()]
        for group in plan_rewrite(kind, PARTITION, files, self.policy).groups:
            self._rewrite(group)

    def _rewrite(self, group: FileGroup) -> None:
        inputs = [self.stored.pop(file.path) for file in group.files]
        full_bytes = self.policy.size_levels.full_bytes
        candidate = DeltaCandidate(
            shape=SHAPE,
            mode=group.mode,
            bytes=group.bytes,
            full_bytes=full_bytes,
            drops_rows=False,
            files=[one.summary for one in inputs],
        )
        reason = reason_to_encode(candidate, self.limits)
        kind = FINAL.get(group.mode, RewriteKind.LEVELS)
        self.reasons[f"{kind} {reason or 'copied'}"] += 1
        size, row_groups, times = group.bytes, sum(one.row_groups for one in inputs), Counter[RewriteKind]()
        if reason is not None:
            row_groups, times = 1, Counter([kind])
            size = max(int(size * self.shrink), full_bytes) if size >= full_bytes else size
        decoded = {name: old + times for one in inputs for name, old in one.decoded.items()}
        file = DataFile(f"r{next(self.names)}", size, PARTITION, tags=group.tags)
        self.stored[file.path] = Stored(file, row_groups, decoded, group.mode, was_copied=reason is None)


sizes = st.one_of(st.integers(100, 2_000_000), st.integers(100, 3_000), st.integers(30_000, 66_000))
streams = st.lists(st.lists(sizes, min_size=1, max_size=5), max_size=20)


def play(table: Table, commits: list[list[int]], dice: random.Random) -> Iterator[Counter[RewriteKind]]:
    """Ingest the commits, and then steadily files around one size, enough for a full file or two.

    In half of the runs the partition is idle now and then, or someone requests a full rewrite. Yields after each commit
    how often either happened until then.
    """
    size, files = dice.choice([(table.policy.target_bytes // 8, 2), (table.policy.target_bytes // 50, 8)])
    steady = [[max(100, size // dice.randint(1, 3)) for _ in range(files)] for _ in range(20)]
    happened: Counter[RewriteKind] = Counter()
    chances = dice.choice([{}, {RewriteKind.IDLE: 0.1, RewriteKind.FULL: 0.03}])
    for added in commits + steady:
        for size in added:
            table.ingest(size)
        table.compact()
        for kind, chance in chances.items():
            if dice.random() < chance:
                table.compact(kind)
                happened[kind] += 1
        yield happened


def reads_well(one: Stored, bound: int) -> bool:
    return one.row_groups * bound <= one.summary.data_bytes


def test_the_levels_decode_no_byte_twice_and_final_files_have_large_row_groups_or_one() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(policies(), streams, st.randoms(use_true_random=False), st.integers(50, 100))
    def law(policy: Policy, commits: list[list[int]], dice: random.Random, percent: int) -> None:
        bound = policy.target_bytes // dice.choice([8, 32])
        limits = CopyLimits(*dice.choice([(bound, 0), (0, bound // COLUMNS)]), max_column_chunks=UNLIMITED)
        bound, _ = limits.row_group_bound(COLUMNS)
        table = Table(policy, limits, Fraction(percent, 100))
        for happened in play(table, commits, dice):
            for one in table.stored.values():
                assert all(times[RewriteKind.LEVELS] <= 1 for times in one.decoded.values())
                assert all(times[RewriteKind.IDLE] <= 1 for times in one.decoded.values())
                assert all(times[RewriteKind.FULL] <= happened[RewriteKind.FULL] for times in one.decoded.values())
                seen["decoded again after an idle compaction"] += any(
                    times[RewriteKind.LEVELS] and times[RewriteKind.IDLE] for times in one.decoded.values()
                )
                if one.mode is not None and one.file.size_bytes >= policy.size_levels.full_bytes:
                    assert reads_well(one, bound)
                elif one.mode in FINAL:
                    assert reads_well(one, bound) or (one.row_groups == 1 and not one.was_copied)
        seen.update(table.reasons)

    law()
    print(f"groups by kind of rewrite and reason: {dict(seen)}")
    # A law says nothing where nothing happens: groups were copied, and groups were encoded.
    small = (EncodeReason.SMALL_ROW_GROUPS, EncodeReason.SMALL_COLUMN_CHUNKS)
    assert min(seen[f"{kind} copied"] for kind in RewriteKind) >= 1
    assert min(sum(seen[f"{kind} {reason}"] for reason in small) for kind in RewriteKind) >= 1
    assert min(sum(seen[f"{kind} {reason}"] for kind in RewriteKind) for reason in small) >= 1
    assert seen["decoded again after an idle compaction"] > 0


def test_no_copy_has_a_footer_beyond_the_limit_and_no_byte_is_decoded_more_often_than_there_are_levels() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(policies(), streams, st.randoms(use_true_random=False))
    def law(policy: Policy, commits: list[list[int]], dice: random.Random) -> None:
        limits = CopyLimits(policy.target_bytes // 32, 0, max_column_chunks=10 * COLUMNS)
        table = Table(policy, limits, Fraction(1))
        for happened in play(table, commits, dice):
            for one in table.stored.values():
                assert one.row_groups <= 10
                for times in one.decoded.values():
                    assert times[RewriteKind.LEVELS] <= SMALL_LEVELS
                    assert times[RewriteKind.IDLE] <= 1
                    assert times[RewriteKind.FULL] <= happened[RewriteKind.FULL]
        seen.update(table.reasons)

    law()
    print(f"groups by kind of rewrite and reason: {dict(seen)}")
    assert seen[f"{RewriteKind.LEVELS} {EncodeReason.LARGE_FOOTER}"] >= 50


POLICY = Policy(target_bytes=8 * MIB, fan_in=4, min_input_files=2, tolerance=Fraction(0))
SHARES = st.fractions(Fraction(1, 8), Fraction(9, 8))
STEPS = st.lists(
    st.tuples(st.lists(st.integers(1, 9 * MIB), min_size=1, max_size=8), SHARES, SHARES),
    min_size=1,
    max_size=30,
)


@dataclass(frozen=True)
class Story:
    """Of the oldest bytes in a file: how often they were rewritten, and how many levels predictions missed then."""

    rewrites: int = 0
    missed: int = 0


@given(STEPS)
def test_no_byte_is_rewritten_more_often_than_levels_and_counted_misses_allow(
    steps: list[tuple[list[int], Fraction, Fraction]],
) -> None:
    names = count()
    live: dict[str, DataFile] = {}
    stories: dict[str, set[Story]] = {}
    learned = UNCALIBRATED

    def take(size: int, reported: set[Story]) -> None:
        path = f"f{next(names)}"
        live[path], stories[path] = DataFile(path, size, WHOLE_TABLE), reported

    for sizes, below, filled in steps:
        for size in sizes:
            take(size, {Story()})
        policy = learned.applied_to(POLICY)
        size_levels = policy.size_levels
        # Both sides decide with the factor: the decider from the state, the actor from the files.
        verdict = decide_on_state(WHOLE_TABLE, stats_of_files(live.values(), size_levels), policy, 1)
        made = plan(WHOLE_TABLE, list(live.values()), policy)
        assert (verdict.prediction is not None) == bool(made.groups)
        for group in made.groups:
            is_filled = group.bytes >= size_levels.full_bytes
            output = max(1, int(group.bytes * (filled if is_filled else below)))
            short = size_levels.levels_below_target(
                largest_bytes=max(file.size_bytes for file in group.files), output_bytes=output
            )
            reported = {story for file in group.files for story in stories.pop(live.pop(file.path).path)}
            take(output, {Story(story.rewrites + 1, story.missed + short) for story in reported})
            learned = Calibration(
                runs=learned.runs + 1,
                merged_bytes=learned.merged_bytes + group.bytes * (not is_filled),
                merged_into_bytes=learned.merged_into_bytes + output * (not is_filled),
                filled_bytes=learned.filled_bytes + group.bytes * is_filled,
                filled_into_bytes=learned.filled_into_bytes + output * is_filled,
            )
        for path, reported in stories.items():
            level = size_levels.level(live[path].size_bytes)
            assert all(story.rewrites <= level + story.missed <= SMALL_LEVELS + story.missed for story in reported)


LEARNED = st.fractions(Fraction(1, 4), Fraction(1))


@given(LEARNED, LEARNED, st.lists(st.integers(1 * KIB, 5 * MIB), min_size=8, max_size=60))
def test_once_the_factors_are_learned_outputs_that_shrink_by_them_miss_no_level(
    below: Fraction, filled: Fraction, sizes: list[int]
) -> None:
    sums = 10**9
    into, filled_into = int(sums * below), int(sums * filled)
    policy = Calibration(10**6, 0, 0, 0, 0, sums, into, sums, filled_into).applied_to(POLICY)
    files = [DataFile(f"f{number}", size, WHOLE_TABLE) for number, size in enumerate(sizes)]
    for group in plan(WHOLE_TABLE, files, policy).groups:
        largest = max(file.size_bytes for file in group.files)
        # The factor is rounded down, but a little belief in 1 stays with it for ever.
        is_filled = group.bytes >= policy.size_levels.full_bytes
        share, learned = (filled, policy.learned.full_shrink) if is_filled else (below, policy.learned.shrink)
        real = max(share, learned)
        assert learned <= share + Fraction(1, 10**5)
        output = -(-group.bytes * real.numerator // real.denominator)
        assert policy.size_levels.levels_below_target(largest_bytes=largest, output_bytes=output) == 0
