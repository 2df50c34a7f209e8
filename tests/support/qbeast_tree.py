"""A simulated table with a Qbeast index: rows with weights in a tree of cubes, written and optimized as by the library.

Its files carry the tags that the library writes, so that every reading starts with decoding them.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shared.errors import Conflict
from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.domains import count_domains, domains_of_index, lowered_weights, without_unrecorded
from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import Iteration, Strategy
from shared.formats.qbeast.rollup import rollup
from shared.formats.qbeast.weights import weights_to_place_by
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, Snapshot, TableMetadata, TableProtocol

SPACE = CubeSpace(2)
_DEPTH = 12  # Beyond it two rows of these small tables are never in one cube.
_QUADRANTS = "AQgw"

Row = tuple[int, str]
"""A row: its weight, and the cube at the greatest depth that contains it."""


def configuration(cube_size: int, last: int = 1) -> dict[str, str]:
    """Return the properties of a table whose revision 1 has two columns."""
    columns = [
        {"className": "io.qbeast.core.transform.LinearTransformer", "columnName": name, "dataType": "DoubleDataType"}
        for name in ("price", "user")
    ]
    linear = {"className": "io.qbeast.core.transform.LinearTransformation", "orderedDataType": "DoubleDataType"}
    linear |= {"minNumber": 0.0, "maxNumber": 1.0, "nullValue": 0.5}
    revision = {"revisionID": 1, "timestamp": 7, "desiredCubeSize": cube_size, "columnTransformers": columns}
    revision["transformations"] = [linear, linear]
    empty = {**revision, "revisionID": 0}
    return {
        "qbeast.lastRevisionID": str(last),
        "qbeast.revision.0": json.dumps(empty),
        "qbeast.revision.1": json.dumps(revision),
    }


@dataclass
class QbeastTree:
    """One table; every write is one commit."""

    rng: random.Random
    cube_size: int
    version: int = 0
    rows: dict[str, list[Row]] = field(default_factory=dict)
    files: dict[str, DataFile] = field(default_factory=dict)
    _names: int = 0

    @property
    def metadata(self) -> TableMetadata:
        return TableMetadata("u", configuration=configuration(self.cube_size))

    def read(self) -> QbeastIndex:
        return QbeastIndex.of_snapshot(self.snapshot())

    def snapshot(self) -> Snapshot:
        return Snapshot(self.version, 0, self.metadata, TableProtocol(1, 2), tuple(self.files.values()))

    def new_rows(self, count: int) -> list[Row]:
        """Return rows that are dense in one corner of the space."""
        made = []
        for _ in range(count):
            path = "".join(self.rng.choices(_QUADRANTS, (4, 2, 1, 1), k=_DEPTH))
            made.append((self.rng.randint(MIN_WEIGHT, MAX_WEIGHT), path))
        return made

    def append(self, rows: Sequence[Row]) -> None:
        """Append as the library does: the cubes' weights fall as their domains grow."""
        self._commit((), self._placed(rows, self._lowered(rows)))

    def append_plainly(self, rows: Sequence[Row]) -> None:
        """Append a file without tags, as a writer does that knows nothing of the index."""
        self._commit((), [self._file(list(rows), {})])

    def unindex(self, path: str) -> None:
        """Write the rows of a file again without tags, as a DELETE does that takes none of them."""
        self._commit([path], [self._file(self.rows[path], {})])

    def drop(self, path: str) -> None:
        """Delete a file with its rows."""
        self._commit([path], [])

    def optimize(self, iteration: Iteration) -> None:
        """Rewrite files with the weights in force; an iteration of unindexed files appends their rows instead."""
        if any(path not in self.files for path in iteration.paths):
            raise Conflict("an input is gone", kind="ConcurrentDeleteDeleteException")
        rows = [row for path in iteration.paths for row in self.rows[path]]
        is_new = iteration.strategy is Strategy.UNINDEXED
        known = weights_to_place_by(self.read().of_revision(1), SPACE)
        self._commit(iteration.paths, self._placed(rows, self._recorded(rows) if is_new else known))

    def _recorded(self, rows: Sequence[Row]) -> dict[str, int]:
        """Return the weights by which files of other writers are indexed, as the product computes them."""
        index = self.read()
        revision, known = index.revisions.by_id[1], weights_to_place_by(index.of_revision(1), SPACE)
        domains = count_domains(lambda levels: places(rows, levels), len(rows), revision)
        present = index.of_revision(1)
        ceilings = weights_to_place_by(present, SPACE, repairs=True)
        weights = lowered_weights(domains, domains_of_index(present, SPACE), ceilings, revision)
        while (recorded := without_unrecorded(weights, known, {cube_of(row, weights) for row in rows})) != weights:
            weights = recorded
        return weights

    def _weights(self) -> dict[str, int]:
        weights: dict[str, int] = {}
        for file in self.files.values():
            for block in json.loads(file.tags.get("blocks", "[]")):
                weights[block["cubeId"]] = min(block["maxWeight"], weights.get(block["cubeId"], MAX_WEIGHT))
        return weights

    def _lowered(self, rows: Iterable[Row]) -> dict[str, int]:
        """Return the weights after rows are added, from the number of all rows in each cube's space."""
        all_rows = [*rows, *(row for path, some in self.rows.items() if self.files[path].tags for row in some)]
        domains = Counter(place[:depth] for _, place in all_rows for depth in range(_DEPTH))
        known = self._weights()
        shares = {"": 0.0}
        lowered: dict[str, int] = {}
        for cube in sorted(domains, key=len):
            above = 0.0 if not cube else shares[cube[:-1]]
            shares[cube] = above + self.cube_size / domains[cube]
            share = min(1.0, shares[cube])
            weight = MAX_WEIGHT if share == 1.0 else int(share * (MAX_WEIGHT - MIN_WEIGHT) + MIN_WEIGHT)
            lowered[cube] = min(weight, known.get(cube, MAX_WEIGHT))
        return known | lowered

    def _placed(self, rows: Iterable[Row], weights: dict[str, int]) -> list[tuple[DataFile, list[Row]]]:
        cubes: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows:
            cubes[cube_of(row, weights)].append(row)
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for cube, group in rollup({cube: len(some) for cube, some in cubes.items()}, SPACE, self.cube_size).items():
            groups[group].append(cube)
        made = []
        for members in groups.values():
            blocks = [
                {
                    "cubeId": cube,
                    "minWeight": min(weight for weight, _ in cubes[cube]),
                    "maxWeight": weights.get(cube, MAX_WEIGHT),
                    "elementCount": len(cubes[cube]),
                    "replicated": False,
                }
                for cube in members
            ]
            inside = [row for cube in members for row in cubes[cube]]
            made.append(self._file(inside, {"revision": "1", "blocks": json.dumps(blocks)}))
        return made

    def _file(self, rows: list[Row], tags: dict[str, str]) -> tuple[DataFile, list[Row]]:
        self._names += 1
        size = 500 + 10 * len(rows)
        return DataFile(f"f{self._names}", size, WHOLE_TABLE, rows=len(rows), modified_ms=self._names, tags=tags), rows

    def _commit(self, removed: Sequence[str], added: Sequence[tuple[DataFile, list[Row]]]) -> None:
        for path in removed:
            del self.files[path], self.rows[path]
        for file, rows in added:
            self.files[file.path], self.rows[file.path] = file, rows
        self.version += 1


def places(rows: Iterable[Row], levels: Mapping[str, int]) -> Counter[str]:
    """Count rows by a cube that they lie in: so many levels below the last of their path that is known."""
    found = Counter[str]()
    for _, place in rows:
        known = max((len(cube) for cube in levels if place.startswith(cube)), default=0)
        found[place[: known + levels.get(place[:known], 1)]] += 1
    return found


def cube_of(row: Row, weights: Mapping[str, int]) -> str:
    return next(cube for cube in _path(row) if row[0] <= weights.get(cube, MAX_WEIGHT))


def _path(row: Row) -> Iterable[str]:
    return (row[1][:depth] for depth in range(_DEPTH + 1))
