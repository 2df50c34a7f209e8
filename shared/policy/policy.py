"""A table's policy: values with a unit, a default and a reason.

`Policy` is the whole that decisions use; a `PolicyLayer` holds the values that one source sets. `properties` reads
table properties into layers.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from shared.errors import InvalidInput
from shared.policy.levels import SMALL_LEVELS, SizeLevels, build_size_levels
from shared.policy.row_order import RowOrder, parse_sort_columns
from shared.policy.traits import NO_TRAITS, NOTHING_LEARNED, LearnedValues, TableTraits
from shared.typed_json import from_json, plain_values, to_json

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class MaxMode(StrEnum):
    """The heaviest mode that automatic rewrites may have: minor leaves the top level of small files alone."""

    MINOR = "minor"
    MAJOR = "major"


class Priority(StrEnum):
    """Band that a table's automatic rewrites wait in."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class JobOrder(StrEnum):
    """Order of a tenant's jobs: of most benefit per cost first, or of the table rewritten longest ago."""

    BENEFIT = "benefit"
    BALANCED = "balanced"


class WindowWork(StrEnum):
    """Jobs that wait for the work window: all, or heavy ones, which are all but merges of small files and metadata."""

    ALL = "all"
    HEAVY = "heavy"


class BudgetWork(StrEnum):
    """Jobs that the limits of their table hold: all, or none of a partition with too many small files."""

    ALL = "all"
    UNCROWDED = "uncrowded"


class DmlPolicy(StrEnum):
    """Treatment of partitions that MERGE, UPDATE and DELETE are working on, whose commits ours could abort."""

    NEVER = "never"
    DEFER = "defer"
    ALWAYS = "always"


class PortablePaths(StrEnum):
    """When files on paths that engines spell in different ways (`shared.paths.data_paths`) are rewritten even alone.

    With auto only where a person requests a forced or a full rewrite; merged files get a plain path anyway.
    """

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class RowGroupCopy(StrEnum):
    """Permission to copy row groups as bytes: with auto where that is exact and leaves files that read well."""

    AUTO = "auto"
    NEVER = "never"


class Proofread(StrEnum):
    """Rewrites that are compared with their inputs, by a reader that had no part in them, before they are committed.

    With new: the rows of every group that was encoded, the bytes of every copy, and the rows of the first copy of each
    kind. With always the rows of copies as well. Strict is always, and refuses what no reader can compare.
    """

    NEW = "new"
    ALWAYS = "always"
    STRICT = "strict"
    NEVER = "never"


class ClusteringOrder(StrEnum):
    """Order of files that a rewrite keeps: none (files are packed by size), or their event times."""

    NONE = "none"
    TIME = "time"


class ClusterMode(StrEnum):
    """How a table is clustered: not at all, by its format's own OPTIMIZE, or into cells."""

    OFF = "off"
    ON = "on"
    CELLS = "cells"

    @classmethod
    def _missing_(cls, value: object) -> "ClusterMode | None":
        """Read what earlier releases wrote, a boolean."""
        return {True: cls.ON, False: cls.OFF}.get(value) if isinstance(value, bool) else None


class KeyScope(StrEnum):
    """Where a primary key is unique: in the table, so that partitions never share one, or in each partition."""

    TABLE = "table"
    PARTITION = "partition"


_BUDGETS = ("budget", "budget_work", "max_write_amplification")
_LIMITS = ("weight", "max_concurrent_jobs", "quota", "queue", "work_window", "window_work", *_BUDGETS)
QUEUEING = frozenset({"priority", "job_order", "read_weight", "max_job_wait_s", *_LIMITS})
"""Fields of a policy that bear on the queue alone, and not on what is counted or planned: a change of their values
applies to jobs that are queued from then on, and to a table's limits at once."""


