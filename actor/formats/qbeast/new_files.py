"""Files that are not indexed yet: the revision that they are indexed by, and those that none has room for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from actor.formats.qbeast.index_table import IndexRewrite, IndexTable
from shared.errors import RefusedFiles
from shared.formats.qbeast.batches import batches
from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.names import LAST_REVISION, NOT_INDEXED
from shared.formats.qbeast.next_revision import NewestRevision, ValueRange
from shared.formats.qbeast.transformations import Coordinate, coordinates, in_zone
from shared.refusals import RefusalReason


@dataclass(slots=True)
class NewFiles:
    """Unindexed files of one table in one run; zone: of its writers' days, empty where that is not known."""

    table: IndexTable
    zone: str
    _refused: set[str] = field(default_factory=set)

    def prepared(
        self, index: QbeastIndex, files: tuple[IndexFile, ...], now_ms: int
    ) -> tuple[tuple[IndexFile, ...], Mapping[str, str]]:
        """Return which of some files can be indexed, and the properties of the revision that has to be set before.

        Empty properties: the newest revision has room for their values. Raises RefusedFiles for rules that are not
        known, or not the writers' own.
        """
        configuration = index.configuration
        last = int(configuration[LAST_REVISION])
        if last != NOT_INDEXED:
            self._require_known(index, last, sum(file.size_bytes for file in files))
        newest = NewestRevision.of(configuration, self.table.column_types())
        in_zone([Coordinate("linear", one.name, one.type) for one in newest.ranged], self.zone)
        ranges = self.table.ranges(files, newest.ranged, self.zone)
        self._refused |= {path for path, found in ranges.items() if found is None}
        placed = tuple(file for file in files if file.path not in self._refused)
        properties = newest.holding(_joined(ranges), now_ms) if placed else {}
        if properties:  # A revision that cannot be followed must not be set.
            in_zone(coordinates(properties, last + 1), self.zone)
        return placed, properties

    def without_refused(self, index: QbeastIndex) -> QbeastIndex:
        """Return an index without files that were found to have no place."""
        return index.without(self._refused)

    def require_none_refused(self) -> None:
        """Raise RefusedFiles if any file has no place."""
        if self._refused:
            raise RefusedFiles(
                f"{len(self._refused)} files stay unindexed, such as {min(self._refused)}: they have no rows, or an "
                "indexed column has NaN, an infinite number, or a day or an instant from before 1900",
                reason=RefusalReason.INDEX,
            )

    def _require_known(self, index: QbeastIndex, revision: int, size_bytes: int) -> None:
        """Prove the rules of a revision on as many bytes of its own files, where they may not be the writers'.

        Days begin in a zone that no table names; everything else follows from the revision, or is refused.
        """
        rules = in_zone(coordinates(index.configuration, revision), self.zone)
        present = index.of_revision(revision)
        if present and any(rule.is_day for rule in rules):
            self.table.verify(IndexRewrite.of(index, next(batches(present, max(1, size_bytes))), self.zone))


def _joined(ranges: Mapping[str, Mapping[str, ValueRange] | None]) -> dict[str, ValueRange]:
    joined: dict[str, ValueRange] = {}
    for name, one in (pair for found in ranges.values() if found is not None for pair in found.items()):
        known = joined.get(name, one)
        joined[name] = ValueRange(min(known.low, one.low), max(known.high, one.high))
    return joined
