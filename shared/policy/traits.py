"""Traits of a table under which its policy holds: stated by its log and its format, or learned from its rewrites.

No property sets them, and each field is written in one place; a policy without any is the one that was configured.
"""

from dataclasses import dataclass
from fractions import Fraction

from shared.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class TableTraits:
    """Traits that the log and the format state.

    refused: code of the refusal (see `shared.refusals`), empty if there is none. is_clustered: the table has `CLUSTER
    BY`, or its owner names columns for cells, so exact rewrites leave its files alone. is_indexed: it has an index on
    several columns, which they would destroy. job_kinds: kinds of jobs that may run, separated by spaces (empty: all);
    orders_rows: rewrites can sort rows or keep their order (see `shared.formats.support`). own_retention_s: for how
    long the table keeps removed files by its own properties and the format's, where that is longer than the retention
    of the policy.
    """

    refused: str = ""
    is_clustered: bool = False
    is_indexed: bool = False
    job_kinds: str = ""
    orders_rows: bool = True
    own_retention_s: int = 0


@dataclass(frozen=True, slots=True)
class LearnedValues:
    """Values learned from what a table's writers append, its rewrites bring, and its readers report.

    shrink, full_shrink: size of an output as a share of its inputs, for groups below and from a full file on (see
    `SizeLevels`); never above 1, which is the safe side. typical_file_bytes: size of new files, to which the levels are
    fitted unless the fan-in is set; 0: levels lie at T / k^i. read_weight: weight of the reported reads; None: there
    are none.
    """

    shrink: Fraction = Fraction(1)
    full_shrink: Fraction = Fraction(1)
    typical_file_bytes: int = 0
    read_weight: Fraction | None = None

    def __post_init__(self) -> None:
        for name, share in (("shrink", self.shrink), ("full_shrink", self.full_shrink)):
            if not 0 < share <= 1:
                raise InvalidInput(f"{name} {share} is no share: expected above 0, at most 1", field=name)


NO_TRAITS, NOTHING_LEARNED = TableTraits(), LearnedValues()
