"""Sampling overhead: files whose rewrite lets a sample of a given fraction read fewer bytes.

A reader of a sample opens every file with a block that may hold rows below the sample's weight, and reads it whole. Two
kinds of files waste that: those with offsets above the sample, and those that mix sampled cubes with others.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shared.errors import InvalidInput
from shared.formats.qbeast.batches import batches
from shared.formats.qbeast.cubes import cube_order
from shared.formats.qbeast.files import Block, IndexFile
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.rollup import rollup
from shared.formats.qbeast.weights import CubeWeights, cube_weights, offset_rows, weight_of_fraction

DEFAULT_MIN_GAIN = 0.05
"""Least share of a batch's bytes that samples must save; below it a rewrite costs more than it gives."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample by its weight: a reader takes a block if its least weight is below."""

    weight: int
    cube_weights: CubeWeights

    def takes(self, block: Block) -> bool:
        """Return whether a reader of the sample opens the block's file for it."""
        return block.min_weight < self.weight

    def has_offsets(self, block: Block) -> bool:
        """Return whether a rewrite moves rows out of a sampled block that the sample does not need."""
        return block.min_weight < self.weight < block.max_weight and block.max_weight > self.cube_weights[block.cube]

    def is_partly_offset(self, file: IndexFile) -> bool:
        """Return whether any block of a file has such rows."""
        return any(self.has_offsets(block) for block in file.blocks)

    def is_mixed(self, file: IndexFile) -> bool:
        """Return whether a file has blocks that the sample needs and others."""
        return len({self.takes(block) for block in file.blocks}) > 1


MAX_REBUILDS = 1
"""Times that one run makes its list of files again, because appends of others lowered the weights of cubes."""


@dataclass(slots=True)
class Worklist:
    """The files that one run may rewrite for a sample: all that were there when it began.

    What the run writes never joins, because a rewrite mixes small cubes again. Where others append, the list is made
    again, once; after the next time it is empty, and what is left is for the next run.
    """

    _weights: CubeWeights | None = None
    _paths: frozenset[str] = frozenset()
    _times_made: int = 0

    def among(self, files: Sequence[IndexFile], weights: CubeWeights) -> list[IndexFile]:
        """Return the live files that are on the list."""
        known = self._weights
        if known is None or any(weights.get(cube, weight) != weight for cube, weight in known.items()):
            self._times_made += 1
            is_over = self._times_made > 1 + MAX_REBUILDS
            self._paths = frozenset() if is_over else frozenset(file.path for file in files)
            self._weights = dict(weights)
        return [file for file in files if file.path in self._paths]


def sample_of(files: Iterable[IndexFile], fraction: float) -> Sample:
    """Return a sample of a revision, whose live files these all are; raises InvalidInput unless 0 < fraction < 1."""
    if not 0 < fraction < 1:
        raise InvalidInput(f"a sample of {fraction}: expected more than 0 and less than 1", field="fraction")
    return Sample(weight_of_fraction(fraction), cube_weights(files))


def sampling_batches(
    files: Sequence[IndexFile],
    revision: Revision,
    fraction: float,
    batch_bytes: int,
    min_gain: float = DEFAULT_MIN_GAIN,
) -> list[tuple[IndexFile, ...]]:
    """Return the batches that are worth a rewrite; `files` are all live files of the revision.

    Raises InvalidInput for a fraction or size out of range.
    """
    return list(_worth(files, revision, sample_of(files, fraction), batch_bytes, min_gain))


def select_sampling(
    files: Sequence[IndexFile], revision: Revision, fraction: float, batch_bytes: int, worklist: Worklist
) -> tuple[IndexFile, ...]:
    """Return the next batch of a run, none where nothing on its list is worth a rewrite.

    With no other writer, each of them lowers the number of overhanging blocks, or keeps it and the number of blocks, or
    lowers that, and lowers the rows in files that the sample reads. So also run after run comes to an end.
    """
    sample = sample_of(files, fraction)
    return next(_worth(worklist.among(files, sample.cube_weights), revision, sample, batch_bytes, DEFAULT_MIN_GAIN), ())


def rows_read(files: Sequence[IndexFile], fraction: float) -> int:
    """Return the rows in files that a sample of a revision reads, whose live files these all are."""
    sample = sample_of(files, fraction)
    return sum(file.rows for file in files if any(map(sample.takes, file.blocks)))


def _worth(
    files: Sequence[IndexFile], revision: Revision, sample: Sample, batch_bytes: int, min_gain: float
) -> Iterator[tuple[IndexFile, ...]]:
    wasteful = [file for file in files if sample.is_partly_offset(file) or sample.is_mixed(file)]
    # Files that share cubes come together: only then are their blocks merged.
    wasteful.sort(key=lambda file: (min(cube_order(block.cube) for block in file.blocks), file.path))
    for batch in batches(wasteful, batch_bytes):
        useful = _useful(batch, revision, sample)
        if useful and _gain(useful, revision, sample) >= min_gain:
            yield useful


def _useful(batch: Sequence[IndexFile], revision: Revision, sample: Sample) -> tuple[IndexFile, ...]:
    """Return a batch without the mixed files that its rewrite would mix again."""
    groups = _groups(batch, revision)
    return tuple(file for file in batch if sample.is_partly_offset(file) or _is_separated(file, groups, sample))


def _is_separated(file: IndexFile, groups: dict[str, str], sample: Sample) -> bool:
    """Return whether a rewrite puts any of a file's other cubes apart from its sampled ones."""
    sampled = {groups[block.cube] for block in file.blocks if sample.takes(block)}
    return any(groups[block.cube] not in sampled for block in file.blocks)


def _gain(batch: Sequence[IndexFile], revision: Revision, sample: Sample) -> float:
    """Estimate the share of a batch's bytes that a reader of the sample no longer reads after its rewrite."""
    groups = _groups(batch, revision)
    sampled = {groups[block.cube] for file in batch for block in file.blocks if sample.takes(block)}
    saved = sum(file.size_bytes * _saved_rows(file, groups, sampled, sample) / file.rows for file in batch if file.rows)
    total = sum(file.size_bytes for file in batch)
    return saved / total if total else 0.0


def _saved_rows(file: IndexFile, groups: dict[str, str], sampled: set[str], sample: Sample) -> float:
    rows = 0.0
    for block in file.blocks:
        if sample.has_offsets(block):
            rows += offset_rows(block, max(sample.weight, sample.cube_weights[block.cube]))
        elif groups[block.cube] not in sampled:
            rows += block.rows
    return rows


def _groups(batch: Iterable[IndexFile], revision: Revision) -> dict[str, str]:
    rows = Counter[str]()
    for file in batch:
        for block in file.blocks:
            rows[block.cube] += block.rows
    return rollup(rows, revision.space, revision.desired_cube_size)
