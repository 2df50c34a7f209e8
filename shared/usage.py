"""Usage of cores and of the store by runs, measured by actors in whole numbers, so that sums are exact."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from shared.typed_json import JsonObject

_PREFIX = "usage_"


@dataclass(frozen=True, slots=True)
class Usage(JsonObject):
    """Use of cores, in milliseconds of one core, and of the store: bytes and requests.

    Of requests only what grows with the data is counted: a read for each file that is replaced, a write for each file
    that is written and for each commit.
    """

    core_ms: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    reads: int = 0
    writes: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Usage)))

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, one.name) - getattr(other, one.name) for one in fields(Usage)))

    def counters(self) -> dict[str, int]:
        """Return the counters of a table, and of all, that a run adds this to."""
        return {_PREFIX + name: count for name, count in self.encode().items()}

    @staticmethod
    def of_counters(counted: Mapping[str, int]) -> "Usage":
        """Return the sum of what runs have added to counters."""
        return Usage(*(counted.get(_PREFIX + one.name, 0) for one in fields(Usage)))


NOTHING_USED = Usage()
