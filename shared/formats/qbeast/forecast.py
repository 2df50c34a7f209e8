"""Forecast for an index: the iterations that each selection would run from now on, estimated from the blocks alone.

Which rows a rewrite moves down follows from the weights in the log, to which children they go is estimated by the rows
below these. New files are grouped as by the library. So bytes and blocks are estimates; the first files are not.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, FileClass, IndexFile
from shared.formats.qbeast.leveled import FIRST_GROUP_ONLY, select_leveled
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.rollup import rollup
from shared.formats.qbeast.sampling import Worklist, select_sampling
from shared.formats.qbeast.weights import cube_weights, is_overhanging, offset_rows
from shared.index.status import ForecastStep, IndexForecast

MAX_STEPS = 200
"""Iterations of one forecast; each takes a pass over all blocks."""


def forecasts(
    files: Sequence[IndexFile], revision: Revision, budget_bytes: int, sample: float | None = None
) -> tuple[IndexForecast, ...]:
    """Return what happens under the table's budget, group by group, without a limit, and if everything is rewritten.

    `files` are all live files of the revision. `sample`: also what a run for a sample of this fraction rewrites, alone.
    """
    everything = max(1, sum(file.size_bytes for file in files))
    budgets = dict.fromkeys((budget_bytes, FIRST_GROUP_ONLY, everything))
    leveled = (_leveled(files, revision, budget) for budget in budgets)
    sampling = () if sample is None else (_sampling(files, revision, max(1, budget_bytes), sample),)
    return (*leveled, *sampling, _whole(files, revision))


def _leveled(files: Sequence[IndexFile], revision: Revision, budget_bytes: int) -> IndexForecast:
    model, steps = _Model.of(files, revision), list[ForecastStep]()
    while len(steps) < MAX_STEPS:
        chosen = select_leveled(model.files.values(), revision.space, budget_bytes).files
        if not chosen:
            return IndexForecast("leveled", budget_bytes, tuple(steps), is_complete=True)
        steps.append(model.rewrite(chosen))
    return IndexForecast("leveled", budget_bytes, tuple(steps), is_complete=False)


def _sampling(files: Sequence[IndexFile], revision: Revision, batch_bytes: int, sample: float) -> IndexForecast:
    model, steps, worklist = _Model.of(files, revision), list[ForecastStep](), Worklist()
    while len(steps) < MAX_STEPS:
        chosen = select_sampling(tuple(model.files.values()), revision, sample, batch_bytes, worklist)
        if not chosen:
            return IndexForecast("sampling", batch_bytes, tuple(steps), is_complete=True)
        steps.append(model.rewrite(chosen))
    return IndexForecast("sampling", batch_bytes, tuple(steps), is_complete=False)


def _whole(files: Sequence[IndexFile], revision: Revision) -> IndexForecast:
    steps = (_Model.of(files, revision).rewrite(files),) if files else ()
    return IndexForecast("everything", None, steps, is_complete=True)


_FEW_ROWS = 0.01
"""An estimated number of rows that is not divided any further."""


@dataclass
class _Model:
    """An index whose rewrites are estimated; the weights of cubes stay, as no rows are added."""

    revision: Revision
    files: dict[str, IndexFile]
    weights: dict[str, int]
    children: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    below: Counter[str] = field(default_factory=Counter)
    made: int = 0

    @staticmethod
    def of(files: Iterable[IndexFile], revision: Revision) -> "_Model":
        found = {file.path: file for file in files}
        model = _Model(revision, found, cube_weights(found.values()))
        for file in found.values():
            for block in file.blocks:
                for cube in revision.space.path(block.cube):
                    model.below[cube] += block.rows
        for cube in model.below:
            parent = revision.space.parent(cube)
            if parent is not None:
                model.children[parent].append(cube)
        return model

    def rewrite(self, chosen: Sequence[IndexFile]) -> ForecastStep:
        """Replace files by those that the library would write."""
        rows: defaultdict[str, float] = defaultdict(float)
        for file in chosen:
            del self.files[file.path]
            for block in file.blocks:
                self._place(block, rows)
        size, total = sum(file.size_bytes for file in chosen), sum(file.rows for file in chosen)
        counts = _whole_rows(rows, total)
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for cube, group in rollup(counts, self.revision.space, self.revision.desired_cube_size).items():
            groups[group].append(cube)
        for cubes in groups.values():
            self._add(cubes, counts, size / total)
        blocks = [block for file in self.files.values() for block in file.blocks]
        weights = cube_weights(self.files.values())
        return ForecastStep(
            size,
            len(blocks) / len(weights) if weights else 0.0,
            len(blocks),
            sum(is_overhanging(block, self.weights) for block in blocks),
            len(self.files),
        )

    def _place(self, block: Block, rows: defaultdict[str, float]) -> None:
        """Add a block's rows to the cubes that they belong to."""
        limit = self.weights[block.cube]
        moved = offset_rows(block, limit)
        rows[block.cube] += block.rows - moved
        left = [(block.cube, moved, limit)] if moved > 0 else []
        while left:
            cube, count, low = left.pop()
            for child, share in self._shares(cube):
                above = self.weights.get(child, MAX_WEIGHT)
                is_all = above >= block.max_weight or count * share < _FEW_ROWS
                kept = 1.0 if is_all else max(0.0, (above - low) / (block.max_weight - low))
                rows[child] += count * share * kept
                if kept < 1.0:
                    left.append((child, count * share * (1 - kept), max(above, low)))

    def _shares(self, cube: str) -> list[tuple[str, float]]:
        """Return the children of a cube, each with its share of the rows below; a leaf gets a first child."""
        children = self.children[cube]
        total = sum(self.below[child] for child in children)
        if not total:
            child = cube + "A" * self.revision.space.symbols_per_level
            self.children[cube], self.below[child] = [child], 1
            return [(child, 1.0)]
        return [(child, self.below[child] / total) for child in children]

    def _add(self, cubes: Sequence[str], rows: Counter[str], bytes_per_row: float) -> None:
        self.made += 1
        blocks = tuple(
            Block(cube, self._least(cube), self.weights.get(cube, MAX_WEIGHT), rows[cube]) for cube in sorted(cubes)
        )
        size = round(sum(block.rows for block in blocks) * bytes_per_row)
        path = f"forecast-{self.made}"
        self.files[path] = IndexFile(path, size, FileClass.INDEXED, self.revision.id, blocks)
        for block in blocks:
            self.weights.setdefault(block.cube, MAX_WEIGHT)

    def _least(self, cube: str) -> int:
        parent = self.revision.space.parent(cube)
        return MIN_WEIGHT if parent is None else self.weights.get(parent, MIN_WEIGHT)


def _whole_rows(rows: Mapping[str, float], total: int) -> Counter[str]:
    """Round estimates so that their sum stays: the greatest gets what is missing; no cube is empty."""
    rounded = Counter({cube: int(count) for cube, count in rows.items()})
    greatest = max(rounded, key=lambda cube: (rounded[cube], cube))
    rounded[greatest] += total - rounded.total()
    return Counter({cube: count for cube, count in rounded.items() if count > 0})
