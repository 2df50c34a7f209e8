"""Gain that merging still offers: files beyond those that would do, and the squared shortfall that would go with them.

This is entropy minus the best layout's of the same bytes, so one file alone has none, however small it is.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from shared.layout.partition_stats import PartitionStats


@dataclass(frozen=True, slots=True)
class Excess:
    """Excess of one partition, or of many added up; the files of two partitions cannot be merged.

    files: live files beyond the best layout's; shortfall: the squared shortfall (bytes^2) that it would remove.
    """

    files: int = 0
    shortfall: int = 0

    @staticmethod
    def of(partitions: Iterable[PartitionStats], target_bytes: int) -> "Excess":
        """Add up what each of these partitions has; a merge would undo the clustering of a Z-cube, so there is none."""
        found = [one for one in partitions if not one.cube_files]
        return Excess(
            sum(one.spare_files(target_bytes) for one in found), sum(one.excess(target_bytes) for one in found)
        )

    def __add__(self, other: "Excess") -> "Excess":
        return Excess(self.files + other.files, self.shortfall + other.shortfall)

    def __sub__(self, other: "Excess") -> "Excess":
        return Excess(self.files - other.files, self.shortfall - other.shortfall)

    def ratio(self, files: int, target_bytes: int) -> float:
        """Return the root of the excess per file as a share of the target: 0 is as compact as possible, 1 is worst."""
        # Division of integers is rounded once, whatever their size.
        return math.sqrt(max(0, self.shortfall) / files) / target_bytes if files else 0.0


NO_EXCESS = Excess()
