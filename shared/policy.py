"""A table's policy: values with a unit, a default and a reason.

`Policy` is the whole that decisions use; a `PolicyLayer` holds the values that one source sets. `properties` reads
table properties into layers.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from shared.errors import InvalidInput
from shared.layout.levels import SMALL_LEVELS, SizeLevels, build_size_levels
from shared.layout.row_order import RowOrder, parse_sort_columns

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class MaxMode(StrEnum):
    """The heaviest mode that automatic rewrites may have: minor leaves the top level of small files alone."""

    MINOR = "minor"
    MAJOR = "major"


class Priority(StrEnum):
    """Which band a table's automatic rewrites wait in."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class JobOrder(StrEnum):
    """Which of a tenant's jobs goes first: of most benefit per cost, or of the table rewritten longest ago."""

    BENEFIT = "benefit"
    BALANCED = "balanced"


class DmlPolicy(StrEnum):
    """What is done to partitions that MERGE, UPDATE and DELETE are working on, whose commits ours could abort."""

    NEVER = "never"
    DEFER = "defer"
    ALWAYS = "always"


class PortablePaths(StrEnum):
    """When files on paths that engines spell in different ways (`shared.data_paths`) are rewritten even alone.

    With auto only where a person requests a forced or a full rewrite; merged files get a plain path anyway.
    """

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class RowGroupCopy(StrEnum):
    """Whether a rewrite may copy row groups as bytes: with auto where that is exact and leaves files that read well."""

    AUTO = "auto"
    NEVER = "never"


class ClusteringOrder(StrEnum):
    """Which order of files a rewrite keeps: none (files are packed by size), or that of their event times."""

    NONE = "none"
    TIME = "time"


class KeyScope(StrEnum):
    """Where a primary key is unique: in the table, so that partitions never share one, or in each partition."""

    TABLE = "table"
    PARTITION = "partition"