@dataclass(frozen=True)
class Policy:
    """The values in force for one table; sizes in bytes, durations in seconds, None meaning off.

    They are as configured, except that a table which may not be rewritten automatically is not `enabled`. `traits` and
    `learned` are not configured.
    """

    enabled: bool = True
    target_bytes: int = 128 * MIB
    fan_in: int = 8
    full_file_threshold: Fraction = Fraction(3, 4)
    tolerance: Fraction = Fraction(15, 100)
    min_input_files: int = 8
    max_small_files: int = 1000
    # Readers are as fast as before for five minutes more; a table that commits each minute has half as many rewrites.
    max_job_wait_s: int | None = 300
    idle_compaction_after_s: int | None = 6 * 3600
    full_rewrite_interval_s: int | None = None
    compact_interval_s: int | None = None
    delete_ratio_threshold: Fraction | None = Fraction(1, 10)
    time_window_s: int | None = None
    max_mode: MaxMode = MaxMode.MAJOR
    max_bytes_per_job: int = 16 * GIB
    filter: str | None = None
    priority: Priority = Priority.NORMAL
    weight: Fraction = Fraction(1)
    max_concurrent_jobs: int | None = None
    quota: Fraction | None = None
    queue: str = "default"
    work_window: str | None = None
    window_work: WindowWork = WindowWork.ALL
    budget: str | None = None
    max_write_amplification: Fraction | None = None
    budget_work: BudgetWork = BudgetWork.ALL
    dml_policy: DmlPolicy = DmlPolicy.DEFER
    max_write_contention: Fraction = Fraction(3, 10)
    portable_paths: PortablePaths = PortablePaths.AUTO
    row_group_copy: RowGroupCopy = RowGroupCopy.AUTO
    proofread: Proofread = Proofread.NEW
    clustering_order: ClusteringOrder = ClusteringOrder.NONE
    sort_by: str | None = None
    zorder_by: str | None = None
    max_depth: int = 4
    vacuum: bool = False
    retain_s: int | None = None
    min_retain_s: int = 7 * 86_400
    reclaim_after_s: int | None = None
    vacuum_every_s: int = 86_400
    orphans_every_s: int | None = 7 * 86_400
    checkpoint_every: int | None = None
    rewrite_manifests_at: int | None = None
    compute_statistics_at: Fraction | None = None
    merge_deletes_at: int | None = None
    convert_deletes_at: int | None = None
    yield_to_writers: bool = False
    primary_key: str | None = None
    sequence_by: str | None = None
    delete_marker: str | None = None
    key_scope: KeyScope = KeyScope.TABLE
    deduplicate_every_s: int = 86_400
    delete_rows_after: str | None = None
    delete_rows_every_s: int = 86_400
    # None: as often as reads are reported (see `LearnedValues`), and 1 where none are.
    read_weight: Fraction | None = None
    job_order: JobOrder = JobOrder.BENEFIT
    cluster: ClusterMode = ClusterMode.OFF
    cluster_by: str | None = None
    cluster_threshold: Fraction = Fraction(1, 4)
    index: bool = False
    index_every_s: int = 60
    index_sample: Fraction | None = None
    index_zone: str = ""  # In which days begin for the writers of an indexed table; empty: not known.
    compact_every_commits: int | None = None
    full_every_commits: int | None = None
    full_every_delete_files: int | None = None
    # Whether no one has set the fan-in (see `apply`), so that the levels may be fitted to the table's files.
    fits_levels: bool = True
    # Whether the target is chosen for the table (see `decider.state.target_fit`); `target_bytes` is the one in force.
    fits_target: bool = False
    traits: TableTraits = NO_TRAITS
    learned: LearnedValues = NOTHING_LEARNED

    def __post_init__(self) -> None:
        if self.full_file_threshold * self.fan_in <= 1:
            raise InvalidInput(
                f"full-file-threshold {float(self.full_file_threshold):g} must exceed 1/fan-in = {1 / self.fan_in:g}: "
                "otherwise a file counts as full before it leaves the top level",
                field="full-file-threshold",
            )
        if self.quota is not None and self.max_concurrent_jobs is not None:
            raise InvalidInput(
                "quota and max-concurrent-jobs are two spellings of one limit: set one of them", field="quota"
            )
        if self.primary_key is not None and self.delete_rows_after is not None:
            raise InvalidInput(
                "delete-rows-after could delete the newest row of a key before an older one, which would be the newest "
                "again: set either primary-key or delete-rows-after",
                field="delete-rows-after",
            )
        orders = (self.sort_by, self.zorder_by, self.clustering_order is ClusteringOrder.TIME or None)
        if sum(order is not None for order in orders) > 1:
            raise InvalidInput(
                "sort-by, zorder-by and clustering-order = time are three orders of one table: set one of them",
                field="sort-by",
            )

    def __hash__(self) -> int:
        # Of whole numbers alone: to hash all the fractions takes as long as to decide.
        return hash((self.enabled, self.target_bytes, self.fan_in, self.min_input_files, self.max_small_files))

    @cached_property
    def size_levels(self) -> SizeLevels:
        """The level bounds that this policy implies; kept, because every file of every commit needs them."""
        learned = self.learned
        typical_bytes = learned.typical_file_bytes if self.fits_levels else 0
        factors = (learned.shrink, learned.full_shrink)
        return build_size_levels(self.target_bytes, self.fan_in, self.full_file_threshold, *factors, typical_bytes)

    @property
    def sort_order(self) -> RowOrder | None:
        """Order of the rows of files that are full, None where the table has none."""
        named = self.sort_by or self.zorder_by
        return None if named is None or not self.traits.orders_rows else _sort_order(named, self.zorder_by is not None)

    @property
    def is_ordered(self) -> bool:
        """True if a table keeps its files and rows in the order of time."""
        return self.clustering_order is ClusteringOrder.TIME and self.traits.orders_rows

    @property
    def clusters(self) -> bool:
        """True if a clustered table is rewritten: by its format's own OPTIMIZE or into cells, and by nothing else."""
        return self.cluster is not ClusterMode.OFF and self.traits.is_clustered

    @property
    def names_cells(self) -> bool:
        """True if a table whose format has no `CLUSTER BY` is to be kept in cells of the columns that are named."""
        return self.cluster is ClusterMode.CELLS and self.cluster_by is not None

    @property
    def has_cells(self) -> bool:
        """True if it is kept in cells."""
        return self.clusters and self.cluster is ClusterMode.CELLS

    @property
    def indexes(self) -> bool:
        """True if the index of a table is optimized, and its files are merged by nothing else."""
        return self.index and self.traits.is_indexed

    @property
    def has_own_layout(self) -> bool:
        """True if exact rewrites leave the table's files alone, because its format orders them itself."""
        return self.traits.is_clustered or self.traits.is_indexed

    def runs(self, kind: str) -> bool:
        """Return whether there are engines that run jobs of this kind on tables of this format."""
        return not self.traits.job_kinds or kind in self.traits.job_kinds.split()

    @property
    def automatic_levels(self) -> int:
        """How many levels, from the smallest on, automatic rewrites may touch."""
        return SMALL_LEVELS if self.max_mode is MaxMode.MAJOR else SMALL_LEVELS - 1

    @property
    def has_key(self) -> bool:
        """True if older rows of a key are removed."""
        return self.primary_key is not None and self.sequence_by is not None

    @property
    def counts_commits(self) -> bool:
        """True if the number of commits to a partition can trigger a rewrite."""
        return self.compact_every_commits is not None or self.full_every_commits is not None

    @property
    def retention_s(self) -> int:
        """How long removed files stay in the store at least."""
        return max(self.retain_s or 0, self.min_retain_s, self.traits.own_retention_s)

    @property
    def for_manual_rewrite(self) -> "Policy":
        """The policy of a full or forced rewrite that a person requests: files leave harmful paths, unless never."""
        if self.portable_paths is PortablePaths.AUTO:
            return replace(self, portable_paths=PortablePaths.ALWAYS)
        return self

    def with_traits(self, **traits: Any) -> "Policy":
        """Return this policy for a table that has these traits, too."""
        return replace(self, traits=replace(self.traits, **traits))

    def fitted_to(self, typical_file_bytes: int) -> "Policy":
        """Return this policy for a table whose new files typically have this size."""
        return replace(self, learned=replace(self.learned, typical_file_bytes=typical_file_bytes))

    @cached_property
    def version(self) -> str:
        """Short digest of all values: decisions name the policy they were made under.

        A field counts only where it differs from its default, so that a release that adds one has equal versions for
        equal values, and deciders of two releases do not rebuild each other's tables. The bounds of the levels always
        count: partitions that were counted under other ones must not be mixed with these.
        """
        return _digest(self)

    @cached_property
    def state_version(self) -> str:
        """The same of the values that a table's state depends on: a change of any other has no table counted again."""
        return _digest(self, QUEUEING)

    def encode(self) -> str:
        """Write the policy as JSON text; fractions are written as `n/d`."""
        return self._encoded

    @cached_property
    def _encoded(self) -> str:
        return _encoded(self)

    @staticmethod
    def decode(text: str) -> "Policy":
        """Read what `encode` wrote."""
        return from_json(Policy, text)


