"""Status of a table's index on several columns, as decider and command line show it, whatever its format.

Sizes are bytes. Rows are those that the index counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from shared.policy.policy import PropertyIssue
from shared.refusals import Refusal


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """Options of a call about an index.

    `revision` and `budget_bytes` (of one iteration) replace the table's properties. sample: fraction of the
    rows that a sampling query reads, between 0 and 1. optimized_sample: the one that files are rewritten for, None for
    the properties' one.
    is_forecast: estimate the iterations to come.
    """

    revision: int | None = None
    budget_bytes: int | None = None
    sample: float | None = None
    is_forecast: bool = False
    optimized_sample: Fraction | None = None


@dataclass(frozen=True, slots=True)
class IndexMetrics:
    """The state of one revision of an index, which is a tree of cubes of the indexed space.

    height: levels of the tree. min_height: of a balanced tree of as many rows. fanout: mean number of children of
    a cube that has any. overhang_blocks: blocks that may hold rows of descendants, `offset_rows` estimates how many.
    hidden_blocks: blocks with a row that samples may miss, because it belongs into a cube above.
    zero_block_files: files without rows, which no optimization takes. files_by_level: number of files by the power of
    ten of their largest block.
    """

    rows: int
    bytes: int
    files: int
    cubes: int
    blocks: int
    height: int
    min_height: int
    fanout: float
    overhang_blocks: int
    offset_rows: int
    hidden_blocks: int
    max_blocks_per_file: int
    max_blocks_per_cube: int
    zero_block_files: int
    files_by_level: Mapping[int, int] = field(hash=False)

    @property
    def fragmentation(self) -> float:
        """Blocks per cube, 1 right after everything was optimized."""
        return self.blocks / self.cubes if self.cubes else 0.0

    @property
    def blocks_per_file(self) -> float:
        """Mean blocks of a file."""
        return self.blocks / self.files if self.files else 0.0


@dataclass(frozen=True, slots=True)
class IndexRevision:
    """A revision: its parameters and state; `eligible_groups` of blocks are to be rewritten.

    eligible_bytes: of their files. columns: such as `price:linear`.
    """

    id: int
    desired_cube_size: int
    columns: tuple[str, ...]
    metrics: IndexMetrics
    eligible_groups: int
    eligible_bytes: int


@dataclass(frozen=True, slots=True)
class UnindexedFiles:
    """Files that are not indexed yet; `oldest_ms`: when the oldest was written, None if there are none."""

    files: int
    bytes: int
    oldest_ms: int | None


@dataclass(frozen=True, slots=True)
class NextRewrite:
    """Rewrite of the next iteration: the strategy that chose the files, and their paths."""

    strategy: str
    paths: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class SampleReads:
    """Reads of a sampling query in the optimized revision, and the files whose rewrite would lower them."""

    fraction: float
    files: int
    bytes: int
    rewrite_files: int
    rewrite_bytes: int


@dataclass(frozen=True, slots=True)
class ForecastStep:
    """An iteration of a forecast: bytes that it rewrites, and the index after it."""

    bytes: int
    fragmentation: float
    blocks: int
    overhang_blocks: int
    files: int


@dataclass(frozen=True, slots=True)
class IndexForecast:
    """The iterations under one selection, estimated.

    selection: `leveled` with a budget in bytes, `sampling` alone with batches of these bytes, or `everything` at once.
    Not `is_complete`: more iterations would follow.
    """

    selection: str
    budget_bytes: int | None
    steps: tuple[ForecastStep, ...]
    is_complete: bool

    @property
    def bytes(self) -> int:
        """Bytes that all its iterations rewrite."""
        return sum(step.bytes for step in self.steps)


@dataclass(frozen=True, slots=True)
class IndexRewrites:
    """Rewrites of an optimization: the next iteration, for a sample, and from now on, where that is requested.

    None and empty where nothing is eligible, or no rewrite is allowed. problem: what about the table's own properties
    forbids it, as a sentence.
    """

    next: NextRewrite | None = None
    sample: SampleReads | None = None
    forecasts: tuple[IndexForecast, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The index of a table at a version.

    last_revision: 0 where nothing is indexed yet. files_by_class: number of live files by what the index knows of them.
    first_problem: of the files with damaged index data, the first one and what is wrong. refusal: why the index must
    not be optimized. issues: properties without effect.
    """

    kind: str
    version: int
    last_revision: int
    revisions: tuple[IndexRevision, ...]
    files_by_class: Mapping[str, int] = field(hash=False)
    unindexed: UnindexedFiles
    first_problem: str
    refusal: Refusal | None
    issues: tuple[PropertyIssue, ...]
    rewrites: IndexRewrites
