"""Advice about a table's policy as it is stored: the change, its proof, what became of it, and how it turned out.

Costs are core-seconds, as what-if counts them (`decider.whatif.comparison`); times are milliseconds since 1970.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shared.table import TableId
from shared.typed_json import from_json, to_json


class AdviceStatus(StrEnum):
    """Status of an advice; `applying`: a job is to alter the table; an applied one is judged later."""

    OPEN = "open"
    APPLYING = "applying"
    DISMISSED = "dismissed"
    APPLIED = "applied"
    JUDGED = "judged"


@dataclass(frozen=True, slots=True)
class ReplayedCost:
    """A history replayed under one policy: cost of rewriting and of opening files, mean live files, bytes rewritten.

    storage_s: what the files cost in the store, where that is compared.
    """

    write_s: float
    read_s: float
    files_mean: float
    bytes_rewritten: int
    storage_s: float = 0.0

    @property
    def cost_s(self) -> float:
        """Cost in core-seconds."""
        return self.write_s + self.read_s + self.storage_s


@dataclass(frozen=True, slots=True)
class OrderEvidence:
    """An order by a column: mean share of the live bytes that filters read, as these are and once they are sorted.

    in_cells: it is an order of cells, and `column` names all of their columns as SQL does.
    """

    column: str
    share_now: float
    share_sorted: float
    bytes: int
    in_cells: bool = False


@dataclass(frozen=True, slots=True)
class HeldEvidence:
    """Files in the store that no version of the last `retention_s` seconds needs."""

    files: int
    bytes: int
    retention_s: int


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """Commits after the newest checkpoint, and its version; -1 without any."""

    commits: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class BoundsEvidence:
    """A column without bounds: share of the reads with filters that compare it, and the files that each opens.

    files: all live ones. former: the properties that leave it out, empty where they are not set.
    """

    column: str
    share_of_reads: float
    files_opened: float
    files: int
    former: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The replays that an advice rests on: which commits, under the policy in effect, and under the advised one.

    `hours`: length of the replayed time, from the first commit until the analysis. half_share: share of the cost that
    the change saves over the half of the commits in which it saves less. order: the order that is advised, if any; the
    costs are of reads with filters and of sorting then, and the halves are halves of the files. held: what the vacuum
    that is advised would delete; the costs are of storage then. bounds: the column that is to get bounds; what that
    saves is not known then, and both costs are of the reads that compare it. log: the log that is to get checkpoints;
    the costs are of opening the table.
    """

    first_version: int
    last_version: int
    commits: int
    hours: float
    queries_per_hour: float
    current: ReplayedCost
    advised: ReplayedCost
    half_share: float
    order: OrderEvidence | None = None
    held: HeldEvidence | None = None
    bounds: BoundsEvidence | None = None
    log: LogEvidence | None = None

    @property
    def versions(self) -> tuple[int, int]:
        """First and last version replayed."""
        return self.first_version, self.last_version

    @property
    def saved_share(self) -> float:
        """Share of the cost that the change promises to save: the smallest of the whole and of its halves.

        The best of many settings owes some of its gain to chance, and a load changes: the smallest is kept.
        """
        return min(1 - self.advised.cost_s / self.current.cost_s, self.half_share) if self.current.cost_s else 0.0

    @property
    def saved_s_per_day(self) -> float:
        """Core-seconds that the change promises to save in a day."""
        return self.current.cost_s * self.saved_share / self.hours * 24


@dataclass(frozen=True, slots=True)
class Judgement:
    """Measured effect of an applied advice, over the commits since.

    former_s: cost under the former policy, by replay; advised_s: under the advised one, by replay; actual_s: cost of
    the table as it was, by its log, rewrites included.
    """

    at_ms: int
    commits: int
    hours: float
    predicted_share: float
    former_s: float
    advised_s: float
    actual_s: float

    @property
    def saved_share(self) -> float:
        """Share of the cost that was saved; negative if the table costs more than it would have."""
        return 1 - self.actual_s / self.former_s if self.former_s else 0.0


@dataclass(frozen=True, slots=True)
class Advice:
    """A change of a table's policy that would have served it better.

    former: the policy in effect before, as `Policy.encode` writes it. applied_version: newest version read when it was
    applied; by_owner: its owner changed the table's own properties. job: the job that alters the table, empty where
    none does. problem: why the last attempt to alter it failed. format: the table's, by its name.
    """

    table: TableId
    at_ms: int
    change: Mapping[str, str]
    former: str
    message: str
    proof: Evidence
    status: AdviceStatus = AdviceStatus.OPEN
    changed_ms: int = 0
    applied_version: int = -1
    by_owner: bool = False
    job: str = ""
    problem: str = ""
    judgement: Judgement | None = None
    format: str = ""

    @property
    def id(self) -> str:
        """Identity of the change on its table: an advice that proposes the same again has the same."""
        return hashlib.blake2b(
            f"{self.table}{json.dumps(sorted(self.change.items()))}".encode(), digest_size=6
        ).hexdigest()

    def encode(self) -> str:
        """Write the advice as JSON text."""
        return to_json(self)

    @staticmethod
    def decode(raw: bytes | str) -> "Advice":
        """Read what `encode` wrote; fields of another release are left out."""
        return from_json(Advice, raw)


@dataclass(frozen=True, slots=True)
class Analysis:
    """When a table was analyzed last, at which version, and why that failed (empty: it did not)."""

    at_ms: int
    version: int
    problem: str = field(default="")

    def encode(self) -> str:
        """Write the analysis as JSON text."""
        return to_json(self)

    @staticmethod
    def decode(raw: bytes | str) -> "Analysis":
        """Read what `encode` wrote."""
        return from_json(Analysis, raw)