@dataclass(frozen=True)
class Policy:
    """The values in force for one table; sizes in bytes, durations in seconds, None meaning off."""

    enabled: bool = True
    target_bytes: int = 128 * MIB
    fan_in: int = 8
    full_file_threshold: Fraction = Fraction(3, 4)
    tolerance: Fraction = Fraction(15, 100)
    min_input_files: int = 8
    max_small_files: int = 1000
    idle_compaction_after_s: int | None = 6 * 3600
    full_rewrite_interval_s: int | None = None
    delete_ratio_threshold: Fraction | None = Fraction(1, 10)
    time_window_s: int | None = None
    max_mode: MaxMode = MaxMode.MAJOR
    max_bytes_per_job: int = 16 * GIB
    filter: str | None = None
    priority: Priority = Priority.NORMAL
    weight: Fraction = Fraction(1)
    max_concurrent_jobs: int | None = None
    quota: Fraction | None = None
    queue: str | None = None
    dml_policy: DmlPolicy = DmlPolicy.DEFER
    max_write_contention: Fraction = Fraction(3, 10)
    portable_paths: PortablePaths = PortablePaths.AUTO
    row_group_copy: RowGroupCopy = RowGroupCopy.AUTO
    clustering_order: ClusteringOrder = ClusteringOrder.NONE
    sort_by: str | None = None
    zorder_by: str | None = None
    max_depth: int = 4
    vacuum: bool = False
    retain_s: int | None = None
    min_retain_s: int = 7 * 86_400
    vacuum_every_s: int = 86_400
    orphans_every_s: int | None = 7 * 86_400
    checkpoint_every: int | None = None
    rewrite_manifests_at: int | None = None
    primary_key: str | None = None
    sequence_by: str | None = None
    delete_marker: str | None = None
    key_scope: KeyScope = KeyScope.TABLE
    deduplicate_every_s: int = 86_400
    # None: as often as reads are reported (see `Calibration.read_weight`), and 1 where none are.
    read_weight: Fraction | None = None
    job_order: JobOrder = JobOrder.BENEFIT
    cluster: bool = False
    cluster_threshold: Fraction = Fraction(1, 4)
    index: bool = False
    index_every_s: int = 60
    index_sample: Fraction | None = None
    compact_every_commits: int | None = None
    full_every_commits: int | None = None
    full_every_delete_files: int | None = None
    # Learned from the table's own rewrites, not configured; never above 1, which is the safe side. The second is that
    # of groups that total a full file or more (see `SizeLevels`).
    shrink: Fraction = Fraction(1)
    full_shrink: Fraction = Fraction(1)
    # Whether no one has set the fan-in (see `apply`), so that the levels may be fitted to the table's files; and the
    # size to which they are, learned from the files that its writers append. 0: levels lie at T / k^i.
    fits_levels: bool = True
    typical_file_bytes: int = 0
    # Set only by the table's log: code of the refusal (see `shared.refusals`), empty if there is none.
    refused: str = ""
    # Set only by the table's log: it is clustered (`CLUSTER BY`), so exact rewrites leave its files alone.
    is_clustered: bool = False
    # Set only by the table's log: it has an index on several columns, which exact rewrites would destroy.
    is_indexed: bool = False
    # Set only by the table's format (see `shared.format_support`), and where the table is clustered: kinds of jobs that
    # may run, separated by spaces (empty: all), and whether rewrites can sort rows or keep their order.
    job_kinds: str = ""
    orders_rows: bool = True
    # Set only by the table's format: seconds for which the table keeps removed files by its own properties and those of
    # the format, where that is longer than the retention of the fields above.
    own_retention_s: int = 0

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
        orders = (self.sort_by, self.zorder_by, self.clustering_order is ClusteringOrder.TIME or None)
        if sum(order is not None for order in orders) > 1:
            raise InvalidInput(
                "sort-by, zorder-by and clustering-order = time are three orders of one table: set one of them",
                field="sort-by",
            )
        for name, share in (("shrink", self.shrink), ("full_shrink", self.full_shrink)):
            if not 0 < share <= 1:
                raise InvalidInput(f"{name} {share} is no share: expected above 0, at most 1", field=name)

    def __hash__(self) -> int:
        # Of whole numbers alone: to hash all the fractions takes as long as to decide.
        return hash((self.enabled, self.target_bytes, self.fan_in, self.min_input_files, self.max_small_files))

    @cached_property
    def size_levels(self) -> SizeLevels:
        """The level bounds that this policy implies; kept, because every file of every commit needs them."""
        typical_bytes = self.typical_file_bytes if self.fits_levels else 0
        return build_size_levels(
            self.target_bytes, self.fan_in, self.full_file_threshold, self.shrink, self.full_shrink, typical_bytes
        )

    @property
    def sort_order(self) -> RowOrder | None:
        """Order of the rows of files that are full, None where the table has none."""
        named = self.sort_by or self.zorder_by
        return None if named is None or not self.orders_rows else _sort_order(named, self.zorder_by is not None)

    @property
    def clusters(self) -> bool:
        """Whether a clustered table is rewritten, by its format's own OPTIMIZE and by nothing else."""
        return self.cluster and self.is_clustered

    @property
    def indexes(self) -> bool:
        """Whether the index of a table is optimized, by the library that wrote it and by nothing else."""
        return self.index and self.is_indexed

    @property
    def has_own_layout(self) -> bool:
        """Whether exact rewrites leave the table's files alone, because its format orders them itself."""
        return self.is_clustered or self.is_indexed

    def runs(self, kind: str) -> bool:
        """Return whether there are engines that run jobs of this kind on tables of this format."""
        return not self.job_kinds or kind in self.job_kinds.split()

    @property
    def automatic_levels(self) -> int:
        """How many levels, from the smallest on, automatic rewrites may touch."""
        return SMALL_LEVELS if self.max_mode is MaxMode.MAJOR else SMALL_LEVELS - 1

    @property
    def has_key(self) -> bool:
        """Whether older rows of a key are removed."""
        return self.primary_key is not None and self.sequence_by is not None

    @property
    def counts_commits(self) -> bool:
        """Whether the number of commits to a partition can trigger a rewrite."""
        return self.compact_every_commits is not None or self.full_every_commits is not None

    @property
    def retention_s(self) -> int:
        """How long removed files stay in the store at least."""
        return max(self.retain_s or 0, self.min_retain_s, self.own_retention_s)

    @property
    def for_manual_rewrite(self) -> "Policy":
        """The policy of a full or forced rewrite that a person requests: files leave harmful paths, unless never."""
        if self.portable_paths is PortablePaths.AUTO:
            return replace(self, portable_paths=PortablePaths.ALWAYS)
        return self

    @cached_property
    def version(self) -> str:
        """Short digest of all values: decisions name the policy they were made under.

        A field that a later release adds counts only where it differs from its default: deciders of two releases see
        equal values as the same policy, and do not rebuild each other's tables.
        """
        return _digest(self)

    def encode(self) -> str:
        """Write the policy as JSON text; fractions are written as `n/d`."""
        return self._encoded

    @cached_property
    def _encoded(self) -> str:
        return _encoded(self)

    @staticmethod
    def decode(text: str) -> "Policy":
        """Read what `encode` wrote."""
        values: dict[str, Any] = json.loads(text)
        for name in _FRACTIONS:
            if values.get(name) is not None:
                values[name] = Fraction(values[name])
        # What was written before a field existed has its default.
        for name, kind in _ENUMS.items():
            if name in values:
                values[name] = kind(values[name])
        # Another release may know more fields; what this one does not know it could not obey anyway.
        known = {f.name for f in fields(Policy)}
        return Policy(**{name: value for name, value in values.items() if name in known})


