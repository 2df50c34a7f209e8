"""Rows of index files, as an engine counts them by the rules of a revision."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.delta_scala import DeltaScala
from shared.formats.qbeast.placement import BlocksByFile, Rows
from shared.formats.qbeast.transformations import Coordinate, encode_coordinates
from shared.paths.data_paths import file_name

FoundRange = Mapping[str, Any]
"""The `low` and `high` of a column, of instants in milliseconds and of days their number, null where all values are.

`outside` is true where some have no place on a line.
"""


@dataclass(frozen=True, slots=True)
class Places:
    """Cubes that rows are placed in, by their weights, and the blocks of files that they are in.

    blocks: None for rows of no file of the index, which count as the root's. levels: cubes are instead given by how
    many levels below them rows are placed, whatever their weight.
    """

    cubes: Mapping[str, int]
    blocks: BlocksByFile | None = None
    levels: bool = False

    def functions(self, scala: DeltaScala, coordinates: Sequence[Coordinate]) -> tuple[Any, Any]:
        """Return the JVM's functions that name the block of a row, None without blocks, and its cube."""
        rules, cube = encode_coordinates(coordinates), scala.qbeast.QbeastCube
        cubes = (cube.ofPlaces if self.levels else cube.ofIndex)(rules, json.dumps({"": self.cubes}))
        if self.blocks is None:
            return None, cubes
        weights = {name: {block.cube: block.max_weight for block in some} for name, some in self.blocks.items()}
        return cube.ofFiles(rules, json.dumps(weights)), cubes


class IndexRows(Protocol):
    """The rows of some files."""

    def total(self) -> int:
        """Count them."""

    def counted(self, places: Places) -> Rows:
        """Count them by their places."""

    def ranges(self) -> Mapping[str, Sequence[FoundRange]]:
        """Return the range of each column by the name of a file; one without rows has none."""


def name_of(logged: LoggedFile) -> str:
    """Return the name of a file without its folders."""
    return file_name(logged.file.path).rpartition("/")[2]