@lru_cache(maxsize=1_024)
def _sort_order(named: str, is_interleaved: bool) -> RowOrder:  # noqa: FBT001 - cached by position
    return RowOrder(parse_sort_columns(named), is_interleaved)


@lru_cache(maxsize=1_024)
def _encoded(policy: Policy) -> str:
    """Write a policy as text, once: every entry of the ledger carries it."""
    return to_json(policy, is_complete=True)


@lru_cache(maxsize=2_048)
def _digest(policy: Policy, without: frozenset[str] = frozenset()) -> str:
    """Digest of the policy, computed once: every refresh of a table compares it."""
    stated = {name: value for name, value in plain_values(policy).items() if name not in without}
    text = json.dumps([policy.size_levels.floors, stated], sort_keys=True)
    return hashlib.blake2b(f"{_STATE_FORM}{text}".encode(), digest_size=4).hexdigest()


_STATE_FORM = 3
"""Form of the rolling states that belong to a policy; another one has every table rebuilt. 2: idle-compacted files
count, and windows. 3: Z-cube files count, and the protocol is kept."""


@dataclass(frozen=True, slots=True)
class PropertyIssue:
    """A property that could not be used: its name, its value, and the reason.

    `is_blocking`: it keeps the last good policy in effect; a property without an equivalent is only shown.
    """

    property: str
    value: str
    reason: str
    is_blocking: bool = True


@dataclass(frozen=True, slots=True)
class PolicyLayer:
    """Values that one source (a request, a table, a tenant, the service) sets, by field, with the property names."""

    values: Mapping[str, Any] = field(default_factory=dict)
    property_names: Mapping[str, str] = field(default_factory=dict)
    issues: tuple[PropertyIssue, ...] = ()


def apply(base: Policy, *layers: PolicyLayer) -> Policy:
    """Return `base` with the values of the layers laid over it, the later ones winning.

    A fan-in that anyone sets fixes the levels, a target that is None leaves it to be chosen. Raises InvalidInput when
    values that are fine alone contradict each other.
    """
    values: dict[str, Any] = {}
    for layer in layers:
        values.update(layer.values)
    if "fan_in" in values:
        values["fits_levels"] = False
    if "target_bytes" in values:
        values["fits_target"] = values["target_bytes"] is None
        values["target_bytes"] = values["target_bytes"] or base.target_bytes
    return replace(base, **values) if values else base