@lru_cache(maxsize=1_024)
def _sort_order(named: str, is_interleaved: bool) -> RowOrder:  # noqa: FBT001 - cached by position
    return RowOrder(parse_sort_columns(named), is_interleaved)


@lru_cache(maxsize=1_024)
def _encoded(policy: Policy) -> str:
    """Write a policy as text, once: every entry of the ledger carries it."""
    return _text(asdict(policy))


@lru_cache(maxsize=1_024)
def _digest(policy: Policy) -> str:
    """Digest of the policy, computed once: every refresh of a table compares it."""
    later = {one.name: one.default for one in fields(policy) if one.name not in _ALWAYS_DIGESTED}
    counted = {name: value for name, value in asdict(policy).items() if name not in later or value != later[name]}
    return hashlib.blake2b(f"{_STATE_FORM}{_text(counted)}".encode(), digest_size=4).hexdigest()


def _text(values: Mapping[str, Any]) -> str:
    written = {name: str(value) if isinstance(value, Fraction) else value for name, value in values.items()}
    return json.dumps(written, sort_keys=True, separators=(",", ":"))


_STATE_FORM = 3
"""Form of the rolling states that belong to a policy; another one has every table rebuilt. 2: idle-compacted files
count, and windows. 3: Z-cube files count, and the protocol is kept."""


_ALWAYS_DIGESTED = frozenset(
    (
        *(
            "enabled",
            "target_bytes",
            "fan_in",
            "full_file_threshold",
            "tolerance",
            "min_input_files",
            "max_small_files",
        ),
        *("idle_compaction_after_s", "full_rewrite_interval_s", "delete_ratio_threshold", "time_window_s", "max_mode"),
        *("max_bytes_per_job", "filter", "priority", "weight", "max_concurrent_jobs", "quota", "queue"),
        *("dml_policy", "max_write_contention", "shrink"),
    )
)
"""The fields of the first release, which always count: if one gets another default, all tables are rebuilt. Later
fields stay out of this."""


_FRACTIONS = (
    "full_file_threshold",
    "tolerance",
    "delete_ratio_threshold",
    "cluster_threshold",
    "shrink",
    "full_shrink",
    "weight",
    "read_weight",
    "quota",
    "max_write_contention",
)
_ENUMS: Mapping[str, type[StrEnum]] = {
    "max_mode": MaxMode,
    "priority": Priority,
    "job_order": JobOrder,
    "dml_policy": DmlPolicy,
    "portable_paths": PortablePaths,
    "row_group_copy": RowGroupCopy,
    "clustering_order": ClusteringOrder,
    "key_scope": KeyScope,
}


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

    A fan-in that anyone sets fixes the levels. Raises InvalidInput when values that are fine alone contradict each
    other.
    """
    values: dict[str, Any] = {}
    for layer in layers:
        values.update(layer.values)
    if "fan_in" in values:
        values["fits_levels"] = False
    return replace(base, **values) if values else base
