"""A table with an index, as a job sees it: what is rewritten, by which rules, and the calls that do it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.domains import domains_of_index
from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.names import NOT_INDEXED
from shared.formats.qbeast.next_revision import RangedColumn, ValueRange
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.transformations import Coordinate, coordinates, in_zone
from shared.formats.qbeast.weights import CubeWeights, weights_to_place_by
from shared.layout.commit_metadata import CommitMetadata
from shared.table import Snapshot


@dataclass(frozen=True, slots=True)
class AddedTo:
    """An index that rows are added to: how many rows lie in the space of each cube, and what it weighs at most."""

    domains: Mapping[str, float]
    ceilings: CubeWeights

    @staticmethod
    def of(files: Sequence[IndexFile], space: CubeSpace) -> "AddedTo":
        """Return it by all live files of a revision."""
        return AddedTo(domains_of_index(files, space), weights_to_place_by(files, space, repairs=True))


@dataclass(frozen=True, slots=True)
class IndexRewrite:
    """Files to rewrite, and the rules of the revision by which their rows are placed.

    weights: of all cubes of the revision. added: what rows of files that are not indexed yet are added to; None where
    the files are of the revision.
    """

    revision: Revision
    coordinates: tuple[Coordinate, ...]
    weights: CubeWeights
    files: tuple[IndexFile, ...]
    added: AddedTo | None = None

    @staticmethod
    def of(index: QbeastIndex, files: tuple[IndexFile, ...], zone: str) -> "IndexRewrite":
        """Return the rewrite of files of one revision of an index; raises RefusedFiles for unknown rules.

        Files that are not indexed get the newest revision. zone: in which days begin for the table's writers, empty
        where that is not known.
        """
        (given,) = {file.revision for file in files}
        number = index.revisions.last if given == NOT_INDEXED else given
        rules = in_zone(coordinates(index.configuration, number), zone)
        revision, present = index.revisions.by_id[number], index.of_revision(number)
        added = AddedTo.of(present, revision.space) if given == NOT_INDEXED else None
        return IndexRewrite(revision, rules, weights_to_place_by(present, revision.space), files, added)


FileRanges = Mapping[str, ValueRange] | None
"""The values of a file by the name of their column, without columns that have none.

None for a file without rows, or of which some have no place.
"""


class IndexTable(Protocol):
    """One table with an index, as an engine reads and rewrites it."""

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files."""

    def rewrite(self, wanted: IndexRewrite, mark: CommitMetadata) -> tuple[int, Mapping[str, int]]:
        """Rewrite files that are live in the last snapshot; returns the version of the commit, and its figures.

        Raises Conflict where others took one, RefusedFiles where rows are not in the blocks that the index says.
        """

    def verify(self, wanted: IndexRewrite) -> int:
        """Count the rows of files that are live in the last snapshot; writes nothing.

        Raises RefusedFiles where rows are not in the blocks that the index says.
        """

    def column_types(self) -> Mapping[str, str]:
        """Return Delta's name of the type of each column in the last snapshot."""

    def ranges(
        self, files: Sequence[IndexFile], columns: Sequence[RangedColumn], zone: str
    ) -> Mapping[str, FileRanges]:
        """Return the least and greatest values of columns by the path of a file; zone: in which days begin."""

    def set_properties(self, properties: Mapping[str, str], mark: CommitMetadata) -> int:
        """Set properties of the table as it is in the last snapshot; returns the version of the commit.

        Raises Conflict where others changed its metadata since.
        """
