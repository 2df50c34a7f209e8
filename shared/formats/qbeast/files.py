"""Files of a table with a Qbeast index: the class of each, and its blocks, from the tags of its log.

A block is the part of a file that holds rows of one cube. A file without tags is not indexed yet; one with other tags
is skipped by the library forever, so it is counted and never selected.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from shared.errors import Corrupt
from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.names import BLOCKS_TAG, LEGACY_CUBE_TAG, NOT_INDEXED, REVISION_TAG
from shared.formats.qbeast.revisions import Revision, Revisions
from shared.table import DataFile
from shared.whole_numbers import whole_number

MIN_WEIGHT = -(2**31)
MAX_WEIGHT = 2**31 - 1
"""The greatest weight; a cube that may hold rows of it is a leaf."""

_MAX_ROWS = 2**63 - 1

_MOST_TEXTS = 10_000
"""Tags whose blocks are remembered: a table with an index is read again after each of its commits."""


class FileClass(StrEnum):
    """Class of a file by what the index knows of it."""

    INDEXED = "indexed"
    UNINDEXED = "unindexed"
    FOREIGN_TAGS = "foreign_tags"
    LEGACY = "legacy"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one cube in one file.

    `min_weight`: least weight of its rows. `max_weight`: the cube's greatest weight when the block was written, not
    a row's. Both are 32-bit integers.
    """

    cube: str
    min_weight: int
    max_weight: int
    rows: int


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A live file; `revision` and `blocks` are an indexed file's, `problem` says what is wrong with another."""

    path: str
    size_bytes: int
    kind: FileClass
    revision: int = NOT_INDEXED
    blocks: tuple[Block, ...] = ()
    modified_ms: int = 0
    problem: str = field(default="", compare=False)

    @property
    def rows(self) -> int:
        """Rows of its blocks."""
        return sum(block.rows for block in self.blocks)


def index_file(file: DataFile, revisions: Revisions) -> IndexFile:
    """Return what the index knows of a live file; never raises, a file that contradicts itself is malformed."""
    kind, problem = FileClass.INDEXED, ""
    number, blocks = NOT_INDEXED, tuple[Block, ...]()
    tags = file.tags
    if LEGACY_CUBE_TAG in tags and BLOCKS_TAG not in tags:
        kind = FileClass.LEGACY
    elif not tags or tags.get(REVISION_TAG) == str(NOT_INDEXED):
        kind = FileClass.UNINDEXED
    elif REVISION_TAG not in tags:
        kind = FileClass.FOREIGN_TAGS
    else:
        try:
            revision = _revision(tags[REVISION_TAG], revisions)
            number, blocks = revision.id, _blocks(tags.get(BLOCKS_TAG, ""), revision.space)
        except Corrupt as wrong:
            kind, problem = FileClass.MALFORMED, str(wrong)
    return IndexFile(file.path, file.size_bytes, kind, number, blocks, file.modified_ms, problem)


def tagged_blocks(tags: object) -> tuple[Block, ...] | None:
    """Return the blocks of a file by its tags alone, None where they name none, or damaged ones."""
    text = tags.get(BLOCKS_TAG) if isinstance(tags, dict) else None
    if not isinstance(text, str):
        return None
    try:
        return _blocks(text, None)
    except Corrupt:
        return None


def _revision(text: str, revisions: Revisions) -> Revision:
    number = whole_number(text)
    found = None if number is None else revisions.get(number)
    if found is None:
        raise Corrupt(f"tag {REVISION_TAG} is {text!r}, which is no revision of the table")
    return found


@lru_cache(_MOST_TEXTS)
def _blocks(text: str, space: CubeSpace | None) -> tuple[Block, ...]:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Corrupt(f"tag {BLOCKS_TAG} is no JSON: {problem}") from problem
    if not isinstance(raw, list):
        raise Corrupt(f"tag {BLOCKS_TAG}: expected a list of blocks")
    return tuple(_block(one, space) for one in raw)


def _block(raw: object, space: CubeSpace | None) -> Block:
    if not isinstance(raw, dict) or type(raw.get("cubeId")) is not str:
        raise Corrupt(f"tag {BLOCKS_TAG}: expected a cubeId in each block")
    cube = raw["cubeId"]
    if space is not None:
        space.check(cube)
    return Block(
        cube,
        _integer(raw, "minWeight", MIN_WEIGHT, range(MIN_WEIGHT, MAX_WEIGHT + 1)),
        _integer(raw, "maxWeight", MAX_WEIGHT, range(MIN_WEIGHT, MAX_WEIGHT + 1)),
        _integer(raw, "elementCount", 0, range(_MAX_ROWS + 1)),
    )


def _integer(raw: Mapping[str, Any], name: str, default: int, allowed: range) -> int:
    value = raw.get(name, default)
    if type(value) is not int or value not in allowed:
        raise Corrupt(f"tag {BLOCKS_TAG}: {name} is {value!r}, expected {allowed[0]} to {allowed[-1]}")
    return value
