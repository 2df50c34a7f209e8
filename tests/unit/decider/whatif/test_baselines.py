"""Peers' rules act exactly where their sources say that they do: one file less, and they leave the partition alone."""

import pytest

from decider.whatif.baselines import HOUR_MS, PEERS, ObservedPartition
from decider.whatif.trace import CommitTrace, SimulatedTable
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import Commit, DataFile

TARGET = 1 << 20
POLICY = Policy(target_bytes=TARGET)
RULES = {rule.name: rule for rule in PEERS}


def merges(name: str, *sizes: int, rewritten_ms: int | None = 0, at_ms: int = 1) -> list[tuple[list[int], list[int]]]:
    """Return what a rule makes of a partition with files of these sizes: input sizes and output sizes of each merge."""
    table = SimulatedTable(POLICY, CommitTrace())
    added = tuple(DataFile(f"f{n:04d}", size, WHOLE_TABLE) for n, size in enumerate(sizes))
    (partition,) = table.apply(Commit(0, 0, "WRITE", added))
    look = ObservedPartition(partition, POLICY, at_ms, rewritten_ms)
    if not RULES[name].wants(look):
        return []
    return [([file.size_bytes for file in merge.inputs], list(merge.outputs)) for merge in RULES[name].propose(look)]


def test_delta_takes_whatever_is_below_the_target_and_leaves_bins_of_one() -> None:
    nearly = TARGET - 10
    assert merges("delta_optimize_each", 4, nearly, 6) == [([4, 6, nearly], [TARGET])]
    assert merges("delta_optimize_each", 11, nearly) == []
    assert merges("delta_optimize_each", 4, TARGET) == []


def test_auto_compaction_waits_for_50_files_of_at_most_half_of_the_target() -> None:
    assert merges("delta_auto_compaction", *[8] * 49) == []
    assert merges("delta_auto_compaction", *[8] * 49, TARGET // 2 + 1) == []
    assert merges("delta_auto_compaction", *[8] * 50, TARGET // 2 + 1) == [([8] * 50, [400])]


def test_iceberg_waits_for_5_files_or_more_than_a_target() -> None:
    assert merges("iceberg_defaults", *[8] * 4) == []
    assert merges("iceberg_defaults", *[8] * 4, 3 * TARGET // 4) == []
    assert merges("iceberg_defaults", *[8] * 5) == [([8] * 5, [40])]
    half = TARGET // 2
    assert merges("iceberg_defaults", half, half) == []
    assert merges("iceberg_defaults", half, half + 1) == [([half, half + 1], [TARGET + 1])]


@pytest.mark.parametrize(
    ("total", "outputs"),
    [
        (TARGET - 1, 1),
        (TARGET + TARGET // 20, 1),
        (TARGET + TARGET // 5, 2),
        (TARGET + 3 * TARGET // 4, 2),
        (10 * TARGET + TARGET // 2, 10),
        (10 * TARGET + 7 * TARGET // 8, 11),
    ],
)
def test_iceberg_spreads_a_remainder_where_outputs_grow_by_less_than_a_tenth(total: int, outputs: int) -> None:
    ((inputs, found),) = merges("iceberg_defaults", *[total // 20] * 20, total - total // 20 * 20)
    assert len(found) == outputs
    assert sum(inputs) == sum(found) == total


def test_glue_waits_for_100_files_below_three_quarters() -> None:
    assert merges("fold_100", *[8] * 99, TARGET) == []
    assert merges("fold_100", *[8] * 100) == [([8] * 100, [800])]


def test_amoro_packs_fragments_and_segments_apart() -> None:
    fragment, segment = TARGET // 8, TARGET // 8 + 1
    assert merges("amoro", *[fragment] * 11) == []
    assert merges("amoro", *[8] * 12) == [([8] * 12, [96])]
    # Fewer than a target of segments requests nothing; once fragments do, they are merged as well, by themselves.
    assert merges("amoro", segment, segment) == []
    assert merges("amoro", segment, segment, *[8] * 12) == [([segment] * 2, [2 * segment]), ([8] * 12, [96])]
    # A target of segments of which no two fit into one file requests nothing either.
    large = TARGET // 2 + 1
    assert merges("amoro", large, large) == []
    assert merges("amoro", *[TARGET // 2] * 2) == [([TARGET // 2] * 2, [TARGET])]


def test_amoro_merges_two_fragments_once_an_hour_has_passed() -> None:
    assert merges("amoro", 8, 8, at_ms=HOUR_MS) == []
    assert merges("amoro", 8, 8, at_ms=HOUR_MS + 1) == [([8, 8], [16])]
    assert merges("amoro", 8, at_ms=HOUR_MS + 1) == []


def test_raw_entropy_never_lets_two_small_files_be() -> None:
    assert merges("raw_mse", 8, 8) == [([8, 8], [16])]
    assert merges("raw_mse", 8) == []
