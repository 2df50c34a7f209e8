"""The states of a table's partitions, counted file by file: what a rolling state must be equal to."""

from collections.abc import Iterable

from shared.layout.partition_stats import PartitionStats
from shared.layout.stats_sum import PartitionSums
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey


def count_live_files(files: Iterable[DataFile], policy: Policy) -> dict[PartitionKey, PartitionStats]:
    """Count all live files of a table into the states of its partitions."""
    sums = PartitionSums(policy)
    for file in files:
        sums.add(file)
    # A window that is among the newest in the end was so all the time, so that clamping once loses none of its files.
    return {partition: state.clamped() for partition, state in sums.stats().items()}
